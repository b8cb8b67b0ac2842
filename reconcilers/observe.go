package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// observe reads the children of the object from the cache. It returns how long
// to wait if the cache does not show yet what earlier passes did: the event
// that it is waiting for comes sooner as a rule.
func (p *pass[T, S]) observe(ctx context.Context) (time.Duration, error) {
	served, known := p.served()
	if !known {
		return servedRetry, nil
	}
	p.observed.Served = make(map[schema.GroupVersionKind]bool, len(served))
	for _, kind := range p.kind.Owns {
		if err := p.list(ctx, p.client, kind); err != nil {
			return 0, err
		}
	}
	for _, kind := range served {
		p.observed.Served[kind.gvk] = true
		if err := p.list(ctx, kind.reader, kind.object); err != nil {
			return 0, err
		}
	}
	p.sortChildren()
	return p.expectations.outstanding(p.key(), p.object, p.observed.Children, p.clock.Now()), nil
}

// list adds the children of one kind to what is observed.
func (p *pass[T, S]) list(ctx context.Context, reader client.Reader, kind plan.Object) error {
	list, err := newListOf(kind, p.client.Scheme())
	if err != nil {
		return err
	}
	if err := reader.List(ctx, list,
		client.InNamespace(p.object.GetNamespace()),
		client.MatchingFields{ownerIndex(p.kind.Name): string(p.object.GetUID())},
	); err != nil {
		return wrap("list", fmt.Sprintf("children of type %T", kind), err)
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		p.observed.Children = append(p.observed.Children, item.(plan.Object))
		return nil
	})
}

// observePods puts in the place of the observed pods those that the API server
// has now. That costs a call for all of Penstock's pods of the namespace, so it
// is for what is decided once in the life of an object.
func (p *pass[T, S]) observePods(ctx context.Context) error {
	var list corev1.PodList
	if err := p.live.List(ctx, &list, client.InNamespace(p.object.GetNamespace()), client.MatchingLabelsSelector{Selector: ours()}); err != nil {
		return wrap("list", "pods", err)
	}
	children := slices.DeleteFunc(p.observed.Children, func(child plan.Object) bool { _, ok := child.(*corev1.Pod); return ok })
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], p.object) {
			children = append(children, &list.Items[i])
		}
	}
	p.observed.Children = children
	p.sortChildren()
	return nil
}

func (p *pass[T, S]) sortChildren() {
	slices.SortStableFunc(p.observed.Children, func(a, b plan.Object) int {
		return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetUID(), b.GetUID()))
	})
}

// newListOf returns an empty list for a kind.
func newListOf(object plan.Object, scheme *runtime.Scheme) (client.ObjectList, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, fmt.Errorf("failed to find the kind of %T: %w", object, err)
	}
	gvk.Kind += "List"
	if _, ok := object.(*unstructured.Unstructured); ok {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	}
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
