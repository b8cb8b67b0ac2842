package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

const (
	// coalesce is how long a change of nothing but counts waits for others.
	coalesce = time.Second
	// notOwnedRetry is how often to look whether a name that somebody else has
	// is free: no event tells. Often it is the pod of an earlier object of the
	// same name that is still going.
	notOwnedRetry = 5 * time.Second
	// forbiddenRetry is how often to try again what a quota or a policy forbids:
	// no event tells when it no longer does.
	forbiddenRetry = 10 * time.Second
	// maxMessage is the length that the API server allows for a condition's
	// message, less a margin.
	maxMessage = 30000
)

// fault is why children cannot be made, until the object or its surroundings
// change.
type fault struct {
	reason  string
	message string
	// retry is when to try again.
	retry time.Duration
	// silent faults are not told to anybody: the namespace is going.
	silent bool
}

func invalidSpec(faults field.ErrorList) *fault {
	return &fault{reason: v1.InvalidSpecReason, message: faults.ToAggregate().Error()}
}

func (p *pass[T, S]) notOwned(kind, name string) *fault {
	other := fmt.Sprintf("make the %s under another name", p.kind.Name)
	if !strings.HasPrefix(name, p.object.GetName()) {
		other = "write another name in its place" // It is one that the author chose.
	}
	return &fault{
		reason:  v1.ChildNotOwnedReason,
		message: fmt.Sprintf("%s %s exists and does not belong to this %s: delete it, or %s", kind, name, p.kind.Name, other),
		retry:   notOwnedRetry,
	}
}

func rejected(kind string, err error) *fault {
	return &fault{
		reason:  v1.ChildRejectedReason,
		message: fmt.Sprintf("the API server refuses a %s: %s", kind, err),
		retry:   time.Minute,
	}
}

func forbidden(kind string, err error) *fault {
	return &fault{
		reason:  v1.ChildForbiddenReason,
		message: fmt.Sprintf("the API server forbids a %s: %s", kind, err),
		retry:   forbiddenRetry,
	}
}

// writeStatus writes the status if it changed. It returns how long to wait for
// the rest: a change of nothing but counts is written after a second, so that a
// burst of them costs one write, or none if something else is written before. Of
// an object that is about to go nothing is written any more.
func (p *pass[T, S]) writeStatus(ctx context.Context) (time.Duration, error) {
	if isBeingDeleted(p.object) && !p.result.Finalize {
		return 0, nil
	}
	before, after := p.kind.Status(p.object), &p.result.Status
	p.reportFault(after)
	if equality.Semantic.DeepEqual(before, after) {
		p.expectations.countsAreWritten(p.key())
		return 0, nil
	}
	now := p.clock.Now()
	if p.kind.CountsOnly(before, after) {
		if wait := p.expectations.waitForCounts(p.key(), now); wait > 0 {
			return wait, nil
		}
	}
	changed := p.object.DeepCopyObject().(T)
	*p.kind.Status(changed) = *after
	// The version makes sure that the status was made from the newest object:
	// counters would go wrong otherwise. A conflict backs off and plans again.
	patch := client.MergeFromWithOptions(p.object, client.MergeFromWithOptimisticLock{})
	err := p.client.Status().Patch(ctx, changed, patch, client.FieldOwner(v1.FieldManager))
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, wrap("write status of", p.kind.Name, err)
	}
	p.expectations.expectWritten(p.key(), p.object.GetResourceVersion(), now)
	// A deletion of the object itself goes by the version that was written.
	p.object = changed
	return 0, nil
}

// reportFault sets the condition that tells of a fault, and ends one that the
// loop set and that is over.
func (p *pass[T, S]) reportFault(status *S) {
	conditions := p.kind.Common(status).Conditions
	condition := metav1.Condition{
		Type:               v1.InvalidCondition,
		ObservedGeneration: p.object.GetGeneration(),
		LastTransitionTime: metav1.NewTime(p.clock.Now().Truncate(time.Second)),
	}
	switch current := meta.FindStatusCondition(*conditions, v1.InvalidCondition); {
	case p.fault != nil && p.fault.silent:
		return
	case p.fault != nil:
		condition.Status, condition.Reason = metav1.ConditionTrue, p.fault.reason
		condition.Message = truncate(p.fault.message, maxMessage)
	case current == nil || current.Status != metav1.ConditionTrue || !isOurs(current.Reason):
		return
	default:
		if p.kind.Finished(status) {
			// It was so when the object finished, and nobody mended it: nothing is
			// made any more.
			return
		}
		condition.Status, condition.Reason = metav1.ConditionFalse, v1.ValidReason
		condition.Message = "the fault is mended"
		if current.Reason != v1.InvalidSpecReason && p.makesNothing() {
			condition.Message = "nothing has to be made"
		}
	}
	meta.SetStatusCondition(conditions, condition)
}

// makesNothing says whether nothing was to be made, so that nothing could fail.
func (p *pass[T, S]) makesNothing() bool {
	return len(p.result.Apply)+len(p.result.Generate)+len(p.result.Create) == 0
}

// isTold says whether the object's status has told of a fault already.
func (p *pass[T, S]) isTold(f *fault) bool {
	told := meta.FindStatusCondition(*p.kind.Common(p.kind.Status(p.object)).Conditions, v1.InvalidCondition)
	return told != nil && told.Status == metav1.ConditionTrue && told.Reason == f.reason && told.Message == truncate(f.message, maxMessage)
}

// isOurs says whether a reason is one that the loop gives, and not a kind.
func isOurs(reason string) bool {
	return slices.Contains([]string{v1.InvalidSpecReason, v1.ChildNotOwnedReason, v1.ChildRejectedReason, v1.ChildForbiddenReason}, reason)
}
