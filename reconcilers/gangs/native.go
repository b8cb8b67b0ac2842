package gangs

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	schedulingv1beta1ac "k8s.io/client-go/applyconfigurations/scheduling/v1beta1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// native are Kubernetes' own, from 1.37 on: kube-scheduler places the pods
// of a PodGroup, within one domain of a topology if it says so. All pods of a
// group must have its priority.
type native struct{}

// NativeKind is the kind of their groups.
var NativeKind = schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup")

func (native) Kind() schema.GroupVersionKind { return NativeKind }

func (native) Title() string { return "kube-scheduler" }

func (native) Counts() bool { return false }

func (native) queues() bool { return false }

// group sets what cannot change as the group has it: its priority, how it is
// disrupted, and its topology, which an API server without the feature gate
// TopologyAwareWorkloadScheduling leaves out.
func (native) group(g *Gang, observed plan.Object) runtime.ApplyConfiguration {
	domain, priority, whole := string(g.domain()), g.priorityClass(), g.Whole
	if group, ok := observed.(*schedulingv1beta1.PodGroup); ok {
		domain, priority, whole = domainOf(group), group.Spec.PriorityClassName, isDisruptedWhole(group)
	}
	spec := schedulingv1beta1ac.PodGroupSpec().WithSchedulingPolicy(schedulingv1beta1ac.PodGroupSchedulingPolicy().
		WithGang(schedulingv1beta1ac.GangSchedulingPolicy().WithMinCount(g.needed())))
	if domain != "" {
		spec.WithSchedulingConstraints(schedulingv1beta1ac.PodGroupSchedulingConstraints().
			WithTopology(schedulingv1beta1ac.TopologyConstraint().WithKey(domain)))
	}
	if priority != "" {
		spec.WithPriorityClassName(priority)
	}
	if whole {
		spec.WithDisruptionMode(schedulingv1beta1ac.DisruptionMode().WithAll(schedulingv1beta1.AllDisruptionMode{}))
	}
	return schedulingv1beta1ac.PodGroup(g.Name, g.Namespace).WithLabels(g.Labels).WithSpec(spec)
}

func (native) join(g *Gang, _ v1.RoleName, pod *corev1.Pod) {
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new(g.Name)}
	g.prioritize(pod)
}

func (native) Joined(group string, pod *corev1.Pod) bool {
	link := pod.Spec.SchedulingGroup
	return link != nil && link.PodGroupName != nil && *link.PodGroupName == group
}

func (native) Admits(plan.Object) bool { return true }

func (native) says(group plan.Object) string {
	native, ok := group.(*schedulingv1beta1.PodGroup)
	if !ok {
		return ""
	}
	c := meta.FindStatusCondition(native.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
	if c == nil || c.Status != metav1.ConditionFalse {
		return ""
	}
	return c.Message
}

func (native) keeps(group plan.Object, key v1.LabelKey) bool {
	native, ok := group.(*schedulingv1beta1.PodGroup)
	return ok && domainOf(native) == string(key)
}

func domainOf(group *schedulingv1beta1.PodGroup) string {
	constraints := group.Spec.SchedulingConstraints
	if constraints == nil || len(constraints.Topology) == 0 {
		return ""
	}
	return constraints.Topology[0].Key
}

func isDisruptedWhole(group *schedulingv1beta1.PodGroup) bool {
	return group.Spec.DisruptionMode != nil && group.Spec.DisruptionMode.All != nil
}
