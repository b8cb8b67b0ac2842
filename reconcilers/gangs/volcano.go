package gangs

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// volcano is Volcano: it admits groups to queues, and has pods made only then.
type volcano struct{}

const (
	// VolcanoName is the name of its scheduler.
	VolcanoName = "volcano"
	// VolcanoGroupAnnotation is the annotation of a pod that names its group.
	VolcanoGroupAnnotation = "scheduling.k8s.io/group-name"
	// VolcanoTaskAnnotation is the annotation of a pod that names its role.
	VolcanoTaskAnnotation = "volcano.sh/task-spec"
)

// VolcanoKind is the kind of its groups.
var VolcanoKind = schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}

func (volcano) Kind() schema.GroupVersionKind { return VolcanoKind }

func (volcano) Title() string { return "Volcano" }

func (volcano) Counts() bool { return true }

func (volcano) queues() bool { return true }

// group keeps the queue that the group has: Volcano does not move one.
func (volcano) group(g *Gang, observed plan.Object) runtime.ApplyConfiguration {
	spec := g.pluginSpec()
	queue := g.Gang.QueueName
	if group, ok := observed.(*unstructured.Unstructured); ok {
		if there, _, _ := unstructured.NestedString(group.Object, "spec", "queue"); there != "" {
			queue = there
		}
	}
	if queue != "" {
		spec["queue"] = queue
	}
	if name := g.priorityClass(); name != "" {
		spec["priorityClassName"] = name
	}
	return groupFields(g, VolcanoKind, spec)
}

func (volcano) join(g *Gang, role v1.RoleName, pod *corev1.Pod) {
	pod.Annotations = pods.WithLabels(pod.Annotations, map[string]string{
		VolcanoGroupAnnotation: g.Name,
		VolcanoTaskAnnotation:  strings.ToLower(string(role)),
	})
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = VolcanoName
	}
}

func (volcano) Joined(group string, pod *corev1.Pod) bool {
	return pod.Annotations[VolcanoGroupAnnotation] == group
}

// Admits says whether the group was admitted to its queue: before that Volcano
// refuses pods, as they could only wait.
func (volcano) Admits(group plan.Object) bool {
	phase := PhaseOf(group)
	return phase != "" && phase != "Pending"
}

func (v volcano) says(group plan.Object) string {
	if !v.Admits(group) {
		return "its queue has not admitted the group yet"
	}
	return saysPhase(group)
}

func (volcano) keeps(plan.Object, v1.LabelKey) bool { return false }
