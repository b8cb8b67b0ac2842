package training

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// verdict ends a job.
type verdict struct {
	// condition is Succeeded or Failed.
	condition string
	reason    string
	message   string
}

// judge returns how the job ends now, or nil if it goes on.
//
// When several things are so at once the order decides: success first, as the
// result of the training is there; then what happened to pods, role by role in
// the framework's order; then the limits.
func (p *planner) judge() *verdict {
	if p.framework.succeeded(p.census) {
		if v := p.podsMissing(); v != nil {
			return v
		}
		return &verdict{
			condition: v1.TrainingJobSucceededCondition,
			reason:    v1.TrainingJobSucceededReason,
			message:   fmt.Sprintf("the pods of role %s have succeeded", p.framework.leads(p.census).role.Name),
		}
	}
	// What fails when a gang loses a member fails for that.
	if cause := p.gangBreak(); cause == nil || !cause.lost {
		if v := p.podFailed(); v != nil {
			return v
		}
		if v := p.backoffLimitExceeded(); v != nil {
			return v
		}
	}
	return p.deadlineExceeded()
}

// podsMissing fails a job whose deciding pods have succeeded while others could
// not be made at all: what has run is not what was asked for.
func (p *planner) podsMissing() *verdict {
	fault := meta.FindStatusCondition(p.job.Status.Conditions, v1.InvalidCondition)
	if fault == nil || fault.Status != metav1.ConditionTrue || fault.Reason == v1.InvalidSpecReason {
		return nil
	}
	forgiving, _ := p.framework.(forgiving)
	var absent, needed int32
	for _, crew := range p.census.crews {
		missing, least := int32(0), crew.wanted()
		if elastic := p.job.Spec.Elastic; elastic != nil && crew.role.Name == v1.RoleWorker {
			least = min(least, max(ptr.Deref(elastic.MinReplicas, 1), 1))
		}
		for _, m := range crew.members {
			if m.State == pods.Missing && (forgiving == nil || !forgiving.forgives(p.census, m)) {
				missing++
			}
		}
		absent += max(missing-(crew.wanted()-least), 0)
		needed += least
	}
	if absent == 0 {
		return nil
	}
	return failure(v1.TrainingJobPodsMissingReason, fmt.Sprintf(
		"the pods of role %s have succeeded without %d of the job's %d pods, which could not be made: %s",
		p.framework.leads(p.census).role.Name, absent, needed, fault.Message))
}

// podFailed fails the job for a pod that has failed for good.
func (p *planner) podFailed() *verdict {
	forgiving, _ := p.framework.(forgiving)
	for _, crew := range p.census.crews {
		for _, m := range crew.members {
			if m.failedForGood() && (forgiving == nil || !forgiving.forgives(p.census, m)) {
				return failure(v1.TrainingJobPodFailedReason, fmt.Sprintf(
					"pod %s %s, and restartPolicy %s does not restart it", m.pod.Name, m.ending(), m.role.RestartPolicy))
			}
		}
	}
	return nil
}

func failure(reason, message string) *verdict {
	return &verdict{condition: v1.TrainingJobFailedCondition, reason: reason, message: message}
}

// finish ends the job. The terminal condition, the phase and the completion
// time are set here, together, and nowhere else.
func (p *planner) finish(v *verdict) {
	p.setCounts()
	p.setCondition(v.condition, metav1.ConditionTrue, v.reason, v.message)
	switch v.condition {
	case v1.TrainingJobSucceededCondition:
		p.status.Phase = v1.PhaseSucceeded
		p.event(jobSucceeded(v.message))
		p.settle(v1.TrainingJobSucceededReason, "the job has succeeded")
	default:
		p.status.Phase = v1.PhaseFailed
		p.event(jobFailed(v.reason, v.message))
		p.settle(v1.TrainingJobFailedReason, "the job has failed")
	}
	p.status.CompletionTime = new(p.now)
	for i := range p.status.Roles {
		role := &p.status.Roles[i]
		role.Observed = nil
		// No failed pod is replaced any more, whatever its policy.
		role.Failed = new(p.census.crew(role.Name).count(pods.Failed))
	}
	p.planFinished()
}

// planFinished plans a finished job: its pods are cleaned up, the object goes
// when its time to live is over. Of the status only the pods that still run
// are counted on, down to none.
func (p *planner) planFinished() {
	p.cleanUp()
	p.countRemaining()
	p.expire()
}

// finished says whether a status is final.
func finished(status *v1.TrainingJobStatus) bool {
	return isTrue(status.Conditions, v1.TrainingJobSucceededCondition) ||
		isTrue(status.Conditions, v1.TrainingJobFailedCondition)
}

// failedForGood says whether the role's restart policy leaves a failed pod as
// it is. A pod that was lost with its node is replaced under every policy.
func (m *member) failedForGood() bool {
	if m.State != pods.Failed || m.Lost {
		return false
	}
	switch m.role.RestartPolicy {
	case v1.RestartNever:
		return true
	case v1.RestartExitCode:
		// No exit code means that nobody saw the container end: its node went.
		return m.Exit != nil && m.Exit.ExitCode < 128
	default:
		return false
	}
}

// replaced says whether the pod is to be replaced by a new one.
func (m *member) replaced() bool { return m.State == pods.Failed && !m.failedForGood() }

// ending says in words how the pod's main container ended.
func (m *member) ending() string { return pods.Ending(m.Exit, m.pod) }

// done says whether the pods of a role have done their work: all of them, or of
// an elastic role all that ever started, and at least its minimum.
//
// An elastic worker that could not be placed or started does not keep the
// others, which have finished, from being done; one that still runs does, as it
// may be writing its checkpoint, even while it is being deleted.
func (c *crew) done(job *v1.TrainingJob) bool {
	if c == nil || c.wanted() == 0 {
		return false
	}
	n := c.count(pods.Succeeded)
	elastic := job.Spec.Elastic
	if elastic == nil || c.role.Name != v1.RoleWorker {
		return n == c.wanted()
	}
	return n >= max(ptr.Deref(elastic.MinReplicas, 1), 1) && n+c.count(pods.Pending)+c.count(pods.Missing) == c.wanted()
}
