package gangs

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// plugins is the coscheduling of sigs.k8s.io/scheduler-plugins. The
// scheduler that has it goes by the name that its operator gave it, in
// spec.gang.scheduler, or is the cluster's default.
type plugins struct{}

// PluginsGroupLabel is the label of a pod that names its group.
const PluginsGroupLabel = "scheduling.x-k8s.io/pod-group"

// PluginsKind is the kind of its groups.
var PluginsKind = schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"}

func (plugins) Kind() schema.GroupVersionKind { return PluginsKind }

func (plugins) Title() string { return "scheduler-plugins" }

func (plugins) Counts() bool { return false }

func (plugins) queues() bool { return false }

func (plugins) group(g *Gang, _ plan.Object) runtime.ApplyConfiguration {
	spec := g.pluginSpec()
	if seconds := g.Gang.ScheduleTimeoutSeconds; seconds != nil {
		spec["scheduleTimeoutSeconds"] = int64(*seconds)
	}
	return groupFields(g, PluginsKind, spec)
}

// join does not touch the scheduler's name: without one in the spec it is the
// default scheduler that has the plugin.
func (plugins) join(g *Gang, _ v1.RoleName, pod *corev1.Pod) {
	pod.Labels[PluginsGroupLabel] = g.Name
	g.prioritize(pod)
}

func (plugins) Joined(group string, pod *corev1.Pod) bool {
	return pod.Labels[PluginsGroupLabel] == group
}

func (plugins) Admits(plan.Object) bool { return true }

func (plugins) says(group plan.Object) string { return saysPhase(group) }

func (plugins) keeps(plan.Object, v1.LabelKey) bool { return false }
