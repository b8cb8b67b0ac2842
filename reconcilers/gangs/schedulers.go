// Package gangs has the pods of a workload placed all together, or not at all.
//
// A gang scheduler places none of a group's pods before it can place the least
// number of them. Each has its own kind of pod group and its own way for a pod
// to say which group it is of; a file says so for each. Which of them is used is
// decided when the first pods are made, by what the API server serves then and
// by spec.gang.scheduler, and stays so while there are pods: the link of a pod
// to its group cannot change. A group is there before the first pod, and goes
// when the workload is suspended or has finished.
//
// It is part of step 9 of the flow and pure, as the kinds are.
package gangs

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// Scheduler is one way to have pods placed all together.
type Scheduler interface {
	// Kind is that of its pod groups.
	Kind() schema.GroupVersionKind
	// Joined says whether a pod is one of the group of a name.
	Joined(group string, pod *corev1.Pod) bool
	// Counts says whether pods that have ended count for the least number.
	Counts() bool
	// Admits says whether pods may be made, given the group.
	Admits(group plan.Object) bool
	// Title names it in messages.
	Title() string

	// group returns the pod group that should be; observed is the one there is,
	// or nil.
	group(g *Gang, observed plan.Object) runtime.ApplyConfiguration
	// join makes a pod of a role one of the group.
	join(g *Gang, role v1.RoleName, pod *corev1.Pod)
	// says returns what the group's status tells of why its pods are not placed.
	says(group plan.Object) string
	// keeps says whether the scheduler itself keeps the group's pods to one
	// domain of a topology.
	keeps(group plan.Object, key v1.LabelKey) bool
	// queues says whether it knows spec.gang.queueName.
	queues() bool
}

// Schedulers are all, the one that is preferred first.
var Schedulers = []Scheduler{native{}, plugins{}, volcano{}}

// Candidates returns the schedulers that may be meant by the name of one, the
// most likely first. The name is the one that its operator gave it, so only
// those that everybody uses tell anything.
func Candidates(name string) []Scheduler {
	switch name {
	case "":
		return Schedulers
	case VolcanoName:
		return []Scheduler{volcano{}}
	case corev1.DefaultSchedulerName:
		return []Scheduler{native{}, plugins{}}
	default:
		// A second scheduler is there for its plugins, more often than it is a
		// second profile of Kubernetes' own.
		return []Scheduler{plugins{}, native{}}
	}
}
