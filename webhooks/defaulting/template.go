package defaulting

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

func defaultTemplate(spec *v1.TrainingJobSpec, pod *corev1.PodSpec) {
	defaultPod(pod)
	addFrameworkPort(spec.Framework, pod)
}

// defaultPod writes what holds for the pods of every kind.
func defaultPod(pod *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			defaultProtocols(containers[i].Ports)
			defaultExtendedResources(&containers[i].Resources)
		}
	}
	for i := range pod.EphemeralContainers {
		defaultProtocols(pod.EphemeralContainers[i].Ports)
	}
}

// defaultProtocols writes what the schema of v1 writes as well; here it keeps
// the comparison of ports below simple.
func defaultProtocols(ports []corev1.ContainerPort) {
	for i := range ports {
		setEmpty(&ports[i].Protocol, corev1.ProtocolTCP)
	}
}

// addFrameworkPort declares the port at which the job's pods meet, unless the
// main container declares one of that name. The Training Operator looks at
// names only, so that an equal number under another name becomes a duplicate
// and the job's Service cannot be made; here a number that any container of
// the pod declares is not declared again.
func addFrameworkPort(framework v1.Framework, pod *corev1.PodSpec) {
	name, number := framework.Port()
	container := findContainer(pod, framework.MainContainer())
	if name == "" || container == nil {
		return
	}
	for _, port := range container.Ports {
		if port.Name == name {
			return
		}
	}
	for i := range pod.Containers {
		for _, port := range pod.Containers[i].Ports {
			if port.ContainerPort == number && port.Protocol == corev1.ProtocolTCP {
				return
			}
		}
	}
	container.Ports = append(container.Ports, corev1.ContainerPort{
		Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP,
	})
}

func findContainer(pod *corev1.PodSpec, name string) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == name {
			return &pod.Containers[i]
		}
	}
	return nil
}

// defaultExtendedResources makes request and limit of an extended resource
// equal when only one is given. Kubernetes does so for pods from limit to
// request and refuses the reverse, since extended resources cannot be
// overcommitted: there is only one thing that half of the pair can mean.
func defaultExtendedResources(resources *corev1.ResourceRequirements) {
	resources.Requests = fillExtended(resources.Requests, resources.Limits)
	resources.Limits = fillExtended(resources.Limits, resources.Requests)
}

func fillExtended(target, source corev1.ResourceList) corev1.ResourceList {
	for name, quantity := range source {
		if !isExtendedResource(name) {
			continue
		}
		if _, given := target[name]; given {
			continue
		}
		if target == nil {
			target = corev1.ResourceList{}
		}
		target[name] = quantity.DeepCopy()
	}
	return target
}

// isExtendedResource is the rule of Kubernetes (pkg/apis/core/helper,
// IsExtendedResourceName): a qualified name outside the kubernetes.io domain.
func isExtendedResource(name corev1.ResourceName) bool {
	text := string(name)
	if !strings.Contains(text, "/") || strings.Contains(text, corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+text)) == 0
}
