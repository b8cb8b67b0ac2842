package gangs

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// Kinds returns an object of every kind of pod group.
func Kinds() []plan.Object {
	return []plan.Object{&schedulingv1beta1.PodGroup{}, emptyGroup(PluginsKind), emptyGroup(VolcanoKind)}
}

func emptyGroup(kind schema.GroupVersionKind) *unstructured.Unstructured {
	group := &unstructured.Unstructured{}
	group.SetGroupVersionKind(kind)
	return group
}

// IsPodGroup says whether a child is a pod group of any scheduler.
func IsPodGroup(child plan.Object) bool { return !KindOf(child).Empty() }

// KindOf returns the kind of a pod group, none for any other child.
// Nothing else is owned without a Go type.
func KindOf(child plan.Object) schema.GroupVersionKind {
	switch group := child.(type) {
	case *schedulingv1beta1.PodGroup:
		return NativeKind
	case *unstructured.Unstructured:
		return group.GroupVersionKind()
	default:
		return schema.GroupVersionKind{}
	}
}

// groupFields is the pod group of a workload, in a kind that has no Go type here.
func groupFields(g *Gang, kind schema.GroupVersionKind, spec map[string]any) plan.Fields {
	group := emptyGroup(kind)
	group.SetName(g.Name)
	group.SetNamespace(g.Namespace)
	group.SetLabels(g.Labels)
	group.Object["spec"] = spec
	return plan.Fields{Unstructured: group}
}

// PhaseOf returns the phase that an untyped group says it is in, or nothing.
func PhaseOf(group plan.Object) string {
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
	if phase := PhaseOf(group); phase != "" {
		return "its phase is " + phase
	}
	return ""
}

// pluginSpec is what the specs of scheduler-plugins and Volcano have in common.
func (g *Gang) pluginSpec() map[string]any {
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
