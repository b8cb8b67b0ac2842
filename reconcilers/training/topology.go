package training

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// gather makes a pod keep to one domain with the others of its role, and of its
// gang, as the topology of each asks, by affinity: the first pod chooses the
// domain. Where a gang scheduler chooses one that has room for all, affinity
// would only bind its hands.
func (p *planner) gather(role *v1.Role, pod *corev1.Pod) {
	if !p.kept(role.Topology) {
		together(pod, role.Topology, roleLabels(p.job, role.Name))
	}
	if gang := p.job.Spec.Gang; gang != nil && !p.kept(gang.Topology) {
		together(pod, gang.Topology, jobLabels(p.job))
	}
}

// kept says whether the gang's scheduler keeps to a topology by itself.
func (p *planner) kept(topology *v1.Topology) bool {
	return topology != nil && topology.Required != "" && p.gang != nil && p.gang.observed != nil &&
		p.gang.keeps(p.gang.observed, topology.Required)
}

func together(pod *corev1.Pod, topology *v1.Topology, labels map[string]string) {
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
