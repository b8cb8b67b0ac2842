package training

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// PlanInvalid decides what becomes of a job whose spec is not valid: see
// plan.Kind. What its pods have done is judged when the spec is mended, as what
// it means depends on that.
func PlanInvalid(job *v1.TrainingJob, observed plan.Observed, now time.Time) plan.Result[v1.TrainingJobStatus] {
	p := newPlanner(job, observed, now)
	wasSuspended := isTrue(p.status.Conditions, v1.TrainingJobSuspendedCondition)
	switch {
	case suspended(job):
		p.planSuspended()
	case wasSuspended:
		p.planSuspended()
		p.setCondition(v1.TrainingJobSuspendedCondition, metav1.ConditionTrue, v1.TrainingJobSuspendedReason, "the job starts again when its spec is valid")
	default:
		p.setCounts()
		p.setWithoutPlan()
	}
	p.status.ObservedGeneration = job.Generation
	p.result.Status = *p.status
	return p.result
}

// setWithoutPlan says whether a job runs of which nothing is made.
func (p *planner) setWithoutPlan() {
	if p.census.any(func(m *member) bool { return m.State == pods.Active }) {
		if p.status.Phase == "" {
			p.status.Phase = v1.PhasePending
		}
		return
	}
	p.status.Phase = v1.PhasePending
	meta.RemoveStatusCondition(&p.status.Conditions, v1.TrainingJobGangScheduledCondition)
	if p.status.StartTime != nil {
		p.settle(v1.TrainingJobPodsPendingReason, "no pod runs, and none is made while the spec is not valid")
	}
}
