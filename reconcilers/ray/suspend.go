package ray

import (
	"k8s.io/apimachinery/pkg/api/meta"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/gangs"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// suspends says whether the cluster is suspended, or has begun to be and has
// pods left. What has begun is ended: the pods that are left were made for what
// was wanted before, and who suspended them may have given their room away.
func (p *planner) suspends() bool {
	return suspended(p.cluster) || p.isSuspending() && p.hasPods()
}

func (p *planner) isSuspending() bool {
	c := meta.FindStatusCondition(p.cluster.Status.Conditions, v1.RayClusterSuspendedCondition)
	return c != nil && c.Reason == v1.RayClusterSuspendingReason
}

func (p *planner) hasPods() bool { return len(plan.ChildrenOf[*corev1.Pod](p.observed)) > 0 }

// planSuspension deletes every pod, and the group that would place them.
func (p *planner) planSuspension() {
	meta.RemoveStatusCondition(&p.status.Conditions, v1.GangScheduledCondition)
	p.removePods("the cluster is suspended")
	for _, child := range p.observed.Children {
		if gangs.IsPodGroup(child) {
			p.remove(child, "the cluster is suspended")
		}
	}
}

// removePods deletes every pod.
func (p *planner) removePods(reason string) {
	for _, pod := range p.census.strays {
		p.remove(pod, reason)
	}
	for _, u := range p.census.units() {
		p.removeUnit(u, reason)
	}
}
