package controller

import (
	"context"
	"fmt"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies/stored"
)

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Authors says what those who write policies may read. A policy reads with
// Penstock's rights and says what it found to whoever it judges: without this,
// whoever may write policies could read everything that Penstock may.
type Authors struct {
	// Reviews creates SubjectAccessReviews.
	Reviews client.Client
	// Mapper knows the kinds that the API server serves.
	Mapper stored.KindMapper
}

// Faults gives a fault for each kind that a policy matches or reads and its
// author may not list in all namespaces. An update that does not make the policy
// see or say more needs no right: old is then the policy as it is stored. It is
// an error if the API server does not answer.
func (a *Authors) Faults(ctx context.Context, author authenticationv1.UserInfo, old, policy *v1.WorkloadPolicy) (field.ErrorList, error) {
	if old != nil && !readsMore(&old.Spec, &policy.Spec) {
		return nil, nil
	}
	kinds := readKinds(&policy.Spec)
	access := newAccess(a.Reviews, author)
	// Most who write policies may list everything: one question then.
	everything, err := access.mayList(ctx, schema.GroupResource{Group: wildcard, Resource: wildcard}, "")
	if err != nil || everything || len(kinds) == 0 {
		return nil, err
	}
	found := make([]readResource, len(kinds))
	for i, read := range kinds {
		if found[i].resource, found[i].served, err = resourceOf(read.kind, a.Mapper); err != nil {
			return nil, err
		}
	}
	if err := access.ask(ctx, found); err != nil {
		return nil, err
	}
	var faults field.ErrorList
	for i, read := range kinds {
		resource, served := found[i].resource, found[i].served
		may, err := access.mayList(ctx, resource, "")
		if err != nil {
			return nil, err
		}
		if !may {
			faults = append(faults, field.Forbidden(read.field, forbidden(author.Username, read.kind, resource, served)))
		}
	}
	return faults, nil
}

// A readResource is the resource of a kind; all of the group's where it is not
// known, as the kind is not served.
type readResource struct {
	resource schema.GroupResource
	served   bool
}

// forbidden says what the author of a policy lacks.
func forbidden(user string, kind schema.GroupKind, resource schema.GroupResource, served bool) string {
	switch {
	case resource.Group == wildcard:
		return fmt.Sprintf("a policy sees what it matches and reads, and %q may not list all kinds of all groups: ask for list on *.* in all namespaces, or name groups and kinds", user)
	case !served:
		return fmt.Sprintf("a policy sees what it matches and reads. %s is not served, so that its resource is not known, and %q may not list all resources of group %q: "+
			"install the kind first, or ask for list on *.%s in all namespaces", kind, user, kind.Group, kind.Group)
	default:
		return fmt.Sprintf("a policy sees what it matches and reads, and %q may not list %s in all namespaces: ask for list on %s there, or leave the kind out", user, resource, resource)
	}
}

// askedAtOnce bounds the questions that are under way for one author.
const askedAtOnce = 8

// access is what one user may do, each question asked once.
type access struct {
	reviews client.Client
	user    authenticationv1.UserInfo

	mu    sync.Mutex
	known map[authorizationv1.ResourceAttributes]bool
}

func newAccess(reviews client.Client, user authenticationv1.UserInfo) *access {
	return &access{reviews: reviews, user: user, known: map[authorizationv1.ResourceAttributes]bool{}}
}

// ask asks whether the user may list some resources in all namespaces, several at
// once: a policy may name hundreds of kinds, and its author waits.
func (a *access) ask(ctx context.Context, about []readResource) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	asked := map[schema.GroupResource]bool{}
	slots := make(chan struct{}, askedAtOnce)
	var under sync.WaitGroup
	for _, one := range about {
		if asked[one.resource] {
			continue
		}
		asked[one.resource] = true
		slots <- struct{}{}
		under.Go(func() {
			defer func() { <-slots }()
			if ctx.Err() != nil {
				return
			}
			if _, err := a.mayList(ctx, one.resource, ""); err != nil {
				cancel(err)
			}
		})
	}
	under.Wait()
	return context.Cause(ctx)
}

// mayList reports whether the user may list a resource in a namespace, or in all
// namespaces where that is empty.
func (a *access) mayList(ctx context.Context, resource schema.GroupResource, namespace string) (bool, error) {
	attributes := authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: "list", Group: resource.Group, Version: wildcard, Resource: resource.Resource,
	}
	a.mu.Lock()
	may, ok := a.known[attributes]
	a.mu.Unlock()
	if ok {
		return may, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: a.user.Username, Groups: a.user.Groups, UID: a.user.UID, Extra: extraOf(a.user.Extra), ResourceAttributes: &attributes,
	}}
	if err := a.reviews.Create(ctx, review); err != nil {
		return false, fmt.Errorf("failed to ask what %q may list: %w", a.user.Username, err)
	}
	a.mu.Lock()
	a.known[attributes] = review.Status.Allowed
	a.mu.Unlock()
	return review.Status.Allowed, nil
}

func extraOf(extra map[string]authenticationv1.ExtraValue) map[string]authorizationv1.ExtraValue {
	if extra == nil {
		return nil
	}
	same := make(map[string]authorizationv1.ExtraValue, len(extra))
	for key, value := range extra {
		same[key] = authorizationv1.ExtraValue(value)
	}
	return same
}
