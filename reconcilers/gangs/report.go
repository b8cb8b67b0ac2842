package gangs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// Report says how far a gang is placed: the status, reason and message of its
// condition. The workload is as it is when planning has ended.
func Report(w Workload, gang *Gang, ungrouped bool) (metav1.ConditionStatus, string, string) {
	switch {
	case ungrouped:
		return metav1.ConditionFalse, v1.GangUngroupedReason,
			"the pods are of no pod group, so nothing places them all together: they were made before a gang scheduler was there, " +
				"or the API server does not know schedulingGroup (feature gate GenericWorkload); suspend and resume to make them anew"
	case gang == nil:
		return metav1.ConditionFalse, v1.GangUnsupportedReason, w.noScheduler()
	}
	gang.Crews = w.Crews
	placed, wanted, least := gang.placed(), gang.total(), gang.AtOnce()
	message := fmt.Sprintf("%d of %d pods are placed; %s when it can place %d", placed, wanted, gang.placer(), least)
	if name := w.Gang.QueueName; name != "" && !gang.Scheduler.queues() {
		message += fmt.Sprintf("; it has no queues, so queueName %s means nothing", name)
	}
	if placed >= least {
		return metav1.ConditionTrue, v1.GangScheduledReason, message
	}
	if gang.Observed != nil {
		if says := gang.Scheduler.says(gang.Observed); says != "" {
			return metav1.ConditionFalse, v1.GangPendingReason, message + ": " + says
		}
	}
	if names := gang.ofUnknown(); placed == 0 && len(names) > 0 {
		message += fmt.Sprintf("; the pods wait for %s, and nothing is known of whether it runs", schedulers(names))
	}
	return metav1.ConditionFalse, v1.GangPendingReason, message
}

// noScheduler says what becomes of pods that no gang scheduler is there for.
func (w *Workload) noScheduler() string {
	missing, mend := "no gang scheduler is there", "turn on PodGroups in Kubernetes (feature gate GenericWorkload and "+
		"scheduling.k8s.io/v1beta1), or install scheduler-plugins or Volcano"
	if w.Gang.Scheduler == VolcanoName {
		missing, mend = "Volcano is not there (no PodGroup of scheduling.volcano.sh/v1beta1)", "install it, or leave out gang.scheduler"
	}
	names := w.schedulerNames()
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == corev1.DefaultSchedulerName })
	wait := "wait for " + schedulers(others)
	if w.Gang.Scheduler != VolcanoName || !slices.Equal(others, []string{VolcanoName}) {
		wait += ", of which nothing is known, and which places them one by one if it runs"
	}
	switch {
	case len(others) == 0:
		return missing + ", so the pods are placed one by one: " + mend
	case len(others) < len(names):
		return fmt.Sprintf("%s: some pods are placed one by one, and others %s: %s", missing, wait, mend)
	default:
		return fmt.Sprintf("%s, and the pods %s: %s", missing, wait, mend)
	}
}

// schedulerNames are those that the pods give, each once, in order: their own,
// or else the gang's, or else that of Kubernetes.
func (w *Workload) schedulerNames() []string {
	var names []string
	for _, crew := range w.Crews {
		if len(crew.Members) > 0 {
			names = append(names, cmp.Or(crew.Spec.SchedulerName, w.Gang.Scheduler, corev1.DefaultSchedulerName))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ofUnknown are the schedulers of the pods that nobody but their operator knows.
// A pod group alone does not bring them.
func (g *Gang) ofUnknown() []string {
	return slices.DeleteFunc(g.schedulerNames(), func(name string) bool {
		return name == corev1.DefaultSchedulerName || name == VolcanoName && g.Scheduler.Kind() == VolcanoKind
	})
}

// placer says who places the pods, and by which kind of pod group.
func (g *Gang) placer() string {
	if names := g.ofUnknown(); len(names) > 0 {
		return fmt.Sprintf("%s is to place them, by a pod group of %s,", schedulers(names), g.Scheduler.Title())
	}
	return g.Scheduler.Title() + " places them"
}

func schedulers(names []string) string {
	if len(names) == 1 {
		return "scheduler " + names[0]
	}
	return "schedulers " + strings.Join(names, " and ")
}
