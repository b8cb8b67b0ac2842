package training

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// How the pods of a gang are placed all together.
//
// A gang scheduler places none of a group's pods before it can place the least
// number of them. Each has its own kind of pod group and its own way for a pod
// to say which group it is of; a file says so for each. Which of them is used is
// decided when the first pods are made, by what the API server serves then and
// by spec.gang.scheduler, and stays so while there are pods: the link of a pod
// to its group cannot change. A group is named after its job, is there before
// the first pod, and goes when the job is suspended or has finished.

// gangScheduler is one way to have pods placed all together.
type gangScheduler interface {
	// kind is that of its pod groups.
	kind() schema.GroupVersionKind
	// title names it in messages.
	title() string
	// group returns the pod group that should be; observed is the one there is,
	// or nil.
	group(g *gang, observed plan.Object) runtime.ApplyConfiguration
	// join makes a pod one of the group.
	join(g *gang, m *member, pod *corev1.Pod)
	// joined says whether a pod is one of the job's group.
	joined(job *v1.TrainingJob, pod *corev1.Pod) bool
	// admits says whether pods may be made, given the group.
	admits(group plan.Object) bool
	// says returns what the group's status tells of why its pods are not placed.
	says(group plan.Object) string
	// keeps says whether the scheduler itself keeps the group's pods to one
	// domain of a topology.
	keeps(group plan.Object, key v1.LabelKey) bool
	// counts says whether pods that have ended count for the least number.
	counts() bool
	// queues says whether it knows spec.gang.queueName.
	queues() bool
}

// gangSchedulers are all, the one that is preferred first.
var gangSchedulers = []gangScheduler{nativeGangs{}, schedulerPlugins{}, volcano{}}

// gang is how one job's pods are placed all together.
type gang struct {
	gangScheduler
	job    *v1.TrainingJob
	census *census
	// observed is the group there is, or nil.
	observed plan.Object
	// placing says that there are pods to place.
	placing bool
}

// following is what a framework also implements if the pods of a role are made
// only when those of others run: they cannot be placed together.
type following interface {
	follows(c *census, role v1.RoleName) bool
}

// chooseGang decides how the pods of the job are placed.
func (p *planner) chooseGang() {
	if p.job.Spec.Gang == nil {
		return
	}
	scheduler, grouped := p.schedulerOfPods()
	if scheduler == nil {
		scheduler = p.preferredScheduler()
	}
	if scheduler == nil || !p.observed.Served[scheduler.kind()] {
		return
	}
	if !grouped {
		p.ungrouped = true
		return
	}
	p.gang = &gang{gangScheduler: scheduler, job: p.job, census: p.census,
		placing: p.census.any(func(m *member) bool { return !m.done() && !m.placed() })}
	for _, child := range p.observed.Children {
		if child.GetName() == p.job.Name && kindOfGroup(child) == scheduler.kind() {
			p.gang.observed = child
		}
	}
}

// preferredScheduler returns the first of those that may be meant and are there.
func (p *planner) preferredScheduler() gangScheduler {
	for _, candidate := range candidates(p.job.Spec.Gang.Scheduler) {
		if p.observed.Served[candidate.kind()] {
			return candidate
		}
	}
	return nil
}

// candidates returns the schedulers that may be meant by the name of one, the
// most likely first. The name is the one that its operator gave it, so only
// those that everybody uses tell anything.
func candidates(name string) []gangScheduler {
	switch name {
	case "":
		return gangSchedulers
	case volcanoName:
		return []gangScheduler{volcano{}}
	case corev1.DefaultSchedulerName:
		return []gangScheduler{nativeGangs{}, schedulerPlugins{}}
	default:
		// A second scheduler is there for its plugins, more often than it is a
		// second profile of Kubernetes' own.
		return []gangScheduler{schedulerPlugins{}, nativeGangs{}}
	}
}

// schedulerOfPods returns the scheduler whose group the pods are of, nil while
// there are none. It returns false if they are of no group: a group that came
// later would wait for ever for pods that are not its own.
func (p *planner) schedulerOfPods() (gangScheduler, bool) {
	grouped := true
	for _, crew := range p.census.crews {
		for _, m := range crew.members {
			if m.pod == nil || (m.state != pending && m.state != active) {
				continue
			}
			for _, scheduler := range gangSchedulers {
				if scheduler.joined(p.job, m.pod) {
					return scheduler, true
				}
			}
			grouped = false
		}
	}
	return nil, grouped
}

// planGang asks for the job's pod group, and for no other.
func (p *planner) planGang() {
	if p.gang != nil {
		p.result.Apply = append(p.result.Apply, p.gang.group(p.gang, p.gang.observed))
	}
	for _, child := range p.observed.Children {
		if isPodGroup(child) && (p.gang == nil || child != p.gang.observed) {
			p.remove(child, "the job has no such pod group")
		}
	}
}

// awaitsGang says whether no pod may be made yet: the group is not there, or
// has not been admitted. A pod that came first would be placed by itself, or
// refused.
func (p *planner) awaitsGang() bool {
	g := p.gang
	return g != nil && (g.observed == nil || g.observed.GetDeletionTimestamp() != nil || !g.admits(g.observed))
}

// reportGang says how far the gang is placed.
func (p *planner) reportGang() {
	switch {
	case p.job.Spec.Gang == nil:
		meta.RemoveStatusCondition(&p.status.Conditions, v1.TrainingJobGangScheduledCondition)
	case p.ungrouped:
		p.gangCondition(metav1.ConditionFalse, v1.TrainingJobGangUngroupedReason,
			"the pods are of no pod group, and were placed one by one: they were made before a gang scheduler was there, "+
				"or the API server does not know schedulingGroup (feature gate GenericWorkload); suspend and resume the job to make them anew")
	case p.gang == nil:
		p.gangCondition(metav1.ConditionFalse, v1.TrainingJobGangUnsupportedReason, noGangScheduler(p.job.Spec.Gang.Scheduler))
	default:
		p.reportPlaced()
	}
}

func (p *planner) reportPlaced() {
	placed, wanted, least := p.gang.placed(), p.census.total(), p.gang.atOnce()
	message := fmt.Sprintf("%d of %d pods are placed; %s places them when it can place %d", placed, wanted, p.gang.title(), least)
	if name := p.job.Spec.Gang.QueueName; name != "" && !p.gang.queues() {
		message += fmt.Sprintf("; it has no queues, so queueName %s means nothing", name)
	}
	if placed >= least {
		p.gangCondition(metav1.ConditionTrue, v1.TrainingJobGangScheduledReason, message)
		return
	}
	if p.gang.observed != nil {
		if says := p.gang.says(p.gang.observed); says != "" {
			message += ": " + says
		}
	}
	p.gangCondition(metav1.ConditionFalse, v1.TrainingJobGangPendingReason, message)
}

func (p *planner) gangCondition(status metav1.ConditionStatus, reason, message string) {
	p.setCondition(v1.TrainingJobGangScheduledCondition, status, reason, message)
}

func noGangScheduler(name string) string {
	const place = ", so the pods are placed one by one: "
	switch name {
	case volcanoName:
		return "Volcano is not there (no PodGroup of scheduling.volcano.sh/v1beta1)" + place + "install it, or leave out gang.scheduler"
	default:
		return "no gang scheduler is there" + place + "turn on PodGroups in Kubernetes (feature gate GenericWorkload and " +
			"scheduling.k8s.io/v1beta1), or install scheduler-plugins or Volcano"
	}
}

// removePodGroups removes the groups of a job that has no use for them.
func (p *planner) removePodGroups(reason string) {
	for _, child := range p.observed.Children {
		if isPodGroup(child) {
			p.remove(child, reason)
		}
	}
}

// atOnce is the least number of pods that are placed together: what the job
// says, or all, and of elastic workers their minimum. Pods that are made only
// when others run do not count, whatever the job says: those others would wait
// for them for ever.
func (g *gang) atOnce() int32 {
	var most, least int32
	for _, crew := range g.together() {
		most += crew.wanted()
		if elastic := g.job.Spec.Elastic; elastic != nil && crew.role.Name == v1.RoleWorker {
			least += min(max(ptr.Deref(elastic.MinReplicas, 1), 1), crew.wanted())
		} else {
			least += crew.wanted()
		}
	}
	return max(min(ptr.Deref(g.job.Spec.Gang.MinAvailable, least), most), 1)
}

// needed is that number as the scheduler has to count it, while it has any to
// place. One that takes the place of a lost pod must not wait for peers that are
// done, or are of no group: so it is never more than can be counted. Those of
// them that are placed already, or are done, are so many less to come; one of no
// group that is still to be placed is none, as it may never be.
func (g *gang) needed() int32 {
	least, countable := g.atOnce(), int32(0)
	for _, crew := range g.together() {
		for _, m := range crew.members {
			switch {
			case !g.misses(m):
				countable++
			case m.done() || m.placed():
				least--
			}
		}
	}
	return max(min(least, countable), 1)
}

// together returns the crews whose pods can be placed together.
func (g *gang) together() []*crew {
	f, ok := g.census.framework.(following)
	if !ok {
		return g.census.crews
	}
	return slices.DeleteFunc(slices.Clone(g.census.crews), func(c *crew) bool { return f.follows(g.census, c.role.Name) })
}

// misses says whether there are pods to place, and the scheduler does not count
// this one: it is done, and the scheduler sees none that are, or not this one; or
// it was made without the group.
func (g *gang) misses(m *member) bool {
	switch {
	case !g.placing:
		return false
	case m.done():
		return !g.counts() || m.pod == nil || !g.joined(g.job, m.pod)
	case m.state == pending || m.state == active:
		return !g.joined(g.job, m.pod)
	default:
		return false
	}
}

// placed is the number of pods that are placed, or have been and are done.
func (g *gang) placed() int32 {
	var n int32
	for _, crew := range g.census.crews {
		for _, m := range crew.members {
			if m.done() || m.placed() {
				n++
			}
		}
	}
	return n
}

func (m *member) done() bool { return m.state == succeeded || m.failedForGood() }

func (m *member) placed() bool {
	return (m.state == pending || m.state == active) && m.pod.Spec.NodeName != ""
}

// domain is the key of the label whose value all pods of the gang must share: its own, or that of
// the only role.
func (g *gang) domain() v1.LabelKey {
	if topology := g.job.Spec.Gang.Topology; topology != nil {
		return topology.Required
	}
	var only *crew
	for _, crew := range g.census.crews {
		if crew.wanted() == 0 {
			continue
		}
		if only != nil {
			return ""
		}
		only = crew
	}
	if only == nil || only.role.Topology == nil {
		return ""
	}
	return only.role.Topology.Required
}

// disruptedWhole says whether a scheduler that makes room should take all pods
// or none: where the loss of one restarts all, taking one frees no more and
// costs as much. An elastic job goes on with less workers.
func (g *gang) disruptedWhole() bool { return gangRestarts(g.job) && g.job.Spec.Elastic == nil }

// priorityClass is the gang's, or else that of the first role that has one:
// what is placed together has one priority.
func (g *gang) priorityClass() string {
	if name := g.job.Spec.Gang.PriorityClassName; name != "" {
		return name
	}
	for _, crew := range g.census.crews {
		if name := crew.role.Template.Spec.PriorityClassName; name != "" {
			return name
		}
	}
	return ""
}

// prioritize gives a pod the priority of its gang.
func (g *gang) prioritize(pod *corev1.Pod) {
	if name := g.priorityClass(); name != "" {
		pod.Spec.PriorityClassName, pod.Spec.Priority = name, nil
	}
}
