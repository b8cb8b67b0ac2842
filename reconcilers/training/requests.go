package training

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// minResources is what must be free before any pod of the gang is placed: what
// the job says, or the requests of as many pods as are needed, in the
// framework's order of roles.
func (g *gang) minResources() corev1.ResourceList {
	if given := g.job.Spec.Gang.MinResources; len(given) > 0 {
		return given
	}
	total := corev1.ResourceList{}
	left := g.needed()
	for _, crew := range g.together() {
		n := int32(0)
		for _, m := range crew.members {
			if n < left && !g.misses(m) {
				n++
			}
		}
		left -= n
		for name, quantity := range podRequests(&crew.role.Template.Spec) {
			quantity.Mul(int64(n))
			add(total, name, quantity)
		}
	}
	return total
}

// podRequests is what a pod of a template asks for: its containers together
// with the init containers that go on running, or more if one that comes before
// them asks for more.
func podRequests(spec *corev1.PodSpec) corev1.ResourceList {
	total, start, sidecars := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.Containers {
		addAll(total, containerRequests(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		container := &spec.InitContainers[i]
		requests := containerRequests(container)
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			addAll(total, requests)
			addAll(sidecars, requests)
			atLeast(start, sidecars)
			continue
		}
		addAll(requests, sidecars)
		atLeast(start, requests)
	}
	atLeast(total, start)
	addAll(total, spec.Overhead)
	return total
}

// containerRequests is what a container asks for; a limit without a request is
// a request.
func containerRequests(container *corev1.Container) corev1.ResourceList {
	requests := corev1.ResourceList{}
	maps.Copy(requests, container.Resources.Limits)
	maps.Copy(requests, container.Resources.Requests)
	return requests
}

func addAll(to, resources corev1.ResourceList) {
	for name, quantity := range resources {
		add(to, name, quantity)
	}
}

func add(to corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	sum := to[name].DeepCopy()
	sum.Add(quantity)
	to[name] = sum
}

func atLeast(to, resources corev1.ResourceList) {
	for name, quantity := range resources {
		if there, ok := to[name]; !ok || there.Cmp(quantity) < 0 {
			to[name] = quantity
		}
	}
}
