package controller

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Authors says what those who write policies may read. A policy reads with
// Penstock's rights and says what it found to whoever it judges: without this,
// whoever may write policies could read everything that Penstock may.
type Authors struct {
	// Reviews creates SubjectAccessReviews.
	Reviews client.Client
	// Mapper knows the kinds that the API server serves.
	Mapper KindMapper
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
	var faults field.ErrorList
	for _, read := range kinds {
		resource, served, err := resourceOf(read.kind, a.Mapper)
		if err != nil {
			return nil, err
		}
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

// access is what one user may do, each question asked once. It is for one
// goroutine.
type access struct {
	reviews client.Client
	user    authenticationv1.UserInfo
	known   map[authorizationv1.ResourceAttributes]bool
}

func newAccess(reviews client.Client, user authenticationv1.UserInfo) *access {
	return &access{reviews: reviews, user: user, known: map[authorizationv1.ResourceAttributes]bool{}}
}

// mayList reports whether the user may list a resource in a namespace, or in all
// namespaces where that is empty.
func (a *access) mayList(ctx context.Context, resource schema.GroupResource, namespace string) (bool, error) {
	attributes := authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: "list", Group: resource.Group, Version: wildcard, Resource: resource.Resource,
	}
	if may, ok := a.known[attributes]; ok {
		return may, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: a.user.Username, Groups: a.user.Groups, UID: a.user.UID, Extra: extraOf(a.user.Extra), ResourceAttributes: &attributes,
	}}
	if err := a.reviews.Create(ctx, review); err != nil {
		return false, fmt.Errorf("failed to ask what %q may list: %w", a.user.Username, err)
	}
	a.known[attributes] = review.Status.Allowed
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
