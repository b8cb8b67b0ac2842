package pods

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Requests is what a pod of a template asks for: its containers together
// with the init containers that go on running, or more if one that comes before
// them asks for more.
func Requests(spec *corev1.PodSpec) corev1.ResourceList {
	total, start, sidecars := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.Containers {
		AddAll(total, ContainerRequests(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		container := &spec.InitContainers[i]
		requests := ContainerRequests(container)
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			AddAll(total, requests)
			AddAll(sidecars, requests)
			atLeast(start, sidecars)
			continue
		}
		AddAll(requests, sidecars)
		atLeast(start, requests)
	}
	atLeast(total, start)
	AddAll(total, spec.Overhead)
	return total
}

// ContainerRequests is what a container asks for; a limit without a request is
// a request.
func ContainerRequests(container *corev1.Container) corev1.ResourceList {
	requests := corev1.ResourceList{}
	maps.Copy(requests, container.Resources.Limits)
	maps.Copy(requests, container.Resources.Requests)
	return requests
}

// AddAll adds amounts to others.
func AddAll(to, resources corev1.ResourceList) {
	for name, quantity := range resources {
		Add(to, name, quantity)
	}
}

// Add adds an amount of a resource to others.
func Add(to corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
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
