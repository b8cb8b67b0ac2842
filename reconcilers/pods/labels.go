package pods

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// WithLabels returns the union of two sets of labels, in which the second wins.
func WithLabels(user, own map[string]string) map[string]string {
	labels := make(map[string]string, len(user)+len(own))
	maps.Copy(labels, user)
	maps.Copy(labels, own)
	return labels
}

// Relabel adds to what is to be applied what gives a pod its own labels back,
// where somebody has edited them: services find it by them. A pod that is being
// deleted is left alone.
func Relabel(apply []runtime.ApplyConfiguration, pod *corev1.Pod, own map[string]string) []runtime.ApplyConfiguration {
	if pod.DeletionTimestamp != nil {
		return apply
	}
	for key, value := range own {
		if has, ok := pod.Labels[key]; !ok || has != value {
			// The UID keeps applying from making a pod of nothing but labels, should
			// this one be gone by now.
			return append(apply, corev1ac.Pod(pod.Name, pod.Namespace).WithUID(pod.UID).WithLabels(own))
		}
	}
	return apply
}
