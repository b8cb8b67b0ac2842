package training

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// schedulerPlugins is the coscheduling of sigs.k8s.io/scheduler-plugins. The
// scheduler that has it goes by the name that its operator gave it, in
// spec.gang.scheduler, or is the cluster's default.
type schedulerPlugins struct{}

const pluginsGroupLabel = "scheduling.x-k8s.io/pod-group"

var pluginsGroupKind = schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"}

func (schedulerPlugins) kind() schema.GroupVersionKind { return pluginsGroupKind }

func (schedulerPlugins) title() string { return "scheduler-plugins" }

func (schedulerPlugins) counts() bool { return false }

func (schedulerPlugins) queues() bool { return false }

func (schedulerPlugins) group(g *gang, _ plan.Object) runtime.ApplyConfiguration {
	spec := g.pluginSpec()
	if seconds := g.job.Spec.Gang.ScheduleTimeoutSeconds; seconds != nil {
		spec["scheduleTimeoutSeconds"] = int64(*seconds)
	}
	return groupFields(g.job, pluginsGroupKind, spec)
}

// join does not touch the scheduler's name: without one in the spec it is the
// default scheduler that has the plugin.
func (schedulerPlugins) join(g *gang, _ *member, pod *corev1.Pod) {
	pod.Labels[pluginsGroupLabel] = g.job.Name
	g.prioritize(pod)
}

func (schedulerPlugins) joined(job *v1.TrainingJob, pod *corev1.Pod) bool {
	return pod.Labels[pluginsGroupLabel] == job.Name
}

func (schedulerPlugins) admits(plan.Object) bool { return true }

func (schedulerPlugins) says(group plan.Object) string { return saysPhase(group) }

func (schedulerPlugins) keeps(plan.Object, v1.LabelKey) bool { return false }
