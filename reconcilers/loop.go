// Package reconcilers is the shared loop that turns stored objects into
// children: steps 8 to 10 of the flow. It knows no kind; each kind registers
// what it is and a pure Plan (package plan). The loop is the only code that
// reads and writes children through the API server.
//
// The loop is level-triggered: it looks at what there is and at nothing that
// happened, so a lost event costs time and never correctness.
package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// +kubebuilder:rbac:groups=penstock.dev,resources=trainingjobs,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=penstock.dev,resources=trainingjobs/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=penstock.dev,resources=trainingjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=penstock.dev,resources=rayclusters,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=penstock.dev,resources=rayclusters/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=penstock.dev,resources=rayclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// What Ray's autoscaler is given besides, which only who has it may give:
// +kubebuilder:rbac:groups="",resources=pods;pods/resize,verbs=patch
// What a launcher of MPI is given, which only who has it may give:
// +kubebuilder:rbac:groups="",resources=pods/exec,verbs=get;create
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// Pod groups of the gang schedulers, whichever of them is there:
// +kubebuilder:rbac:groups=scheduling.k8s.io;scheduling.x-k8s.io;scheduling.volcano.sh,resources=podgroups,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// lastWrites bounds the writes of a pass. It is less than what a manager waits
// for its controllers, 30 s, and than the 15 s of a lease.
const lastWrites = 10 * time.Second

// loop reconciles the objects of one kind.
type loop[T plan.Object, S any] struct {
	kind plan.Kind[T, S]
	// client reads from the cache and writes to the API server.
	client client.Client
	// live reads from the API server, where the cache cannot know: it holds
	// only children that are ours.
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	period   time.Duration

	expectations *expectations
	handedOver   *once
	// served returns the kinds of kind.OwnsIfServed that are served now, and
	// false while that is not known yet.
	served func() ([]servedKind, bool)
}

// pass is one reconciling of one object.
type pass[T plan.Object, S any] struct {
	*loop[T, S]
	// object is as stored; its status is what the next one is compared with.
	object T
	// defaulted is a copy with everything filled in.
	defaulted T
	observed  plan.Observed
	result    plan.Result[S]
	// fault is what keeps children from being made, nil if nothing does.
	fault *fault
}

// Reconcile brings what there is closer to what should be. Creations come
// before the status, which tells of them, and deletions after it, since it may
// hold the last that is known of what is deleted.
func (l *loop[T, S]) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := l.kind.New()
	if err := l.client.Get(ctx, request.NamespacedName, object); err != nil {
		l.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if isBeingDeleted(object) && !l.isHeld(object) {
		l.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if l.isHandedOver(object) {
		return ctrl.Result{}, nil
	}
	p := &pass[T, S]{loop: l, object: object}
	if wait, err := p.observe(ctx); err != nil || wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, err
	}
	if !p.prepare() {
		return p.refuse(ctx)
	}
	p.result = l.kind.Plan(p.defaulted, p.observed, l.clock.Now())
	if p.result.Confirm {
		if err := p.observePods(ctx); err != nil {
			return ctrl.Result{}, err
		}
		p.result = l.kind.Plan(p.defaulted, p.observed, l.clock.Now())
	}
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	return p.carryOut(ctx)
}

// carryOut does what was planned.
func (p *pass[T, S]) carryOut(ctx context.Context) (ctrl.Result, error) {
	if err := p.hold(ctx); err != nil {
		return ctrl.Result{}, err
	}
	// What cannot be made keeps nobody from telling what there is, from ending
	// what has come to its end, and from deleting.
	unmade := p.make(ctx)
	wait, err := p.writeStatus(ctx)
	if err != nil {
		return ctrl.Result{}, errors.Join(unmade, err)
	}
	if err := errors.Join(unmade, p.delete(ctx)); err != nil {
		return ctrl.Result{}, err
	}
	if err := p.release(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if p.fault == nil {
		p.emit(p.result.Events...)
	}
	return ctrl.Result{RequeueAfter: p.next(wait)}, nil
}

// prepare defaults and validates the object in memory. What is stored may be
// wrong all the same: admission was off, a backup was restored, an older
// version wrote it. A finished object, or one that is being deleted, needs no
// valid spec to be cleaned up.
func (p *pass[T, S]) prepare() bool {
	p.defaulted = p.object.DeepCopyObject().(T)
	p.kind.Default(p.defaulted)
	if isBeingDeleted(p.object) || p.kind.Finished(p.kind.Status(p.object)) {
		return true
	}
	if faults := p.kind.Validate(p.defaulted); len(faults) > 0 {
		p.fault = invalidSpec(faults)
	}
	return p.fault == nil
}

// uninterrupted returns a context that lets a pass write to its end although
// the process is being stopped. A cancelled call is not a call that was not
// made: the API server deletes a pod that has ended in two steps, and gives up
// between them when the caller is gone.
func uninterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), lastWrites)
}

// refuse says why nothing is made of an invalid object, and what there is of it.
// Its children, if it was valid once, are left alone, unless it is suspended.
func (p *pass[T, S]) refuse(ctx context.Context) (ctrl.Result, error) {
	planned := p.kind.PlanInvalid(p.defaulted, p.observed, p.clock.Now())
	p.result.Status, p.result.Delete, p.result.RequeueAfter = planned.Status, planned.Delete, planned.RequeueAfter
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	wait, err := p.writeStatus(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := p.delete(ctx); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.next(wait)}, nil
}

// isHandedOver says whether another controller reconciles the object. An event
// says so once; the status is the other's.
func (l *loop[T, S]) isHandedOver(object T) bool {
	manager := l.kind.ManagedBy(object)
	// The empty name is nobody's: validation says so.
	if manager == nil || *manager == "" || *manager == v1.ManagedByPenstock {
		return false
	}
	if l.handedOver.first(client.ObjectKeyFromObject(object), object.GetUID()) {
		l.emitFor(object, handedOver(*manager))
	}
	return true
}

// next returns when to reconcile again without an event: when the plan asks for
// it, when what the status waits for is over, or for the periodic pass, which
// sees what no event tells.
func (p *pass[T, S]) next(wait time.Duration) time.Duration {
	after := plan.Sooner(plan.Sooner(p.result.RequeueAfter, wait), p.period)
	if p.fault != nil {
		after = plan.Sooner(after, p.fault.retry)
	}
	return after
}

func (l *loop[T, S]) forget(key client.ObjectKey) {
	l.expectations.forget(key)
	l.handedOver.forget(key)
}

func (p *pass[T, S]) key() client.ObjectKey { return client.ObjectKeyFromObject(p.object) }

// wrap names what failed. Generated names stay out of it: the message may reach
// a condition.
func wrap(verb, kind string, err error) error {
	return fmt.Errorf("failed to %s %s: %w", verb, kind, err)
}

func ref(object plan.Object) klog.ObjectRef {
	return klog.KRef(object.GetNamespace(), object.GetName())
}
