package training

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

func suspended(job *v1.TrainingJob) bool { return ptr.Deref(runPolicy(job).Suspend, false) }

// planSuspended deletes every child, whatever the cleanPodPolicy: suspension is
// meant to give the accelerators back. The status is kept, with no pods in it.
func (p *planner) planSuspended() {
	for _, child := range p.observed.Children {
		p.remove(child, "the job is suspended")
	}
	// There is nothing to place.
	meta.RemoveStatusCondition(&p.status.Conditions, v1.TrainingJobGangScheduledCondition)
	p.countRestartsInPlace()
	p.setCounts()
	for i := range p.status.Roles {
		role := &p.status.Roles[i]
		role.Active, role.Ready, role.Succeeded, role.Failed = ptr.To[int32](0), ptr.To[int32](0), ptr.To[int32](0), ptr.To[int32](0)
		role.CompletedIndexes = ""
	}
	p.setRolesReady()
	if !isTrue(p.status.Conditions, v1.TrainingJobSuspendedCondition) {
		p.event(jobSuspended())
	}
	p.status.Phase = v1.PhaseSuspended
	p.setCondition(v1.TrainingJobCreatedCondition, metav1.ConditionTrue, v1.TrainingJobCreatedReason, "the job was seen")
	message := "the job is suspended: its pods are deleted"
	if !suspended(p.job) {
		message = "the job starts again when its pods from before are gone"
	}
	p.setCondition(v1.TrainingJobSuspendedCondition, metav1.ConditionTrue, v1.TrainingJobSuspendedReason, message)
	p.settle(v1.TrainingJobSuspendedReason, "the job is suspended")
}

// leaving says whether a resumed job still has pods from before. It starts when
// they are gone: their names are taken, what they did belongs to the past, and
// peers of one run should start together.
func (p *planner) leaving() bool {
	return isTrue(p.status.Conditions, v1.TrainingJobSuspendedCondition) &&
		len(plan.ChildrenOf[*corev1.Pod](p.observed)) > 0
}

// start notes when the job starts. A resumed job starts anew: with the whole of
// its deadline and of its backoff limit.
func (p *planner) start() {
	p.setCondition(v1.TrainingJobCreatedCondition, metav1.ConditionTrue, v1.TrainingJobCreatedReason, "the job was seen")
	if isTrue(p.status.Conditions, v1.TrainingJobSuspendedCondition) {
		p.setCondition(v1.TrainingJobSuspendedCondition, metav1.ConditionFalse, v1.TrainingJobResumedReason, "the job was resumed")
		p.event(jobResumed())
		for i := range p.status.Roles {
			p.status.Roles[i].Restarts, p.status.Roles[i].Observed = nil, nil
		}
		p.status.StartTime = nil
	}
	if p.status.StartTime == nil {
		p.status.StartTime = new(p.now)
	}
}
