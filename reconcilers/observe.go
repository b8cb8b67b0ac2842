package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// observe reads the children of the object from the cache. It returns how long
// to wait if the cache does not show yet what earlier passes did: the event
// that it is waiting for comes sooner as a rule.
func (p *pass[T, S]) observe(ctx context.Context) (time.Duration, error) {
	for _, kind := range p.kind.Owns {
		children, err := p.list(ctx, kind)
		if err != nil {
			return 0, err
		}
		p.observed.Children = append(p.observed.Children, children...)
	}
	slices.SortStableFunc(p.observed.Children, func(a, b plan.Object) int {
		return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetUID(), b.GetUID()))
	})
	return p.expectations.outstanding(p.key(), p.object, p.observed.Children, p.clock.Now()), nil
}

// list returns the children of one kind.
func (p *pass[T, S]) list(ctx context.Context, kind plan.Object) ([]plan.Object, error) {
	list, err := newListOf(kind, p.client.Scheme())
	if err != nil {
		return nil, err
	}
	if err := p.client.List(ctx, list,
		client.InNamespace(p.object.GetNamespace()),
		client.MatchingFields{ownerIndex(p.kind.Name): string(p.object.GetUID())},
	); err != nil {
		return nil, wrap("list", fmt.Sprintf("children of type %T", kind), err)
	}
	var children []plan.Object
	err = meta.EachListItem(list, func(item runtime.Object) error {
		children = append(children, item.(plan.Object))
		return nil
	})
	return children, err
}

// newListOf returns an empty list for a kind.
func newListOf(object plan.Object, scheme *runtime.Scheme) (client.ObjectList, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, fmt.Errorf("failed to find the kind of %T: %w", object, err)
	}
	gvk.Kind += "List"
	list, err := scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("failed to make a list of %T: %w", object, err)
	}
	return list.(client.ObjectList), nil
}

// ownerIndex names the cache index of children by the UID of their controller,
// if that is of the kind.
func ownerIndex(kind string) string { return "controller/" + kind }

// ownerUID returns a function that computes the value of that index.
func ownerUID(kind string) client.IndexerFunc {
	return func(child client.Object) []string {
		owner := metav1.GetControllerOf(child)
		if owner == nil || owner.Kind != kind {
			return nil
		}
		return []string{string(owner.UID)}
	}
}
