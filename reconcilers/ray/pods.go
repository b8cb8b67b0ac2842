package ray

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// newHead returns the pod of the head.
func (p *planner) newHead() *corev1.Pod {
	role := headOf(p.cluster)
	pod := p.newPod(role, headName(p.cluster))
	if len(pod.Spec.Containers) == 0 {
		return pod
	}
	p.equip(role, pod, headEnvironment(p.cluster, role))
	addAutoscaler(p.cluster, pod)
	p.place(role, pod)
	return pod
}

// newWorker returns the pod of one host of a replica.
func (p *planner) newWorker(g *group, replica, host int32) *corev1.Pod {
	pod := p.newPod(g.role, workerName(p.cluster, g.role.Name, replica, host))
	maps.Copy(pod.Labels, hostLabels(p.cluster, g, replica, host))
	if g.hosts > 1 {
		// Hosts of one replica find each other by name.
		if pod.Spec.Hostname == "" && pod.Spec.Subdomain == "" {
			pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, headlessName(p.cluster)
		}
	}
	if len(pod.Spec.Containers) == 0 {
		return pod
	}
	p.equip(g.role, pod, workerEnvironment(p.cluster))
	for i := range pod.Spec.InitContainers {
		addressVariables(p.cluster).into(&pod.Spec.InitContainers[i])
	}
	awaitGCS(p.cluster, pod)
	p.place(g.role, pod)
	return pod
}

// newPod returns a pod of a role's template.
func (p *planner) newPod(role *v1.RayRole, name string) *corev1.Pod {
	template := role.Template.DeepCopy()
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: p.cluster.Namespace,
			Labels: podLabels(p.cluster, role), Annotations: template.Annotations,
		},
		Spec: template.Spec,
	}
	pod.Spec.RestartPolicy = podRestartPolicy(p.cluster, role)
	if pod.Spec.HostNetwork && pod.Spec.DNSPolicy == "" {
		// With the node's own resolver the pod would not find the head.
		pod.Spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	return pod
}

// equip makes the first container one that runs Ray.
func (p *planner) equip(role *v1.RayRole, pod *corev1.Pod, own environment) {
	container := &pod.Spec.Containers[0]
	params := startParams(p.cluster, role)
	command := startCommand(role, params)
	setCommand(p.cluster, role, container, command)
	own.always.Set(startCommandVariable, command)
	own.into(container)
	authenticate(p.cluster, pod, container)
	shareMemory(role, pod, container)
	probe(p.cluster, role, container, params)
	if role.Name == v1.RoleHead && !hasPort(container, metricsPort.Name) && len(container.Ports) > 0 {
		container.Ports = append(container.Ports, metricsPort)
	}
	if role.Name == v1.RoleHead && len(container.Ports) == 0 {
		container.Ports = headPorts(role)
	}
}

// place says where a pod goes: by whom it is scheduled, and near which others.
func (p *planner) place(role *v1.RayRole, pod *corev1.Pod) {
	gang := p.cluster.Spec.Gang
	if gang != nil && pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = gang.Scheduler
	}
	p.gang.Join(role.Name, pod)
	if !p.gang.Keeps(role.Topology) {
		pods.Gather(pod, role.Topology, roleLabels(p.cluster, role.Name))
	}
	if gang != nil && !p.gang.Keeps(gang.Topology) {
		pods.Gather(pod, gang.Topology, clusterLabels(p.cluster))
	}
}

// shareMemory gives Ray's object store the memory that it shares with its
// workers, as much as the container may use.
func shareMemory(role *v1.RayRole, pod *corev1.Pod, container *corev1.Container) {
	const volume, path = "shared-mem", "/dev/shm"
	if _, elsewhere := rayStartParams(role)["plasma-directory"]; elsewhere || mountAt(container, path) != nil {
		return
	}
	memory := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
	if limit, ok := amount(container, corev1.ResourceMemory); ok {
		memory.SizeLimit = &limit
	}
	pods.Mount(pod, container, path, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{EmptyDir: memory}})
}

func mountAt(container *corev1.Container, path string) *corev1.VolumeMount {
	for i := range container.VolumeMounts {
		if container.VolumeMounts[i].MountPath == path {
			return &container.VolumeMounts[i]
		}
	}
	return nil
}

func hasPort(container *corev1.Container, name string) bool {
	for _, port := range container.Ports {
		if port.Name == name {
			return true
		}
	}
	return false
}
