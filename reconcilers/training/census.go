package training

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// census is the job's pods, sorted into roles and indices.
type census struct {
	job       *v1.TrainingJob
	framework framework
	// crews are the roles of the job, in the framework's order.
	crews []*crew
	// strays are pods that belong to no role of the job any more.
	strays []*corev1.Pod
	// old are the pods of an earlier attempt of the gang, which hold the names
	// of the new ones.
	old []*corev1.Pod
	// ahead says that there is a pod of a later attempt than the status knows
	// of, so that the status is outdated; believed is until when that is believed.
	ahead    bool
	believed time.Time
	// anchored says that a pod is of the attempt that the status knows of.
	anchored bool
	now      time.Time
}

// crew is the pods of one role.
type crew struct {
	role *v1.Role
	// members are the wanted pods by index.
	members []*member
	// surplus are pods beyond the wanted number.
	surplus []*corev1.Pod
}

// member is one wanted pod of a role, there or not.
type member struct {
	role  *v1.Role
	index int32
	// pod is nil while the state is missing.
	pod *corev1.Pod
	pods.Condition
}

// takeCensus sorts pods by their names, which cannot be edited as labels can.
func takeCensus(job *v1.TrainingJob, f framework, pods []*corev1.Pod, now time.Time) *census {
	c := &census{job: job, framework: f, now: now}
	if f != nil {
		for _, name := range f.roles() {
			c.enlist(name)
		}
	}
	// A role that the framework does not know is refused by validation; should
	// one come through all the same, its pods are at least looked after.
	for i := range job.Spec.Roles {
		c.enlist(job.Spec.Roles[i].Name)
	}
	c.anchored = slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return attemptOf(pod) == attempt(&job.Status) })
	for _, pod := range pods {
		c.place(pod)
	}
	for _, crew := range c.crews {
		c.recall(crew)
	}
	if f, ok := f.(correcting); ok {
		f.correct(c)
	}
	return c
}

// enlist makes the crew of a role that the job has and that has none yet.
func (c *census) enlist(name v1.RoleName) {
	if c.crew(name) != nil {
		return
	}
	for i := range c.job.Spec.Roles {
		role := &c.job.Spec.Roles[i]
		if role.Name != name {
			continue
		}
		wanted := wantedReplicas(c.job, role)
		crew := &crew{role: role, members: make([]*member, wanted)}
		for index := range wanted {
			crew.members[index] = &member{role: role, index: index}
		}
		c.crews = append(c.crews, crew)
		return
	}
}

// place puts an observed pod where it belongs.
func (c *census) place(pod *corev1.Pod) {
	for _, crew := range c.crews {
		index, ok := indexOf(c.job, crew.role, pod.Name)
		switch {
		case !ok:
			continue
		case gangRestarts(c.job) && c.attemptOf(pod) != attempt(&c.job.Status):
			// A surplus one, too: it would meet the new ones.
			if index < crew.wanted() {
				crew.members[index].pod, crew.members[index].State = pod, pods.Terminating
			}
			c.old = append(c.old, pod)
			if c.attemptOf(pod) > attempt(&c.job.Status) {
				c.ahead, c.believed = true, pod.CreationTimestamp.Add(longestLag)
			}
		case index >= crew.wanted():
			crew.surplus = append(crew.surplus, pod)
		default:
			m := crew.members[index]
			m.pod, m.Condition = pod, pods.Examine(pod, c.container())
		}
		return
	}
	c.strays = append(c.strays, pod)
}

// longestLag is for how long what is read of a status may be older than a pod.
const longestLag = time.Minute

// attemptOf returns the attempt that a pod is of. It is that of the status where
// another pod is of it, whatever a label says that somebody has edited: no pod of
// one attempt is made before all of the others are gone. And one that claims a
// later attempt is of it once no cache can lag so far behind.
func (c *census) attemptOf(pod *corev1.Pod) int32 {
	claimed, known := attemptOf(pod), attempt(&c.job.Status)
	if c.anchored || claimed > known && !c.now.Before(pod.CreationTimestamp.Add(longestLag)) {
		return known
	}
	return claimed
}

func (c *census) container() string {
	if c.framework == nil {
		return ""
	}
	return c.framework.container(c.job)
}

// crew returns the crew of a role, or nil.
func (c *census) crew(name v1.RoleName) *crew {
	for _, crew := range c.crews {
		if crew.role.Name == name {
			return crew
		}
	}
	return nil
}

// total returns the number of wanted pods over all roles.
func (c *census) total() int32 {
	var total int32
	for _, crew := range c.crews {
		total += crew.wanted()
	}
	return total
}

// any says whether some member is as the function says.
func (c *census) any(is func(*member) bool) bool {
	for _, crew := range c.crews {
		if slices.ContainsFunc(crew.members, is) {
			return true
		}
	}
	return false
}

func (c *crew) wanted() int32 { return int32(len(c.members)) }

// count returns the number of members in a state.
func (c *crew) count(s pods.State) int32 {
	var n int32
	for _, m := range c.members {
		if m.State == s {
			n++
		}
	}
	return n
}

// pods returns every pod of the role, the surplus ones too.
func (c *crew) pods() []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(c.members)+len(c.surplus))
	for _, m := range c.members {
		if m.pod != nil {
			pods = append(pods, m.pod)
		}
	}
	return append(pods, c.surplus...)
}

// wantedReplicas returns the number of pods a role shall have now.
func wantedReplicas(job *v1.TrainingJob, role *v1.Role) int32 {
	wanted := ptr.Deref(role.Replicas, 1)
	if elastic := job.Spec.Elastic; elastic != nil && role.Name == v1.RoleWorker {
		wanted = ptr.Deref(elastic.Replicas, wanted)
	}
	return max(wanted, 0)
}

// childName returns the name of the pod, and of the service, of one member.
func childName(job *v1.TrainingJob, role v1.RoleName, index int32) string {
	return job.Name + "-" + strings.ToLower(string(role)) + "-" + strconv.Itoa(int(index))
}

// indexOf returns the index that a child's name holds if it is of the role.
func indexOf(job *v1.TrainingJob, role *v1.Role, name string) (int32, bool) {
	suffix, ok := strings.CutPrefix(name, job.Name+"-"+strings.ToLower(string(role.Name))+"-")
	if !ok {
		return 0, false
	}
	index, err := strconv.ParseInt(suffix, 10, 32)
	if err != nil || index < 0 || strconv.FormatInt(index, 10) != suffix {
		return 0, false
	}
	return int32(index), true
}
