package pods

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Mount gives a container a volume at a path. What the template has under that
// name or at that path gives way: injected values win.
func Mount(pod *corev1.Pod, container *corev1.Container, path string, volume corev1.Volume) {
	pod.Spec.Volumes = append(slices.DeleteFunc(slices.Clone(pod.Spec.Volumes), func(v corev1.Volume) bool {
		return v.Name == volume.Name
	}), volume)
	container.VolumeMounts = append(slices.DeleteFunc(slices.Clone(container.VolumeMounts), func(m corev1.VolumeMount) bool {
		return m.MountPath == path
	}), corev1.VolumeMount{Name: volume.Name, MountPath: path})
}
