package reconcilers

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
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
	for _, generated := range p.result.Generate {
		if err := p.settle(p.generate(ctx, generated)); err != nil {
			return err
		}
	}
	leading, others := p.result.Create[:p.result.Leading], p.result.Create[p.result.Leading:]
	if err := p.createAll(ctx, leading); err != nil || len(leading) > 0 && p.fault != nil {
		return err
	}
	return p.createAll(ctx, others)
}

// generate fills in and creates a child that has a random part. A failure names
// the generator and nothing of what it made.
func (p *pass[T, S]) generate(ctx context.Context, generated plan.Generated) (*fault, error) {
	generator, ok := p.kind.Generators[generated.Generator]
	if !ok {
		return nil, fmt.Errorf("failed to find the generator %q", generated.Generator)
	}
	if err := generator(generated.Child); err != nil {
		return nil, wrap("run generator", generated.Generator, err)
	}
	return p.create(ctx, generated.Child)
}

// settle sorts the errors of making a child: those that stand become the fault
// of the pass, the rest is returned and backs off. Of a fault that the status
// does not tell of yet an event tells, once.
func (p *pass[T, S]) settle(f *fault, err error) error {
	if f != nil && p.fault == nil {
		p.fault = f
		if !f.silent && !p.isTold(f) {
			p.emit(childRefused(f.reason, f.message))
		}
	}
	return err
}

// apply server-side applies a child if it is not as it should be. In steady
// state that is never.
func (p *pass[T, S]) apply(ctx context.Context, child runtime.ApplyConfiguration) (*fault, error) {
	wanted, err := p.ownedFields(child)
	if err != nil {
		return nil, err
	}
	gvk, key := wanted.GroupVersionKind(), client.ObjectKeyFromObject(wanted)
	current := p.find(gvk, key.Name)
	var fields map[string]any
	switch {
	case current == nil:
		// The cache holds only what is ours. Applying would take over an
		// object of somebody else's that has the name.
		if f, err := p.foreign(ctx, gvk, key); f != nil || err != nil {
			return f, err
		}
	case current.GetDeletionTimestamp() != nil:
		return nil, nil
	default:
		if fields, err = fieldsOf(current); err != nil {
			return nil, err
		}
		if covers(fields, wanted) {
			return p.prune(ctx, fields, wanted)
		}
	}
	log.FromContext(ctx).V(1).Info("Applying child", gvk.Kind, klog.KRef(key.Namespace, key.Name))
	err = p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner(v1.FieldManager), client.ForceOwnership)
	if err != nil {
		return p.refusal(gvk.Kind, err)
	}
	if current == nil {
		p.expectations.expectCreated(p.key(), wanted.GetUID(), p.clock.Now())
		return nil, nil
	}
	return p.prune(ctx, fields, wanted)
}

// prune takes from a child what others have added where it changes the meaning
// of what is ours.
func (p *pass[T, S]) prune(ctx context.Context, fields map[string]any, wanted *unstructured.Unstructured) (*fault, error) {
	patch, err := surplus(fields, wanted)
	if err != nil || patch == nil {
		return nil, err
	}
	child := &metav1.PartialObjectMetadata{}
	child.SetGroupVersionKind(wanted.GroupVersionKind())
	child.SetNamespace(wanted.GetNamespace())
	child.SetName(wanted.GetName())
	log.FromContext(ctx).V(1).Info("Taking back what others added to child", wanted.GetKind(), klog.KObj(child))
	if err := p.client.Patch(ctx, child, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1.FieldManager)); err != nil {
		return p.refusal(wanted.GetKind(), err)
	}
	return nil, nil
}

// createAll creates children, several at once, and stops at the first that
// cannot be made. Of several such faults that of the first child is told, so
// that trying again tells the same.
func (p *pass[T, S]) createAll(ctx context.Context, children []plan.Object) error {
	faults, errs := make([]*fault, len(children)), make([]error, len(children))
	var stop atomic.Bool
	var group sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i, child := range children {
		slots <- struct{}{}
		if stop.Load() || p.fault != nil {
			break
		}
		group.Go(func() {
			defer func() { <-slots }()
			faults[i], errs[i] = p.create(ctx, child)
			if faults[i] != nil || errs[i] != nil {
				stop.Store(true)
			}
		})
	}
	group.Wait()
	var failed error
	for i := range children {
		if err := p.settle(faults[i], errs[i]); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// create creates a child by POST. One that exists already is never touched: it
// is either ours and not in the cache yet, or somebody else's.
func (p *pass[T, S]) create(ctx context.Context, child plan.Object) (*fault, error) {
	gvk, err := apiutil.GVKForObject(child, p.client.Scheme())
	if err != nil {
		return nil, wrap("find the kind of", fmt.Sprintf("%T", child), err)
	}
	if err := controllerutil.SetControllerReference(p.object, child, p.client.Scheme()); err != nil {
		return nil, wrap("own", gvk.Kind, err)
	}
	log.FromContext(ctx).V(1).Info("Creating child", gvk.Kind, ref(child))
	err = p.client.Create(ctx, child, client.FieldOwner(v1.FieldManager))
	switch {
	case err == nil:
		p.expectations.expectCreated(p.key(), child.GetUID(), p.clock.Now())
		return nil, nil
	case apierrors.IsAlreadyExists(err):
		return p.foreign(ctx, gvk, client.ObjectKeyFromObject(child))
	default:
		return p.refusal(gvk.Kind, err)
	}
}

// foreign returns a fault if an object with a child's name exists and is not
// ours.
func (p *pass[T, S]) foreign(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) (*fault, error) {
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(gvk)
	switch err := p.live.Get(ctx, key, there); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, wrap("get", gvk.Kind, err)
	case metav1.IsControlledBy(there, p.object):
		return p.findAgain(ctx, gvk.Kind, there)
	default:
		return p.notOwned(gvk.Kind, key.Name), nil
	}
}

// findAgain labels a child that is ours and does not say so, where somebody has
// edited its labels: only what has the label is observed.
func (p *pass[T, S]) findAgain(ctx context.Context, kind string, child *metav1.PartialObjectMetadata) (*fault, error) {
	if child.Labels[v1.ManagedByLabel] == v1.ManagedByValue || child.DeletionTimestamp != nil {
		return nil, nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:%q}}}`, child.UID, v1.ManagedByLabel, v1.ManagedByValue)
	log.FromContext(ctx).V(1).Info("Labelling child that lacks the label", kind, klog.KObj(child))
	if err := p.client.Patch(ctx, child, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1.FieldManager)); err != nil {
		return p.refusal(kind, err)
	}
	return nil, nil
}

// refusal turns the API server's answer to a child into a fault or an error.
func (p *pass[T, S]) refusal(kind string, err error) (*fault, error) {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// Everything goes with the namespace; there is nobody to tell.
		return &fault{silent: true, retry: p.period}, nil
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return rejected(kind, err), nil
	case apierrors.IsForbidden(err):
		// A quota or a policy: both may change, so it is tried again.
		return forbidden(kind, err), nil
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
		client.Preconditions{UID: new(p.object.GetUID()), ResourceVersion: new(p.object.GetResourceVersion())},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(err)
}

// ownedFields returns what server-side apply shall own of a child, its owner
// included: the controller reference leads the child's events back to the
// object and makes it go with it.
func (p *pass[T, S]) ownedFields(child runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	if err != nil {
		return nil, wrap("convert", fmt.Sprintf("%T", child), err)
	}
	gvk, err := apiutil.GVKForObject(p.object, p.client.Scheme())
	if err != nil {
		return nil, wrap("find the kind of", fmt.Sprintf("%T", p.object), err)
	}
	wanted := &unstructured.Unstructured{Object: fields}
	wanted.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(p.object, gvk)})
	return wanted, nil
}

// find returns the observed child of a kind and name, or nil.
func (p *pass[T, S]) find(gvk schema.GroupVersionKind, name string) plan.Object {
	for _, child := range p.observed.Children {
		if child.GetName() != name {
			continue
		}
		if kind, err := apiutil.GVKForObject(child, p.client.Scheme()); err == nil && kind == gvk {
			return child
		}
	}
	return nil
}
