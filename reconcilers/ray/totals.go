package ray

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// totals is what the wanted pods of a cluster ask for: what the containers of
// their templates request, or else their limits. What Penstock adds to a pod is
// not in it, and neither are init containers.
func (p *planner) totals() v1.ResourceTotals {
	sum := corev1.ResourceList{}
	addPods(sum, headOf(p.cluster), 1)
	for _, g := range p.census.groups {
		addPods(sum, g.role, int64(p.target(g))*int64(g.hosts))
	}
	gpus := resource.Quantity{Format: resource.DecimalSI}
	for name, quantity := range sum {
		if isGPU(name) {
			gpus.Add(quantity)
		}
	}
	return v1.ResourceTotals{CPU: total(sum, corev1.ResourceCPU), Memory: total(sum, corev1.ResourceMemory), GPU: &gpus, TPU: total(sum, tpu)}
}

// addPods adds what a number of pods of a role ask for.
func addPods(sum corev1.ResourceList, role *v1.RayRole, n int64) {
	for i := range role.Template.Spec.Containers {
		for name, quantity := range pods.ContainerRequests(&role.Template.Spec.Containers[i]) {
			quantity.Mul(n)
			pods.Add(sum, name, quantity)
		}
	}
}

func total(sum corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	quantity, ok := sum[name]
	if !ok {
		quantity = resource.Quantity{Format: resource.DecimalSI}
	}
	return &quantity
}
