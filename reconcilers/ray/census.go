package ray

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// census is the cluster's pods, sorted into the head and the replicas of groups.
type census struct {
	// head is the one replica of the head, without a pod while there is none.
	head *unit
	// groups are those of the spec, in its order.
	groups []*group
	// strays are pods that belong to no role of the cluster any more.
	strays []*corev1.Pod
}

// group is the replicas of one role that there are.
type group struct {
	role *v1.RayRole
	// units are those that have a pod, by their index.
	units map[int32]*unit
	// wanted is the number of replicas that the spec asks for.
	wanted int32
	hosts  int32
}

// unit is one replica: pods that come and go together.
type unit struct {
	role  *v1.RayRole
	index int32
	// members are the pods by host; nil where there is none.
	members []*corev1.Pod
	// surplus are pods of more hosts than a replica has now.
	surplus []*corev1.Pod
	// conditions are those of the members.
	conditions []pods.Condition
	// leaving says that pods of the replica are being deleted.
	leaving bool
	// awaited says that the replica is to be replaced, and when it is too soon
	// for that.
	awaited bool
}

// takeCensus sorts pods by their names, which cannot be edited as labels can.
func takeCensus(cluster *v1.RayCluster, all []*corev1.Pod) *census {
	c := &census{head: newUnit(headOf(cluster), 0, 1)}
	bases := map[string]*group{}
	for i := range cluster.Spec.Roles {
		role := &cluster.Spec.Roles[i]
		if role.Name == v1.RoleHead {
			continue
		}
		g := &group{role: role, units: map[int32]*unit{}, wanted: wantedReplicas(role), hosts: hostsOf(role)}
		c.groups = append(c.groups, g)
		bases[groupBase(cluster, role.Name)] = g
	}
	for _, pod := range all {
		if !c.place(headName(cluster), bases, pod) {
			c.strays = append(c.strays, pod)
		}
	}
	return c
}

// place puts a pod where it belongs, and says whether it belongs anywhere.
func (c *census) place(head string, bases map[string]*group, pod *corev1.Pod) bool {
	if pod.Name == head {
		c.head.add(0, pod)
		return true
	}
	base := pod.Name
	for range 2 {
		base = base[:max(strings.LastIndexByte(base, '-'), 0)]
	}
	g := bases[base]
	if g == nil {
		return false
	}
	replica, host, ok := placeOf(base, pod.Name)
	if !ok {
		return false
	}
	if g.units[replica] == nil {
		g.units[replica] = newUnit(g.role, replica, g.hosts)
	}
	g.units[replica].add(host, pod)
	return true
}

func newUnit(role *v1.RayRole, index, hosts int32) *unit {
	return &unit{role: role, index: index, members: make([]*corev1.Pod, hosts), conditions: make([]pods.Condition, hosts)}
}

func (u *unit) add(host int32, pod *corev1.Pod) {
	u.leaving = u.leaving || pod.DeletionTimestamp != nil
	if int(host) >= len(u.members) {
		u.surplus = append(u.surplus, pod)
		return
	}
	u.members[host], u.conditions[host] = pod, pods.Examine(pod, "")
}

// pods returns the pods that there are.
func (u *unit) pods() []*corev1.Pod {
	there := slices.DeleteFunc(slices.Clone(u.members), func(pod *corev1.Pod) bool { return pod == nil })
	return append(there, u.surplus...)
}

// count returns the number of members in a state.
func (u *unit) count(state pods.State) int {
	n := 0
	for i := range u.conditions {
		if u.conditions[i].State == state {
			n++
		}
	}
	return n
}

// ready says whether all pods of the replica run and are ready.
func (u *unit) ready() bool {
	return !u.leaving && len(u.surplus) == 0 && u.readyPods() == len(u.members)
}

func (u *unit) readyPods() int {
	n := 0
	for i := range u.conditions {
		if u.conditions[i].State == pods.Active && u.conditions[i].Ready {
			n++
		}
	}
	return n
}

// hasEnded says whether a pod has ended that nobody restarts in place. That it
// ended well changes nothing: a Ray node is meant to run.
func (u *unit) hasEnded() bool { return u.count(pods.Failed)+u.count(pods.Succeeded) > 0 }

// created is when the newest pod of the replica was.
func (u *unit) created() time.Time {
	var newest time.Time
	for _, pod := range u.pods() {
		if pod.CreationTimestamp.After(newest) {
			newest = pod.CreationTimestamp.Time
		}
	}
	return newest
}

// outdated says whether a pod of the replica was made from another template.
func (u *unit) outdated(hash string) bool {
	return slices.ContainsFunc(u.pods(), func(pod *corev1.Pod) bool { return pod.Labels[v1.TemplateHashLabel] != hash })
}

// ordered returns the replicas that there are, by index.
func (g *group) ordered() []*unit {
	return slices.SortedFunc(maps.Values(g.units), func(a, b *unit) int { return cmp.Compare(a.index, b.index) })
}

// staying returns the replicas that nobody has decided to delete.
func (g *group) staying() []*unit {
	return slices.DeleteFunc(g.ordered(), func(u *unit) bool { return u.leaving })
}

func hostsOf(role *v1.RayRole) int32 { return max(ptr.Deref(role.Hosts, 1), 1) }

// bounds returns the smallest and the largest number of replicas of a group.
func bounds(role *v1.RayRole) (least, most int32) {
	if role.Scaling == nil {
		return 0, math.MaxInt32
	}
	return max(ptr.Deref(role.Scaling.MinReplicas, 0), 0), ptr.Deref(role.Scaling.MaxReplicas, math.MaxInt32)
}

// wantedReplicas keeps the replicas of a group within its bounds.
func wantedReplicas(role *v1.RayRole) int32 {
	if ptr.Deref(role.Suspend, false) {
		return 0
	}
	least, most := bounds(role)
	return max(min(max(ptr.Deref(role.Replicas, least), least), most), 0)
}
