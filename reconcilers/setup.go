package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// Options are what an operator may set. The zero value is good.
type Options struct {
	// MaxConcurrentReconciles is how many objects of the kind are reconciled at
	// once; 1 when zero.
	MaxConcurrentReconciles int
	// RateLimiter delays objects that failed; controller-runtime's default,
	// from 5 ms to 1000 s by object, when nil.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
	// Period is how often every object is looked at without an event; 5 minutes
	// when zero.
	Period time.Duration
	// Clock is the time; the real one when nil.
	Clock clock.PassiveClock
}

// CacheOptions returns how a manager's cache must hold children: only those
// that are ours, without what nobody reads; lean is Kind.Lean, which kinds that
// have children of one kind must share. A kind may be given several times.
func CacheOptions(lean func(plan.Object), children ...plan.Object) map[client.Object]cache.ByObject {
	options := make(map[client.Object]cache.ByObject, len(children))
	given := map[reflect.Type]bool{}
	for _, child := range children {
		if kind := reflect.TypeOf(child); !given[kind] {
			given[kind] = true
			options[child] = cache.ByObject{Label: ours(), Transform: stripChild(lean)}
		}
	}
	return options
}

// ours selects the children that are ours.
func ours() labels.Selector {
	return labels.SelectorFromSet(labels.Set{v1.ManagedByLabel: v1.ManagedByValue})
}

// stripChild drops what nobody reads of a child from the cache: managed fields,
// the content of a Secret, which was generated and is none of our business, and
// what the kind has no use for.
func stripChild(lean func(plan.Object)) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if secret, ok := object.(*corev1.Secret); ok && secret.Labels[v1.ManagedByLabel] == v1.ManagedByValue {
			secret.Data = nil
		}
		if child, ok := object.(plan.Object); ok && lean != nil {
			lean(child)
		}
		return cache.TransformStripManagedFields()(object)
	}
}

// Setup registers a kind with a manager. The manager's cache must have been
// made with CacheOptions for the kinds of children in kind.Owns.
func Setup[T plan.Object, S any](mgr ctrl.Manager, kind plan.Kind[T, S], options Options) error {
	gvk, err := apiutil.GVKForObject(kind.New(), mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("failed to find the kind of %T: %w", kind.New(), err)
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(kind.Name).
		For(kind.New(), builder.WithPredicates(exceptStatus(kind))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: options.MaxConcurrentReconciles,
			RateLimiter:             options.RateLimiter,
		})
	for _, child := range kind.Owns {
		b = b.Owns(child)
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), child, ownerIndex(kind.Name), ownerUID(gvk.Kind)); err != nil {
			return fmt.Errorf("failed to index %T by its owner: %w", child, err)
		}
	}
	l := newLoop(kind, mgr.GetClient(), mgr.GetAPIReader(), options)
	l.recorder = mgr.GetEventRecorder("penstock-" + kind.Name)
	c, err := b.Build(l)
	if err != nil {
		return fmt.Errorf("failed to set up the controller of %s: %w", kind.Name, err)
	}
	if len(kind.OwnsIfServed) == 0 {
		return nil
	}
	follower, err := newFollower(mgr, c, kind.New(), kind.Name, kind.OwnsIfServed)
	if err != nil {
		return err
	}
	l.served = follower.served
	if err := mgr.Add(follower); err != nil {
		return fmt.Errorf("failed to follow which kinds are served: %w", err)
	}
	return nil
}

func newLoop[T plan.Object, S any](kind plan.Kind[T, S], c client.Client, live client.Reader, options Options) *loop[T, S] {
	l := &loop[T, S]{
		kind:         kind,
		client:       c,
		live:         live,
		clock:        options.Clock,
		period:       options.Period,
		expectations: newExpectations(),
		handedOver:   &once{},
		served:       func() ([]servedKind, bool) { return nil, true },
	}
	if l.clock == nil {
		l.clock = clock.RealClock{}
	}
	if l.period == 0 {
		l.period = 5 * time.Minute
	}
	return l
}

// exceptStatus filters out updates that change nothing but the status: they are
// the loop's own, and a pass for each would find nothing to do.
//
// It compares everything else rather than the generation, because the spec of v1
// can change without a new one: what conversion keeps in an annotation is part
// of v1's spec and of v1alpha1's metadata.
func exceptStatus[T plan.Object, S any](kind plan.Kind[T, S]) predicate.Predicate {
	strip := func(object client.Object) (T, bool) {
		typed, ok := object.DeepCopyObject().(T)
		if ok {
			var none S
			*kind.Status(typed) = none
			typed.SetResourceVersion("")
			typed.SetManagedFields(nil)
		}
		return typed, ok
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if e.ObjectOld == nil || e.ObjectNew == nil || e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
			return true
		}
		before, ok := strip(e.ObjectOld)
		after, ok2 := strip(e.ObjectNew)
		return !ok || !ok2 || !equality.Semantic.DeepEqual(before, after)
	}}
}
