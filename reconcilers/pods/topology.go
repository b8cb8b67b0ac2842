package pods

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// Gather makes a pod keep to one domain of a topology with the pods that have
// labels.
func Gather(pod *corev1.Pod, topology *v1.Topology, labels map[string]string) {
	if topology == nil {
		return
	}
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.PodAffinity == nil {
		pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{}
	}
	affinity := pod.Spec.Affinity.PodAffinity
	term := corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}
	if topology.Required != "" {
		term.TopologyKey = string(topology.Required)
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = append(
			affinity.RequiredDuringSchedulingIgnoredDuringExecution, term)
	}
	if topology.Preferred != "" {
		term.TopologyKey = string(topology.Preferred)
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
			affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: term})
	}
}
