package reconcilers

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// parallel is how many children of one object are created at once.
const parallel = 8

// make brings about the children that the plan wants. A child that cannot be
// made for a reason that retrying does not mend becomes the fault of the pass.
func (p *pass[T, S]) make(ctx context.Context) error {
	for _, child := range p.result.Apply {
		if err := p.settle(p.apply(ctx, child)); err != nil {
			return err
		}
	}
	return p.createAll(ctx, p.result.Create)
}

// settle sorts the errors of making a child: those that stand become the fault
// of the pass, the rest is returned and backs off.
func (p *pass[T, S]) settle(f *fault, err error) error {
	if f != nil && p.fault == nil {
		p.fault = f
	}
	return err
}

// apply server-side applies a child if it is not as it should be. In steady
// state that is never.
func (p *pass[T, S]) apply(ctx context.Context, child plan.Object) (*fault, error) {
	if err := p.own(child); err != nil {
		return nil, err
	}
	wanted, err := applyConfiguration(child)
	if err != nil {
		return nil, err
	}
	kind := child.GetObjectKind().GroupVersionKind().Kind
	current := p.find(child)
	switch {
	case current == nil:
		// The cache holds only what is ours. Applying would take over an
		// object of somebody else's that has the name.
		if f, err := p.foreign(ctx, child); f != nil || err != nil {
			return f, err
		}
	case current.GetDeletionTimestamp() != nil:
		return nil, nil
	default:
		if same, err := covers(current, wanted); err != nil || same {
			return nil, err
		}
	}
	log.FromContext(ctx).V(1).Info("Applying child", kind, ref(child))
	err = p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner(v1.FieldManager), client.ForceOwnership)
	if f, err := p.refusal(child, err); f != nil || err != nil {
		return f, err
	}
	if current == nil {
		p.expectations.expectCreated(p.key(), wanted.GetUID(), p.clock.Now())
	}
	return nil, nil
}

// createAll creates children, several at once, and stops at the first error.
func (p *pass[T, S]) createAll(ctx context.Context, children []plan.Object) error {
	var mu sync.Mutex
	var failed error
	var group sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for _, child := range children {
		slots <- struct{}{}
		mu.Lock()
		stop := failed != nil || p.fault != nil
		mu.Unlock()
		if stop {
			break
		}
		group.Go(func() {
			defer func() { <-slots }()
			f, err := p.create(ctx, child)
			mu.Lock()
			defer mu.Unlock()
			if err := p.settle(f, err); err != nil && failed == nil {
				failed = err
			}
		})
	}
	group.Wait()
	return failed
}

// create creates a child by POST. One that exists already is never touched: it
// is either ours and not in the cache yet, or somebody else's.
func (p *pass[T, S]) create(ctx context.Context, child plan.Object) (*fault, error) {
	if err := p.own(child); err != nil {
		return nil, err
	}
	kind := child.GetObjectKind().GroupVersionKind().Kind
	log.FromContext(ctx).V(1).Info("Creating child", kind, ref(child))
	err := p.client.Create(ctx, child, client.FieldOwner(v1.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return p.foreign(ctx, child)
	}
	if f, err := p.refusal(child, err); f != nil || err != nil {
		return f, err
	}
	p.expectations.expectCreated(p.key(), child.GetUID(), p.clock.Now())
	return nil, nil
}

// foreign returns a fault if an object with a child's name exists and is not
// ours.
func (p *pass[T, S]) foreign(ctx context.Context, child plan.Object) (*fault, error) {
	there := child.DeepCopyObject().(plan.Object)
	err := p.live.Get(ctx, client.ObjectKeyFromObject(child), there)
	switch kind := child.GetObjectKind().GroupVersionKind().Kind; {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, wrap("get", kind, err)
	case metav1.IsControlledBy(there, p.object):
		return nil, nil
	default:
		return p.notOwned(kind, child.GetName()), nil
	}
}

// refusal turns the API server's answer to a child into a fault or an error.
func (p *pass[T, S]) refusal(child plan.Object, err error) (*fault, error) {
	kind := child.GetObjectKind().GroupVersionKind().Kind
	switch {
	case err == nil:
		return nil, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// Everything goes with the namespace; there is nobody to tell.
		return &fault{silent: true, retry: p.period}, nil
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		p.emit(childRefused(err.Error()))
		return rejected(kind, err), nil
	case apierrors.IsForbidden(err):
		// A quota or a policy: both may change, so it is tried again.
		p.emit(childRefused(err.Error()))
	}
	return nil, wrap("make", kind, err)
}

// delete deletes what the plan wants gone, each child only if it is still the
// one that was observed.
func (p *pass[T, S]) delete(ctx context.Context) error {
	for _, deletion := range p.result.Delete {
		child, uid := deletion.Child, deletion.UID()
		log.FromContext(ctx).V(1).Info("Deleting child", "type", fmt.Sprintf("%T", child), "child", ref(child), "reason", deletion.Reason)
		err := p.client.Delete(ctx, child, client.Preconditions{UID: &uid})
		// A conflict means that another object has the name by now.
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return wrap("delete", fmt.Sprintf("%T", child), err)
		}
		p.expectations.expectDeleted(p.key(), uid, p.clock.Now())
	}
	if !p.result.DeleteSelf {
		return nil
	}
	log.FromContext(ctx).Info("Deleting object whose time to live is over")
	// The version guards against an edit that prolonged its life meanwhile.
	err := p.client.Delete(ctx, p.object,
		client.Preconditions{UID: ptr.To(p.object.GetUID()), ResourceVersion: ptr.To(p.object.GetResourceVersion())},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(err)
}

// own makes the object the controller of a child, so that the child's events
// lead back to it and the child goes with it.
func (p *pass[T, S]) own(child plan.Object) error {
	if err := controllerutil.SetControllerReference(p.object, child, p.client.Scheme()); err != nil {
		return wrap("own", fmt.Sprintf("%T", child), err)
	}
	return nil
}

// find returns the observed child of the same type and name, or nil.
func (p *pass[T, S]) find(child plan.Object) plan.Object {
	for _, observed := range p.observed.Children {
		if observed.GetName() == child.GetName() && fmt.Sprintf("%T", observed) == fmt.Sprintf("%T", child) {
			return observed
		}
	}
	return nil
}
