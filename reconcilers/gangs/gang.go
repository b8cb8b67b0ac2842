package gangs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// Workload is what a gang is made of.
type Workload struct {
	// Name and Namespace are those of its pod group.
	Name, Namespace string
	// Labels are on the group.
	Labels map[string]string
	// Gang is what is asked for; nil where pods are placed one by one.
	Gang *v1.Gang
	// Crews are the roles, in the order in which their pods count.
	Crews []Crew
	// Whole says that a scheduler that makes room should take all pods or none:
	// where the loss of one restarts all, taking one frees no more and costs as
	// much.
	Whole bool
}

// Crew is the pods of one role.
type Crew struct {
	// Name, Topology and Spec are the role's; Spec is that of the pods, of which
	// the requests and the priority are read.
	Name     v1.RoleName
	Topology *v1.Topology
	Spec     *corev1.PodSpec
	// Least is how many of its pods must be placeable at once, unless spec.gang
	// says otherwise.
	Least int32
	// Follows says that its pods are made only when those of others run: they
	// cannot be placed together.
	Follows bool
	// Members are the wanted pods.
	Members []Member
}

// Member is one wanted pod.
type Member struct {
	// Pod is nil while there is none.
	Pod *corev1.Pod
	// There says that the pod waits or runs: it has not ended and is not being
	// deleted.
	There bool
	// Done says that the pod has ended, and nothing takes its place.
	Done bool
}

func (m Member) placed() bool { return m.There && m.Pod.Spec.NodeName != "" }

// Gang is how the pods of one workload are placed all together. All methods can
// be called on nil, which places pods one by one.
type Gang struct {
	Workload
	// Scheduler places the pods.
	Scheduler Scheduler
	// Observed is the pod group there is, or nil.
	Observed plan.Object
	// placing says that there are pods to place.
	placing bool
}

// Choose decides how the pods of a workload are placed: nil for one by one.
// Ungrouped says that the workload asks for a gang, and its pods were made
// without one.
func Choose(w Workload, observed plan.Observed) (gang *Gang, ungrouped bool) {
	if w.Gang == nil {
		return nil, false
	}
	scheduler, grouped := w.schedulerOfPods()
	if scheduler == nil {
		scheduler = preferredScheduler(w.Gang.Scheduler, observed)
	}
	if scheduler == nil || !observed.Served[scheduler.Kind()] {
		return nil, false
	}
	if !grouped {
		return nil, true
	}
	g := &Gang{Workload: w, Scheduler: scheduler, placing: w.any(func(m Member) bool { return !m.Done && !m.placed() })}
	for _, child := range observed.Children {
		if child.GetName() == w.Name && KindOf(child) == scheduler.Kind() {
			g.Observed = child
		}
	}
	return g, false
}

// preferredScheduler returns the first of those that may be meant and are there.
func preferredScheduler(name string, observed plan.Observed) Scheduler {
	for _, candidate := range Candidates(name) {
		if observed.Served[candidate.Kind()] {
			return candidate
		}
	}
	return nil
}

// schedulerOfPods returns the scheduler whose group the pods are of, nil while
// there are none. It returns false if they are of no group: a group that came
// later would wait for ever for pods that are not its own.
func (w *Workload) schedulerOfPods() (Scheduler, bool) {
	grouped := true
	for _, crew := range w.Crews {
		for _, m := range crew.Members {
			if !m.There {
				continue
			}
			for _, scheduler := range Schedulers {
				if scheduler.Joined(w.Name, m.Pod) {
					return scheduler, true
				}
			}
			grouped = false
		}
	}
	return nil, grouped
}

func (w *Workload) any(is func(Member) bool) bool {
	for _, crew := range w.Crews {
		if slices.ContainsFunc(crew.Members, is) {
			return true
		}
	}
	return false
}

// Group returns the pod group that should be.
func (g *Gang) Group() runtime.ApplyConfiguration { return g.Scheduler.group(g, g.Observed) }

// Stale returns the pod groups among the children that should go.
func (g *Gang) Stale(observed plan.Observed) []plan.Object {
	var stale []plan.Object
	for _, child := range observed.Children {
		if IsPodGroup(child) && (g == nil || child != g.Observed) {
			stale = append(stale, child)
		}
	}
	return stale
}

// Awaited says whether no pod may be made yet: the group is not there, or
// has not been admitted. A pod that came first would be placed by itself, or
// refused.
func (g *Gang) Awaited() bool {
	return g != nil && (g.Observed == nil || g.Observed.GetDeletionTimestamp() != nil || !g.Scheduler.Admits(g.Observed))
}

// Join makes a pod of a role one of the group.
func (g *Gang) Join(role v1.RoleName, pod *corev1.Pod) {
	if g != nil {
		g.Scheduler.join(g, role, pod)
	}
}

// Keeps says whether the scheduler keeps to a topology by itself.
func (g *Gang) Keeps(topology *v1.Topology) bool {
	return g != nil && g.Observed != nil && topology != nil && topology.Required != "" &&
		g.Scheduler.keeps(g.Observed, topology.Required)
}

// domain is the key of the label whose value all pods of the gang must share: its own, or that of
// the only role.
func (g *Gang) domain() v1.LabelKey {
	if topology := g.Gang.Topology; topology != nil {
		return topology.Required
	}
	var only *Crew
	for i := range g.Crews {
		if len(g.Crews[i].Members) == 0 {
			continue
		}
		if only != nil {
			return ""
		}
		only = &g.Crews[i]
	}
	if only == nil || only.Topology == nil {
		return ""
	}
	return only.Topology.Required
}

// priorityClass is the gang's, or else that of the first role that has one:
// what is placed together has one priority.
func (g *Gang) priorityClass() string {
	if name := g.Gang.PriorityClassName; name != "" {
		return name
	}
	for _, crew := range g.Crews {
		if name := crew.Spec.PriorityClassName; name != "" {
			return name
		}
	}
	return ""
}

// prioritize gives a pod the priority of its gang.
func (g *Gang) prioritize(pod *corev1.Pod) {
	if name := g.priorityClass(); name != "" {
		pod.Spec.PriorityClassName, pod.Spec.Priority = name, nil
	}
}

// AtOnce is the least number of pods that are placed together: what spec.gang
// says, or what their roles need. Pods that are made only when others run do not
// count, whatever it says: those others would wait for them for ever.
func (g *Gang) AtOnce() int32 {
	var most, least int32
	for _, crew := range g.Crews {
		if !crew.Follows {
			most += int32(len(crew.Members))
			least += crew.Least
		}
	}
	return max(min(ptr.Deref(g.Gang.MinAvailable, least), most), 1)
}
