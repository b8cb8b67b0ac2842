package ray

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// PlanInvalid decides what becomes of a cluster whose spec is not valid: see
// plan.Kind.
func PlanInvalid(cluster *v1.RayCluster, observed plan.Observed, now time.Time) plan.Result[v1.RayClusterStatus] {
	p := newPlanner(cluster, observed, now)
	if p.suspends() {
		p.planSuspension()
	}
	if !p.hasPods() {
		meta.RemoveStatusCondition(&p.status.Conditions, v1.GangScheduledCondition)
	}
	p.setCounts()
	p.status.Resources = p.totals()
	p.setHead()
	p.setHeadReady()
	if told := meta.FindStatusCondition(p.status.Conditions, v1.RayClusterUpgradingCondition); told != nil && told.Status == metav1.ConditionTrue && !p.suspends() {
		p.setCondition(v1.RayClusterUpgradingCondition, metav1.ConditionTrue, v1.RayClusterTemplateChangedReason, "pods of an older template are replaced when the spec is valid")
	}
	reason, message := p.unready()
	if reason != "" && !p.suspends() {
		message += ", and none is made while the spec is not valid"
	}
	p.setSuspended()
	p.setReady(reason, message)
	p.setProvisioned(reason == "")
	p.status.Phase = p.phase(reason)
	if reason != "" && !p.suspends() {
		// Nothing is being made, restarted or scaled.
		p.status.Phase = v1.PhasePending
	}
	p.confirm()
	p.status.ObservedGeneration = cluster.Generation
	p.result.Status = *p.status
	return p.result
}
