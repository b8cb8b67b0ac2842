package training

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// volcano is Volcano: it admits groups to queues, and has pods made only then.
type volcano struct{}

const (
	// volcanoName is the name of its scheduler.
	volcanoName            = "volcano"
	volcanoGroupAnnotation = "scheduling.k8s.io/group-name"
	volcanoTaskAnnotation  = "volcano.sh/task-spec"
)

var volcanoGroupKind = schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}

func (volcano) kind() schema.GroupVersionKind { return volcanoGroupKind }

func (volcano) title() string { return "Volcano" }

func (volcano) counts() bool { return true }

func (volcano) queues() bool { return true }

// group keeps the queue that the group has: Volcano does not move one.
func (volcano) group(g *gang, observed plan.Object) runtime.ApplyConfiguration {
	spec := g.pluginSpec()
	queue := g.job.Spec.Gang.QueueName
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
	return groupFields(g.job, volcanoGroupKind, spec)
}

func (volcano) join(g *gang, m *member, pod *corev1.Pod) {
	pod.Annotations = withLabels(pod.Annotations, map[string]string{
		volcanoGroupAnnotation: g.job.Name,
		volcanoTaskAnnotation:  strings.ToLower(string(m.role.Name)),
	})
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = volcanoName
	}
}

func (volcano) joined(job *v1.TrainingJob, pod *corev1.Pod) bool {
	return pod.Annotations[volcanoGroupAnnotation] == job.Name
}

// admits says whether the group was admitted to its queue: before that Volcano
// refuses pods, as they could only wait.
func (volcano) admits(group plan.Object) bool {
	phase := phaseOf(group)
	return phase != "" && phase != "Pending"
}

func (v volcano) says(group plan.Object) string {
	if !v.admits(group) {
		return "its queue has not admitted the group yet"
	}
	return saysPhase(group)
}

func (volcano) keeps(plan.Object, v1.LabelKey) bool { return false }
