package pods

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// Lean keeps of a pod's spec what can tell how it is and what it is of: nothing
// of it can be healed, as pods do not change. Most of a pod in memory is the
// rest, the more the longer its environment is.
func Lean(child plan.Object) {
	pod, ok := child.(*corev1.Pod)
	if !ok {
		return
	}
	spec := &pod.Spec
	containers := make([]corev1.Container, len(spec.Containers))
	for i := range spec.Containers {
		// How many there are, and the names by which their statuses are found.
		containers[i].Name = spec.Containers[i].Name
	}
	pod.Spec = corev1.PodSpec{
		NodeName:        spec.NodeName,
		RestartPolicy:   spec.RestartPolicy,
		SchedulingGroup: spec.SchedulingGroup,
		Containers:      containers,
	}
	pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses = nil, nil
}
