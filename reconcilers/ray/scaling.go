package ray

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// How the pods of a cluster come and go.
//
// A replica whose pods are being deleted takes up its place until they are gone:
// so there are never more pods than wanted, and a new pod never meets the old
// one of its name. In each group what is named for deletion goes first, then
// what has ended, and only then are replicas counted: too many are removed, the
// oldest templates are replaced, and what is missing is made. A group does not
// wait for another one.

// planPods decides which pods go and which are made.
func (p *planner) planPods() {
	for _, pod := range p.census.strays {
		p.remove(pod, "belongs to no role")
	}
	p.goOnLeaving()
	if p.recreate() || p.renewsToken() {
		return
	}
	p.replaceEnded(p.census.head)
	p.upgradeHead()
	p.abandonWorkers()
	p.makeRoomForHead()
	for _, g := range p.census.groups {
		p.deleteNamed(g)
		for _, u := range g.staying() {
			p.replaceEnded(u)
		}
		p.shrink(g)
		p.upgradeGroup(g)
	}
	if len(p.ended) > 0 {
		p.event(pods.ReplacedEvent(p.ended))
	}
	p.relabel()
	if p.gang.Awaited() {
		return
	}
	p.createHead()
	for _, g := range p.census.groups {
		p.complete(g)
		p.grow(g)
	}
	if n := len(p.result.Create); n > 0 {
		p.event(pods.CreatedEvent(n))
	}
}

// units returns the head and the replicas of all groups.
func (c *census) units() []*unit {
	units := []*unit{c.head}
	for _, g := range c.groups {
		units = append(units, g.ordered()...)
	}
	return units
}

// goOnLeaving deletes what is left of replicas of which a pod is being deleted:
// pods of one replica go together.
func (p *planner) goOnLeaving() {
	for _, u := range p.census.units() {
		if u.leaving {
			p.removeUnit(u, "goes with its replica")
		}
	}
}

// replaceEnded deletes a replica of which a pod has ended, or is gone. It is
// made anew when all of it is gone.
func (p *planner) replaceEnded(u *unit) {
	switch {
	case u.leaving:
	case u.hasEnded():
		if at := p.replaceAt(u); p.now.Time.Before(at) {
			u.awaited = true
			p.wakeAt(at)
			return
		}
		p.countReplacement(u)
		p.removeUnit(u, "replaced by a new pod")
	case len(u.surplus) > 0, p.isBroken(u):
		p.event(replicaIncomplete(u))
		p.removeUnit(u, "its replica is incomplete")
	}
}

// isBroken says whether a replica of several hosts has lost one. While pods are
// refused it may only not have been completed yet.
func (p *planner) isBroken(u *unit) bool {
	return u.count(pods.Missing) > 0 && u.count(pods.Active) > 0 && !p.isRefused()
}

// isRefused says whether children could not be made when this was tried last.
func (p *planner) isRefused() bool { return isTrue(p.cluster.Status.Conditions, v1.InvalidCondition) }

const (
	// firstDelay and longestDelay bound how soon a pod that has ended is replaced.
	firstDelay   = time.Second
	longestDelay = time.Minute
)

// replaceAt returns the earliest time to replace a replica. The delay counts
// from when its pods were created: those that ran for long are replaced at once,
// those that end as soon as they start ever more slowly.
func (p *planner) replaceAt(u *unit) time.Time {
	delay := time.Duration(0)
	for n := range min(ptr.Deref(p.roleStatus(u.role.Name).Restarts, 0), 16) {
		if n == 0 {
			delay = firstDelay
			continue
		}
		delay = min(2*delay, longestDelay)
	}
	return u.created().Add(delay)
}

// countReplacement counts and tells of the pods of a replica that have ended.
func (p *planner) countReplacement(u *unit) {
	status := p.roleStatus(u.role.Name)
	for i, pod := range u.members {
		if c := u.conditions[i]; c.State == pods.Failed || c.State == pods.Succeeded {
			p.ended = append(p.ended, pods.Replaced{Pod: pod, Condition: c})
			if !c.Lost {
				status.Restarts = new(ptr.Deref(status.Restarts, 0) + 1)
			}
		}
	}
}

// deleteNamed deletes the replicas of the pods that workersToDelete names. A name
// that is not that of a pod of this group means nothing.
func (p *planner) deleteNamed(g *group) {
	named, n := g.named(p.cluster), 0
	for _, u := range g.staying() {
		if named[u.index] {
			p.removeUnit(u, "named in workersToDelete")
			n++
		}
	}
	if n > 0 {
		p.event(scaledDown(g, n, "workersToDelete names them"))
	}
}

// named returns the indices of the replicas that workersToDelete names. None of
// them is used anew while it does, or what is made would be deleted again.
func (g *group) named(cluster *v1.RayCluster) map[int32]bool {
	if g.role.Scaling == nil || len(g.role.Scaling.WorkersToDelete) == 0 {
		return nil
	}
	base := groupBase(cluster, g.role.Name)
	indices := map[int32]bool{}
	for _, name := range g.role.Scaling.WorkersToDelete {
		if replica, host, ok := placeOf(base, name); ok && host < g.hosts {
			indices[replica] = true
		}
	}
	return indices
}

// makeRoomForHead deletes a replica of workers, one at a time, while a quota
// leaves no room for the head: without it the others do nothing.
func (p *planner) makeRoomForHead() {
	if p.census.head.members[0] != nil || !p.headExceedsQuota() ||
		slices.ContainsFunc(p.census.units(), func(u *unit) bool { return u.leaving }) {
		return
	}
	for _, g := range slices.Backward(p.census.groups) {
		if staying := g.staying(); len(staying) > 0 {
			slices.SortStableFunc(staying, dispensableFirst)
			p.removeUnit(staying[0], "makes room for the head")
			p.event(madeRoom(staying[0]))
			return
		}
	}
}

// headExceedsQuota says whether a quota refused the head when it was tried last.
// The API server tells it from other refusals in its words alone.
func (p *planner) headExceedsQuota() bool {
	c := meta.FindStatusCondition(p.cluster.Status.Conditions, v1.InvalidCondition)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == v1.ChildForbiddenReason &&
		strings.Contains(c.Message, strconv.Quote(headName(p.cluster))) && strings.Contains(c.Message, "exceeded quota")
}

// dispensableFirst orders replicas by which of them goes first.
func dispensableFirst(a, b *unit) int {
	return cmp.Or(
		compareBool(a.ready(), b.ready()),
		b.created().Compare(a.created()),
		cmp.Compare(b.index, a.index),
	)
}

// shrink removes replicas beyond the wanted number: those that are not ready
// first, then the youngest, then the highest indices. Under the autoscaler only
// it knows which are idle, and it names those that shall go.
func (p *planner) shrink(g *group) {
	staying := g.staying()
	surplus := len(staying) - int(g.wanted)
	if surplus <= 0 || p.keepsSurplus(g) {
		return
	}
	slices.SortStableFunc(staying, dispensableFirst)
	for _, u := range staying[:surplus] {
		p.removeUnit(u, "scaled down")
	}
	p.event(scaledDown(g, surplus, "fewer are wanted"))
}

// keepsSurplus says whether a group is left to the autoscaler. A head that was
// made before there was one does not run it.
func (p *planner) keepsSurplus(g *group) bool {
	return autoscales(p.cluster) && !p.lacksAutoscaler() && !ptr.Deref(g.role.Suspend, false)
}

// lacksAutoscaler says whether the head is one that was made without the
// autoscaler that the cluster asks for by now.
func (p *planner) lacksAutoscaler() bool {
	head := p.census.head.members[0]
	return autoscales(p.cluster) && head != nil &&
		!slices.ContainsFunc(head.Spec.Containers, func(c corev1.Container) bool { return c.Name == autoscalerContainer })
}

// target is the number of replicas that the cluster is ready with: the wanted
// one, and under the autoscaler as many more as it has not named.
func (p *planner) target(g *group) int32 {
	if p.keepsSurplus(g) {
		return max(g.wanted, int32(len(g.staying())))
	}
	return g.wanted
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// relabel gives pods their labels back, by which services lead to the head and
// the autoscaler counts workers.
func (p *planner) relabel() {
	if head := p.census.head; !head.leaving && head.members[0] != nil {
		p.result.Apply = pods.Relabel(p.result.Apply, head.members[0], placeLabels(p.cluster, head.role))
	}
	for _, g := range p.census.groups {
		own := placeLabels(p.cluster, g.role)
		for _, u := range g.staying() {
			for host, pod := range u.members {
				if pod != nil {
					p.result.Apply = pods.Relabel(p.result.Apply, pod, pods.WithLabels(own, hostLabels(p.cluster, g, u.index, int32(host))))
				}
			}
		}
	}
}

// createHead makes the head unless its pod is there, being deleted or not. It
// comes before the workers, which are of no use without it: under a quota they
// would leave it no room.
func (p *planner) createHead() {
	if p.census.head.members[0] == nil {
		p.create(p.newHead())
		p.result.Leading = len(p.result.Create)
	}
}

// complete makes the missing pods of replicas that were not made whole.
func (p *planner) complete(g *group) {
	for _, u := range g.staying() {
		if u.awaited {
			continue
		}
		for host, pod := range u.members {
			if pod == nil {
				p.create(p.newWorker(g, u.index, int32(host)))
			}
		}
	}
}

// grow makes missing replicas, under the lowest free indices.
func (p *planner) grow(g *group) {
	missing := int(g.wanted) - len(g.units)
	named := g.named(p.cluster)
	for index := int32(0); missing > 0; index++ {
		if g.units[index] != nil || named[index] {
			continue
		}
		for host := range g.hosts {
			p.create(p.newWorker(g, index, host))
		}
		missing--
	}
}

func (p *planner) create(pod *corev1.Pod) {
	p.result.Create = append(p.result.Create, plan.Object(pod))
}
