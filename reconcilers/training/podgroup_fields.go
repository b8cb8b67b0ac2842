package training

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// podGroups returns an object of every kind of pod group.
func podGroups() []plan.Object {
	return []plan.Object{&schedulingv1beta1.PodGroup{}, emptyGroup(pluginsGroupKind), emptyGroup(volcanoGroupKind)}
}

func emptyGroup(kind schema.GroupVersionKind) *unstructured.Unstructured {
	group := &unstructured.Unstructured{}
	group.SetGroupVersionKind(kind)
	return group
}

func isPodGroup(child plan.Object) bool { return !kindOfGroup(child).Empty() }

// kindOfGroup returns the kind of a pod group, none for any other child.
// Nothing else is owned without a Go type.
func kindOfGroup(child plan.Object) schema.GroupVersionKind {
	switch group := child.(type) {
	case *schedulingv1beta1.PodGroup:
		return nativeGroupKind
	case *unstructured.Unstructured:
		return group.GroupVersionKind()
	default:
		return schema.GroupVersionKind{}
	}
}

// groupFields is the pod group of a job, in a kind that has no Go type here.
func groupFields(job *v1.TrainingJob, kind schema.GroupVersionKind, spec map[string]any) plan.Fields {
	group := emptyGroup(kind)
	group.SetName(job.Name)
	group.SetNamespace(job.Namespace)
	group.SetLabels(jobLabels(job))
	group.Object["spec"] = spec
	return plan.Fields{Unstructured: group}
}

func phaseOf(group plan.Object) string {
	if untyped, ok := group.(*unstructured.Unstructured); ok {
		phase, _, _ := unstructured.NestedString(untyped.Object, "status", "phase")
		return phase
	}
	return ""
}

// saysPhase returns what an untyped group says of why it waits: the message of
// its condition Unschedulable, or its phase.
func saysPhase(group plan.Object) string {
	untyped, ok := group.(*unstructured.Unstructured)
	if !ok {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(untyped.Object, "status", "conditions")
	for _, item := range conditions {
		condition, ok := item.(map[string]any)
		if !ok || condition["type"] != "Unschedulable" || condition["status"] != "True" {
			continue
		}
		if message, ok := condition["message"].(string); ok && message != "" {
			return message
		}
	}
	if phase := phaseOf(group); phase != "" {
		return "its phase is " + phase
	}
	return ""
}

// pluginSpec is what the specs of scheduler-plugins and Volcano have in common.
func (g *gang) pluginSpec() map[string]any {
	spec := map[string]any{"minMember": int64(g.needed())}
	if least := g.minResources(); len(least) > 0 {
		quantities := make(map[string]any, len(least))
		for name, quantity := range least {
			quantities[string(name)] = quantity.String()
		}
		spec["minResources"] = quantities
	}
	return spec
}
