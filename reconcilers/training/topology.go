package training

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// gather makes a pod keep to one domain with the others of its role, and of its
// gang, as the topology of each asks, by affinity: the first pod chooses the
// domain. Where a gang scheduler chooses one that has room for all, affinity
// would only bind its hands.
func (p *planner) gather(role *v1.Role, pod *corev1.Pod) {
	if !p.gang.Keeps(role.Topology) {
		pods.Gather(pod, role.Topology, roleLabels(p.job, role.Name))
	}
	if gang := p.job.Spec.Gang; gang != nil && !p.gang.Keeps(gang.Topology) {
		pods.Gather(pod, gang.Topology, jobLabels(p.job))
	}
}
