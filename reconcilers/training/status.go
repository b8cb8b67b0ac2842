package training

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// setCounts counts the pods of each role, in the order of the spec.
func (p *planner) setCounts() {
	roles := make([]v1.RoleStatus, 0, len(p.census.crews))
	var restarts int32
	for i := range p.job.Spec.Roles {
		crew := p.census.crew(p.job.Spec.Roles[i].Name)
		if crew == nil {
			continue
		}
		status := p.roleStatus(crew.role.Name)
		status.Replicas = new(crew.wanted())
		status.Active = new(crew.count(pods.Active))
		status.Ready = new(crew.ready())
		status.Succeeded = new(crew.count(pods.Succeeded))
		status.Failed = new(crew.failedForGood())
		status.Restarts = new(ptr.Deref(status.Restarts, 0))
		status.CompletedIndexes = p.completed(crew)
		restarts += *status.Restarts
		roles = append(roles, *status)
	}
	p.status.Roles = roles
	p.status.Restarts = new(restarts)
	p.setRolesReady()
	p.setElastic()
}

// setRolesReady says how many of the wanted pods are ready or have succeeded.
func (p *planner) setRolesReady() {
	var ready, wanted int32
	for _, role := range p.status.Roles {
		ready += ptr.Deref(role.Ready, 0) + ptr.Deref(role.Succeeded, 0)
		wanted += ptr.Deref(role.Replicas, 0)
	}
	p.status.RolesReady = fmt.Sprintf("%d/%d", ready, wanted)
}

// setElastic fills in what the scale subresource shows.
func (p *planner) setElastic() {
	crew := p.census.crew(v1.RoleWorker)
	if p.job.Spec.Elastic == nil || crew == nil {
		p.status.Elastic = nil
		return
	}
	var there int32
	for _, pod := range crew.pods() {
		if pod.DeletionTimestamp == nil {
			there++
		}
	}
	p.status.Elastic = &v1.ElasticStatus{Replicas: new(there), Selector: roleSelector(p.job, v1.RoleWorker)}
}

// countRemaining counts the pods of a finished job that still run. What has
// succeeded or failed by then stays as it was when the job finished.
func (p *planner) countRemaining() {
	for i := range p.status.Roles {
		status := &p.status.Roles[i]
		crew := p.census.crew(status.Name)
		if crew == nil {
			continue
		}
		var running, ready int32
		for _, m := range crew.members {
			if m.State == pods.Active && !p.deleting[m.pod.UID] {
				running++
				if m.Ready {
					ready++
				}
			}
		}
		status.Active, status.Ready = new(running), new(ready)
	}
	p.setRolesReady()
	if p.status.Elastic != nil {
		p.setElastic()
	}
}

// setProgress sets the phase and the conditions of a job that goes on, from
// what its pods are doing.
func (p *planner) setProgress() {
	lead := p.framework.leads(p.census)
	runs := lead != nil && lead.count(pods.Active) > 0
	restarting := p.gangRestarting || p.census.any((*member).replaced) ||
		(isTrue(p.status.Conditions, v1.TrainingJobRestartingCondition) && !p.recovered(runs))
	switch {
	case restarting:
		p.status.Phase = v1.PhaseRestarting
		reason, message := v1.TrainingJobPodFailedReason, "a failed pod is being replaced"
		if gangRestarts(p.job) {
			reason, message = v1.TrainingJobGangRestartingReason, "a pod failed or was lost: all pods are being replaced"
		}
		p.setCondition(v1.TrainingJobRunningCondition, metav1.ConditionFalse, v1.TrainingJobRestartingReason, message)
		p.setCondition(v1.TrainingJobRestartingCondition, metav1.ConditionTrue, reason, message)
	case runs:
		p.status.Phase = v1.PhaseRunning
		p.setCondition(v1.TrainingJobRunningCondition, metav1.ConditionTrue, v1.TrainingJobRunningReason,
			fmt.Sprintf("pods of role %s run", lead.role.Name))
		p.settleRestarting(v1.TrainingJobRunningReason, "the job runs")
	default:
		p.status.Phase = v1.PhaseCreating
		message := "the pods do not run yet"
		if why := p.waitsFor(); why != "" {
			message += ": " + why
		}
		if lead == nil {
			p.status.Phase = v1.PhasePending
			message = "the job wants no pods"
		}
		p.settle(v1.TrainingJobPodsPendingReason, message)
	}
}

// waitsFor says what keeps a pod from starting, empty if nothing is known to. Of
// several pods it is the last: pods start in their order, and so it changes least.
func (p *planner) waitsFor() string {
	for _, crew := range slices.Backward(p.census.crews) {
		for _, m := range slices.Backward(crew.members) {
			if m.State != pods.Pending {
				continue
			}
			if why := pods.Waits(m.pod); why != "" {
				return why
			}
		}
	}
	return ""
}

// recovered says whether a job that was restarting is whole again. An elastic
// one need not wait for workers above its minimum.
func (p *planner) recovered(runs bool) bool {
	for _, crew := range p.census.crews {
		least := crew.wanted()
		if elastic := p.job.Spec.Elastic; elastic != nil && crew.role.Name == v1.RoleWorker && runs {
			least = min(least, ptr.Deref(elastic.MinReplicas, least))
		}
		if crew.count(pods.Active)+crew.count(pods.Succeeded)+crew.failedForGood() < least {
			return false
		}
	}
	return true
}

// settle makes a job that does not run say so and why.
func (p *planner) settle(reason, message string) {
	p.setCondition(v1.TrainingJobRunningCondition, metav1.ConditionFalse, reason, message)
	p.settleRestarting(reason, message)
}

// settleRestarting ends a restart. A job that never had one does not mention it.
func (p *planner) settleRestarting(reason, message string) {
	if meta.FindStatusCondition(p.status.Conditions, v1.TrainingJobRestartingCondition) != nil {
		p.setCondition(v1.TrainingJobRestartingCondition, metav1.ConditionFalse, reason, message)
	}
}

func (p *planner) setCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: p.job.Generation, LastTransitionTime: p.now,
	})
}

func isTrue(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
}

func (c *crew) ready() int32 {
	var n int32
	for _, m := range c.members {
		if m.State == pods.Active && m.Ready {
			n++
		}
	}
	return n
}

func (c *crew) failedForGood() int32 {
	var n int32
	for _, m := range c.members {
		if m.failedForGood() {
			n++
		}
	}
	return n
}

// countsOnly says whether two statuses differ in nothing but counts of pods.
// Restarts are no such count: what is deleted next depends on them.
func countsOnly(before, after *v1.TrainingJobStatus) bool {
	return equality.Semantic.DeepEqual(withoutCounts(before), withoutCounts(after))
}

func withoutCounts(status *v1.TrainingJobStatus) *v1.TrainingJobStatus {
	status = status.DeepCopy()
	status.RolesReady, status.Elastic = "", nil
	if c := meta.FindStatusCondition(status.Conditions, v1.TrainingJobGangScheduledCondition); c != nil {
		// It tells how many pods are placed.
		c.Message = ""
	}
	for i := range status.Roles {
		role := &status.Roles[i]
		role.Active, role.Ready, role.Succeeded, role.Failed = nil, nil, nil, nil
		role.CompletedIndexes = ""
	}
	return status
}
