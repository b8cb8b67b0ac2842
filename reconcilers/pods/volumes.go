package pods

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Mount gives a container a volume at a path. What the template mounts at that
// path gives way: injected values win. A volume of the template that only has
// the same name is the author's and stays: the new one gets a number then.
func Mount(pod *corev1.Pod, container *corev1.Container, path string, volume corev1.Volume) {
	named := func(name string) int {
		return slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	}
	base, at := volume.Name, named(volume.Name)
	for n := 2; at >= 0 && !equality.Semantic.DeepEqual(pod.Spec.Volumes[at].VolumeSource, volume.VolumeSource); n++ {
		volume.Name = fmt.Sprintf("%s-%d", base, n)
		at = named(volume.Name)
	}
	if at < 0 {
		pod.Spec.Volumes = append(slices.Clip(pod.Spec.Volumes), volume)
	}
	container.VolumeMounts = append(slices.DeleteFunc(slices.Clone(container.VolumeMounts), func(m corev1.VolumeMount) bool {
		return m.MountPath == path
	}), corev1.VolumeMount{Name: volume.Name, MountPath: path})
}
