package pods

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestMount(t *testing.T) {
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	claim := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}
	}
	ours := func(name string) corev1.Volume { return corev1.Volume{Name: name, VolumeSource: empty} }
	at := func(volume, path string) corev1.VolumeMount { return corev1.VolumeMount{Name: volume, MountPath: path} }
	for name, tc := range map[string]struct {
		volumes, wantVolumes []corev1.Volume
		mounts, wantMounts   []corev1.VolumeMount
	}{
		"nothing is there": {nil, []corev1.Volume{ours("logs")}, nil, []corev1.VolumeMount{at("logs", "/logs")}},
		"the path is taken": {
			[]corev1.Volume{claim("data")}, []corev1.Volume{claim("data"), ours("logs")},
			[]corev1.VolumeMount{at("data", "/logs")}, []corev1.VolumeMount{at("logs", "/logs")},
		},
		"the name is the author's": {
			[]corev1.Volume{claim("logs"), claim("logs-2")}, []corev1.Volume{claim("logs"), claim("logs-2"), ours("logs-3")},
			[]corev1.VolumeMount{at("logs", "/data")}, []corev1.VolumeMount{at("logs", "/data"), at("logs-3", "/logs")},
		},
		"another container has it": {
			[]corev1.Volume{ours("logs")}, []corev1.Volume{ours("logs")}, nil, []corev1.VolumeMount{at("logs", "/logs")},
		},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: tc.volumes, Containers: []corev1.Container{{VolumeMounts: tc.mounts}}}}
		Mount(pod, &pod.Spec.Containers[0], "/logs", ours("logs"))
		if diff := cmp.Diff(tc.wantVolumes, pod.Spec.Volumes); diff != "" {
			t.Errorf("%s: volumes (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.wantMounts, pod.Spec.Containers[0].VolumeMounts); diff != "" {
			t.Errorf("%s: mounts (-want +got):\n%s", name, diff)
		}
	}
}
