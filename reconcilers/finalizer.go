package reconcilers

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

func isBeingDeleted(object plan.Object) bool { return object.GetDeletionTimestamp() != nil }

// isHeld says whether an object has the kind's finalizer.
func (l *loop[T, S]) isHeld(object T) bool {
	return l.kind.Finalizer != "" && controllerutil.ContainsFinalizer(object, l.kind.Finalizer)
}

// hold puts the finalizer on an object that needs it, before anything is made
// that its deletion has to see to.
func (p *pass[T, S]) hold(ctx context.Context) error {
	if !p.result.Finalize || p.isHeld(p.object) || isBeingDeleted(p.object) {
		return nil
	}
	log.FromContext(ctx).V(1).Info("Adding finalizer", "finalizer", p.kind.Finalizer)
	return p.writeFinalizers(ctx, func(object T) { controllerutil.AddFinalizer(object, p.kind.Finalizer) })
}

// release takes the finalizer off an object that does not need it any more, or
// whose deletion cannot be seen to: in a namespace that goes, nothing is made.
func (p *pass[T, S]) release(ctx context.Context) error {
	doomed := isBeingDeleted(p.object) && p.fault != nil && p.fault.silent
	if p.result.Finalize && !doomed || !p.isHeld(p.object) {
		return nil
	}
	log.FromContext(ctx).V(1).Info("Removing finalizer", "finalizer", p.kind.Finalizer)
	return p.writeFinalizers(ctx, func(object T) { controllerutil.RemoveFinalizer(object, p.kind.Finalizer) })
}

func (p *pass[T, S]) writeFinalizers(ctx context.Context, change func(T)) error {
	changed := p.object.DeepCopyObject().(T)
	change(changed)
	// The whole list is written: the version guards what others put into it.
	patch := client.MergeFromWithOptions(p.object, client.MergeFromWithOptimisticLock{})
	err := p.client.Patch(ctx, changed, patch, client.FieldOwner(v1.FieldManager))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return wrap("write finalizers of", p.kind.Name, err)
	}
	p.expectations.expectWritten(p.key(), p.object.GetResourceVersion(), p.clock.Now())
	p.object = changed
	return nil
}
