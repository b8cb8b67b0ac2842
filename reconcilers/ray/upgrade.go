package ray

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// How pods of an older template are replaced, and what the loss of a head means.

func strategyOf(cluster *v1.RayCluster) v1.UpgradeType {
	if strategy := cluster.Spec.UpgradeStrategy; strategy != nil && strategy.Type != "" {
		return strategy.Type
	}
	return v1.UpgradeNone
}

func (p *planner) outdated(u *unit) bool { return u.outdated(p.hash(u.role)) }

// hash is the hash of a role's template, made once in a planning.
func (p *planner) hash(role *v1.RayRole) string {
	if p.hashes[role.Name] == "" {
		p.hashes[role.Name] = templateHash(p.cluster, role)
	}
	return p.hashes[role.Name]
}

// recreate deletes all pods when one is of an older template, and says whether
// that is going on: nothing is made before the last old pod is gone. Those go
// last, so that one that is still there stands for all.
func (p *planner) recreate() bool {
	if strategyOf(p.cluster) != v1.UpgradeRecreate || !slices.ContainsFunc(p.census.units(), p.outdated) {
		return false
	}
	p.beginUpgrade()
	for _, outdated := range []bool{false, true} {
		for _, u := range p.census.units() {
			if p.outdated(u) == outdated {
				p.removeUnit(u, "recreated by a new template")
			}
		}
	}
	return true
}

func (p *planner) beginUpgrade() {
	p.upgrading = true
	if !isTrue(p.cluster.Status.Conditions, v1.RayClusterUpgradingCondition) {
		p.event(upgradeStarted())
	}
}

// upgradeHead replaces a head of an older template in a rolling update.
func (p *planner) upgradeHead() {
	head := p.census.head
	if strategyOf(p.cluster) != v1.UpgradeRollingUpdate || !p.outdated(head) {
		return
	}
	p.beginUpgrade()
	if !head.leaving {
		p.removeUnit(head, "replaced by a new template")
	}
}

// upgradeGroup replaces replicas of an older template in a rolling update: those
// that are not ready at once, the others as far as maxUnavailable allows. It
// waits for the head: what a new template breaks shall not break everything.
func (p *planner) upgradeGroup(g *group) {
	if strategyOf(p.cluster) != v1.UpgradeRollingUpdate {
		return
	}
	hash := p.hash(g.role)
	isOld := func(u *unit) bool { return u.outdated(hash) }
	if !slices.ContainsFunc(g.ordered(), isOld) {
		return
	}
	p.beginUpgrade()
	if !p.census.head.ready() {
		return
	}
	old := slices.DeleteFunc(g.staying(), func(u *unit) bool { return !isOld(u) })
	spare := p.maxUnavailable(g) - p.unavailable(g)
	for _, u := range old {
		switch {
		case !u.ready():
			p.removeUnit(u, "replaced by a new template")
		case spare > 0:
			p.removeUnit(u, "replaced by a new template")
			spare--
		}
	}
}

// unavailable is how many of the wanted replicas are missing or not ready.
func (p *planner) unavailable(g *group) int {
	ready := 0
	for _, u := range g.staying() {
		if u.ready() {
			ready++
		}
	}
	return max(int(p.target(g))-ready, 0)
}

// maxUnavailable is how many of a group's replicas may be missing or not ready
// at once, at least 1.
func (p *planner) maxUnavailable(g *group) int {
	strategy := p.cluster.Spec.UpgradeStrategy
	if strategy.RollingUpdate == nil || strategy.RollingUpdate.MaxUnavailable == nil {
		return 1
	}
	// What cannot be read is refused by validation.
	n, err := intstr.GetScaledValueFromIntOrPercent(strategy.RollingUpdate.MaxUnavailable, int(p.target(g)), false)
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// olderBy is by how much a worker must be older than the head to be one of an
// earlier head: pods of one pass are not made at the same instant.
const olderBy = 15 * time.Second

// abandonWorkers deletes the workers of a head that is lost, all at once, where
// they cannot join the next one: its state is gone with it, and nobody restarts
// their containers. They would end one after the other, and some of those that
// took their place would do so as well. Where containers are restarted in place
// they join the next head by themselves, and with fault tolerance they stay as
// they are.
func (p *planner) abandonWorkers() {
	if toleratesFaults(p.cluster) {
		return
	}
	head := p.census.head
	// No worker is made before the head is.
	lost := head.leaving || head.awaited || head.members[0] == nil
	abandoned := 0
	for _, g := range p.census.groups {
		for _, u := range g.staying() {
			if u.restartsNever() && (lost || p.isOfEarlierHead(u)) {
				p.removeUnit(u, "its head is lost")
				abandoned++
			}
		}
	}
	if abandoned > 0 {
		p.event(workersAbandoned(abandoned))
	}
}

// isOfEarlierHead says whether a replica has run under a head before this one.
func (p *planner) isOfEarlierHead(u *unit) bool {
	head := p.census.head.members[0]
	return head != nil && u.count(pods.Active) > 0 && u.created().Add(olderBy).Before(head.CreationTimestamp.Time)
}

func (u *unit) restartsNever() bool {
	return slices.ContainsFunc(u.members, func(pod *corev1.Pod) bool {
		return pod != nil && pod.Spec.RestartPolicy == corev1.RestartPolicyNever
	})
}

// toleratesFaults says whether the state of a cluster outlives its head.
func toleratesFaults(cluster *v1.RayCluster) bool {
	return cluster.Spec.GCSFaultTolerance != nil || cluster.Annotations[faultToleranceAnnotation] == "true"
}
