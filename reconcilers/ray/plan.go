// Package ray plans RayClusters: which pods, services and rights a cluster needs
// now, what its status is, and when to look again.
//
// It is step 9 of the flow and pure: it must not import a client or
// controller-runtime, and must not read the clock. What is made, when and why is
// told in docs/ray.md.
package ray

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/gangs"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// Plan decides what a Ray cluster needs, given its children and the time. The
// cluster must have been defaulted and validated, unless it is being deleted. It
// is deterministic and changes none of its arguments.
func Plan(cluster *v1.RayCluster, observed plan.Observed, now time.Time) plan.Result[v1.RayClusterStatus] {
	p := newPlanner(cluster, observed, now)
	switch {
	case cluster.DeletionTimestamp != nil:
		p.planDeletion()
	case p.suspends():
		p.planChildren()
		p.planSuspension()
	default:
		p.planChildren()
		p.planGang()
		p.planPods()
		p.reportGang()
	}
	if cluster.DeletionTimestamp == nil {
		p.result.Finalize = usesRedis(cluster)
		p.setStatus()
	} else {
		p.setDeletionStatus()
	}
	p.status.ObservedGeneration = cluster.Generation
	p.result.Status = *p.status
	return p.result
}

// planner holds one planning: what is known, and the result as it grows.
type planner struct {
	cluster  *v1.RayCluster
	observed plan.Observed
	census   *census
	now      metav1.Time

	// status is a copy that becomes the status of the result.
	status *v1.RayClusterStatus
	result plan.Result[v1.RayClusterStatus]
	// hashes are those of the roles' templates.
	hashes map[v1.RoleName]string
	// deleting holds what the result deletes.
	deleting map[types.UID]bool
	// ended are the pods that are replaced since they have ended.
	ended []pods.Replaced
	// upgrading says that pods of an older template are being replaced.
	upgrading bool
	// gang is how the pods are placed all together; nil where they are not.
	gang *gangs.Gang
	// ungrouped says that the cluster asks for that, and its pods were made
	// without.
	ungrouped bool
}

func newPlanner(cluster *v1.RayCluster, observed plan.Observed, now time.Time) *planner {
	return &planner{
		cluster:  cluster,
		observed: observed,
		census:   takeCensus(cluster, plan.ChildrenOf[*corev1.Pod](observed)),
		// Stored times have no fractions of a second; a time that has one would
		// differ from itself after a round trip.
		now:      metav1.NewTime(now.Truncate(time.Second)),
		status:   cluster.Status.DeepCopy(),
		hashes:   map[v1.RoleName]string{},
		deleting: map[types.UID]bool{},
	}
}

// planChildren asks for what the pods need and what leads to them. It stays
// while the cluster is suspended, so that addresses and tokens do not change.
func (p *planner) planChildren() {
	p.planAccount()
	p.planToken()
	p.planServices()
	p.planIngress()
}

// remove deletes children that are not being deleted yet.
func (p *planner) remove(child plan.Object, reason string) {
	if child.GetDeletionTimestamp() != nil || p.deleting[child.GetUID()] {
		return
	}
	p.deleting[child.GetUID()] = true
	p.result.Delete = append(p.result.Delete, plan.Deletion{Child: child, Reason: reason})
}

// removeUnit deletes the pods of a replica, which from then on only takes up its
// place.
func (p *planner) removeUnit(u *unit, reason string) {
	for _, pod := range u.pods() {
		p.remove(pod, reason)
	}
	u.leaving = true
}

// wakeAt asks for another planning at a time that has not come yet.
func (p *planner) wakeAt(t time.Time) {
	p.result.RequeueAfter = plan.Sooner(p.result.RequeueAfter, max(t.Sub(p.now.Time), time.Second))
}

// autoscales says whether Ray's autoscaler sets the replicas of a cluster.
func autoscales(cluster *v1.RayCluster) bool {
	return cluster.Spec.Autoscaler != nil && cluster.Spec.Autoscaler.Mode == v1.Enabled
}

func suspended(cluster *v1.RayCluster) bool {
	return cluster.Spec.RunPolicy != nil && ptr.Deref(cluster.Spec.RunPolicy.Suspend, false)
}

// headOf returns the role of the head. Validation sees to it that there is one.
func headOf(cluster *v1.RayCluster) *v1.RayRole {
	i := slices.IndexFunc(cluster.Spec.Roles, func(r v1.RayRole) bool { return r.Name == v1.RoleHead })
	if i < 0 {
		return &v1.RayRole{Role: v1.Role{Name: v1.RoleHead}}
	}
	return &cluster.Spec.Roles[i]
}

func isTrue(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
}
