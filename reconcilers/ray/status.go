package ray

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// setStatus says what the cluster is after what was decided. All of it is made
// from what is observed, but for how often pods were replaced and whether the
// cluster was ready once.
func (p *planner) setStatus() {
	p.setCounts()
	p.status.Resources = p.totals()
	p.setHead()
	p.setHeadReady()
	reason, message := p.unready()
	p.setUpgrading(reason == "")
	p.setSuspended()
	p.setReady(reason, message)
	p.setProvisioned(reason == "")
	p.status.Phase = p.phase(reason)
	p.confirm()
}

// confirm says of the conditions that are told only when they change that they
// are those of the newest generation.
func (p *planner) confirm() {
	for _, kind := range []string{v1.RayClusterSuspendedCondition, v1.RayClusterUpgradingCondition} {
		if told := meta.FindStatusCondition(p.status.Conditions, kind); told != nil {
			told.ObservedGeneration = p.cluster.Generation
		}
	}
}

func (p *planner) setReady(reason, message string) {
	if reason == "" {
		p.setCondition(v1.RayClusterReadyCondition, metav1.ConditionTrue, v1.RayClusterAllPodsReadyReason, "all pods run and are ready")
	} else {
		p.setCondition(v1.RayClusterReadyCondition, metav1.ConditionFalse, reason, message)
	}
}

// setDeletionStatus says what is left of a cluster that is being deleted, and
// what it waits for.
func (p *planner) setDeletionStatus() {
	p.setCounts()
	p.setHead()
	message := "the state of the cluster is being removed from Redis"
	if p.hasPods() {
		message = "the pods of the cluster are being deleted"
	}
	p.setCondition(v1.RayClusterHeadReadyCondition, metav1.ConditionFalse, v1.RayClusterDeletingReason, "the cluster is being deleted")
	p.setCondition(v1.RayClusterReadyCondition, metav1.ConditionFalse, v1.RayClusterDeletingReason, message)
	p.status.Phase = v1.PhaseDeleting
}

// setCounts counts the pods of each role, in the order of the spec. A pod that
// is being deleted counts for nothing.
func (p *planner) setCounts() {
	roles := make([]v1.RoleStatus, 0, len(p.cluster.Spec.Roles))
	var wanted, ready int32
	for i := range p.cluster.Spec.Roles {
		name := p.cluster.Spec.Roles[i].Name
		status, units := p.roleStatus(name), []*unit{p.census.head}
		status.Replicas = new(int32(1))
		if name != v1.RoleHead {
			g := p.group(name)
			units, status.Replicas = g.ordered(), new(p.target(g)*g.hosts)
		}
		var active, readyPods int
		for _, u := range units {
			if !u.leaving {
				active, readyPods = active+u.count(pods.Active), readyPods+u.readyPods()
			}
		}
		status.Active, status.Ready = new(int32(active)), new(int32(readyPods))
		wanted, ready = wanted+*status.Replicas, ready+int32(readyPods)
		roles = append(roles, *status)
	}
	p.status.Roles = roles
	p.status.RolesReady = fmt.Sprintf("%d/%d", ready, wanted)
}

// roleStatus returns the status of a role, making it if there is none.
func (p *planner) roleStatus(name v1.RoleName) *v1.RoleStatus {
	i := slices.IndexFunc(p.status.Roles, func(s v1.RoleStatus) bool { return s.Name == name })
	if i < 0 {
		p.status.Roles = append(p.status.Roles, v1.RoleStatus{Name: name})
		i = len(p.status.Roles) - 1
	}
	return &p.status.Roles[i]
}

func (p *planner) group(name v1.RoleName) *group {
	return p.census.groups[slices.IndexFunc(p.census.groups, func(g *group) bool { return g.role.Name == name })]
}

// setHead says where the head is.
func (p *planner) setHead() {
	head := v1.RayHeadStatus{ServiceName: headServiceName(p.cluster)}
	pod := p.census.head.members[0]
	if pod != nil && !p.census.head.leaving {
		head.PodName, head.PodIP = pod.Name, pod.Status.PodIP
	}
	if service := p.service(head.ServiceName); service != nil {
		head.ServiceIP = service.Spec.ClusterIP
	}
	if head.ServiceIP == corev1.ClusterIPNone {
		head.ServiceIP = head.PodIP
	}
	p.status.Head = head
}

func (p *planner) setHeadReady() {
	head := p.census.head
	switch {
	case head.ready():
		p.setCondition(v1.RayClusterHeadReadyCondition, metav1.ConditionTrue, v1.RayClusterHeadReadyReason, "the head runs and is ready")
	case p.suspends():
		p.setCondition(v1.RayClusterHeadReadyCondition, metav1.ConditionFalse, v1.RayClusterSuspendedReason, "the cluster is suspended")
	case head.members[0] == nil || head.leaving:
		p.setCondition(v1.RayClusterHeadReadyCondition, metav1.ConditionFalse, v1.RayClusterHeadNotFoundReason, "the head has no pod")
	default:
		p.setCondition(v1.RayClusterHeadReadyCondition, metav1.ConditionFalse, v1.RayClusterHeadNotReadyReason, headNotReady(head.members[0]))
	}
}

func headNotReady(pod *corev1.Pod) string {
	return because("the head's pod is not ready", pods.Waits(pod))
}

// because adds to a message why that is so, if that is known.
func because(message, why string) string {
	if why == "" {
		return message
	}
	return message + ": " + why
}

// unready returns why the cluster is not ready, no reason if it is.
func (p *planner) unready() (reason, message string) {
	head := p.census.head
	switch {
	case p.suspends():
		return v1.RayClusterSuspendedReason, "the cluster is suspended"
	case p.upgrading:
		return v1.RayClusterUpgradingReason, "pods of an older template are being replaced"
	case head.members[0] == nil || head.leaving:
		return v1.RayClusterHeadNotFoundReason, "the head has no pod"
	case !head.ready():
		return v1.RayClusterHeadNotReadyReason, headNotReady(head.members[0])
	}
	for _, g := range p.census.groups {
		if message := p.waitsFor(g); message != "" {
			return v1.RayClusterWorkersNotReadyReason, message
		}
	}
	if len(p.census.strays) > 0 {
		return v1.RayClusterWorkersNotReadyReason, "pods of a group that was removed are still there"
	}
	return "", ""
}

// waitsFor says what a group lacks, or has too much of, to be ready.
func (p *planner) waitsFor(g *group) string {
	ready := int32(0)
	for _, u := range g.staying() {
		if u.ready() {
			ready++
		}
	}
	switch target := p.target(g); {
	case ready < target:
		return because(fmt.Sprintf("%d of %d replicas of group %s are ready", ready, target, g.role.Name), g.waits())
	case int32(len(g.units)) > target:
		return fmt.Sprintf("group %s has replicas that are being deleted", g.role.Name)
	default:
		return ""
	}
}

// waits says what keeps a pod of the group from starting, empty if nothing is known
// to. Of several it is the last, which changes least as pods start in their order.
func (g *group) waits() string {
	for _, u := range slices.Backward(g.ordered()) {
		for _, pod := range slices.Backward(u.members) {
			if pod == nil || pod.DeletionTimestamp != nil || pods.IsReady(pod) {
				continue
			}
			if why := pods.Waits(pod); why != "" {
				return why
			}
		}
	}
	return ""
}

// setUpgrading says whether pods are being replaced by a new template. That is
// over when the new ones are ready. A cluster that was never upgraded does not
// mention it.
func (p *planner) setUpgrading(ready bool) {
	was := isTrue(p.status.Conditions, v1.RayClusterUpgradingCondition)
	switch {
	case p.upgrading:
		p.setCondition(v1.RayClusterUpgradingCondition, metav1.ConditionTrue, v1.RayClusterTemplateChangedReason, "pods of an older template are being replaced")
	case was && !ready && !p.suspends():
		p.setCondition(v1.RayClusterUpgradingCondition, metav1.ConditionTrue, v1.RayClusterTemplateChangedReason, "the pods of the new template are not all ready yet")
	case was && !p.suspends() && !slices.ContainsFunc(p.census.units(), p.outdated):
		p.setCondition(v1.RayClusterUpgradingCondition, metav1.ConditionFalse, v1.RayClusterUpgradeCompleteReason, "all pods are of the newest template")
		p.event(upgradeComplete())
	default:
		p.setOutdated()
	}
}

// setOutdated tells of pods of an older template that nothing replaces, as the
// strategy is None, and takes back what was said once of a finished upgrade.
func (p *planner) setOutdated() {
	outdated := 0
	for _, u := range p.census.units() {
		if p.outdated(u) {
			outdated++
		}
	}
	told := meta.FindStatusCondition(p.status.Conditions, v1.RayClusterUpgradingCondition)
	switch {
	case p.suspends():
		if told != nil {
			p.setCondition(v1.RayClusterUpgradingCondition, metav1.ConditionFalse, v1.RayClusterSuspendedReason, "the cluster is suspended")
		}
	case outdated > 0:
		message := fmt.Sprintf("%s of an older template: they stay until they are deleted, or upgradeStrategy is another than None", plan.Count(outdated, "replica"))
		if p.lacksAutoscaler() {
			message += "; the head among them, which was made without the autoscaler"
		}
		p.setCondition(v1.RayClusterUpgradingCondition, metav1.ConditionFalse, v1.RayClusterOutdatedReason, message)
	case told != nil && told.Reason != v1.RayClusterUpgradeCompleteReason:
		p.setCondition(v1.RayClusterUpgradingCondition, metav1.ConditionFalse, v1.RayClusterUpgradeCompleteReason, "all pods are of the newest template")
	}
}

// setSuspended says whether the cluster is suspended, which it is when the last
// pod is gone. One that never was does not mention it.
func (p *planner) setSuspended() {
	c := meta.FindStatusCondition(p.status.Conditions, v1.RayClusterSuspendedCondition)
	switch {
	case p.suspends() && p.hasPods():
		p.setCondition(v1.RayClusterSuspendedCondition, metav1.ConditionFalse, v1.RayClusterSuspendingReason, "the pods of the cluster are being deleted")
	case suspended(p.cluster):
		if c == nil || c.Status != metav1.ConditionTrue {
			p.event(clusterSuspended())
		}
		p.setCondition(v1.RayClusterSuspendedCondition, metav1.ConditionTrue, v1.RayClusterSuspendedReason, "the cluster is suspended: its pods are deleted")
	case c != nil && c.Reason != v1.RayClusterResumedReason:
		p.event(clusterResumed())
		p.setCondition(v1.RayClusterSuspendedCondition, metav1.ConditionFalse, v1.RayClusterResumedReason, "the cluster was resumed")
		for i := range p.status.Roles {
			p.status.Roles[i].Restarts = nil
		}
	}
}

// setProvisioned remembers that the cluster was ready once since it was made or
// resumed.
func (p *planner) setProvisioned(ready bool) {
	switch {
	case p.suspends():
		p.setCondition(v1.RayClusterProvisionedCondition, metav1.ConditionFalse, v1.RayClusterSuspendedReason, "the cluster is suspended")
	case ready || isTrue(p.status.Conditions, v1.RayClusterProvisionedCondition):
		p.setCondition(v1.RayClusterProvisionedCondition, metav1.ConditionTrue, v1.RayClusterAllPodsReadyReason, "all pods were ready together")
	default:
		p.setCondition(v1.RayClusterProvisionedCondition, metav1.ConditionFalse, v1.RayClusterProvisioningReason, "not all pods have been ready together yet")
	}
}

// phase says in one word what the conditions say. There is no end that a cluster
// comes to, so it never fails for good: what cannot be made is in the condition
// Invalid, and is made once it can be.
func (p *planner) phase(reason string) v1.Phase {
	switch {
	case isTrue(p.status.Conditions, v1.RayClusterSuspendedCondition):
		return v1.PhaseSuspended
	case p.suspends():
		return v1.PhaseScaling
	case isTrue(p.status.Conditions, v1.RayClusterUpgradingCondition):
		return v1.PhaseUpgrading
	case reason == "":
		return v1.PhaseRunning
	case !isTrue(p.status.Conditions, v1.RayClusterProvisionedCondition):
		if !p.hasPods() && len(p.result.Create) == 0 {
			return v1.PhasePending
		}
		return v1.PhaseCreating
	case reason == v1.RayClusterHeadNotFoundReason || reason == v1.RayClusterHeadNotReadyReason:
		return v1.PhaseRestarting
	default:
		return v1.PhaseScaling
	}
}

func (p *planner) setCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: p.cluster.Generation, LastTransitionTime: p.now,
	})
}

// countsOnly says whether two statuses differ in nothing but how far pods are.
// Restarts are no such count: when the next pod is made depends on them.
func countsOnly(before, after *v1.RayClusterStatus) bool {
	return equality.Semantic.DeepEqual(withoutCounts(before), withoutCounts(after))
}

func withoutCounts(status *v1.RayClusterStatus) *v1.RayClusterStatus {
	status = status.DeepCopy()
	status.RolesReady, status.Head = "", v1.RayHeadStatus{}
	meta.RemoveStatusCondition(&status.Conditions, v1.RayClusterHeadReadyCondition)
	for _, kind := range []string{v1.RayClusterReadyCondition, v1.GangScheduledCondition} {
		c := meta.FindStatusCondition(status.Conditions, kind)
		if c == nil {
			continue
		}
		// They tell how many are ready, or placed.
		c.Message = ""
		if kind == v1.RayClusterReadyCondition && c.Status == metav1.ConditionFalse && slices.Contains(unreadyReasons, c.Reason) {
			c.Reason = ""
		}
	}
	for i := range status.Roles {
		status.Roles[i].Active, status.Roles[i].Ready = nil, nil
	}
	return status
}

// unreadyReasons follow one another as pods become ready.
var unreadyReasons = []string{v1.RayClusterHeadNotFoundReason, v1.RayClusterHeadNotReadyReason, v1.RayClusterWorkersNotReadyReason}
