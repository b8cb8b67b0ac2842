package pods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWaits(t *testing.T) {
	condition := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"},
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: "0/4 nodes are available"},
		}}
	}
	waiting := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "runs", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
				{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "back-off 10s"}}},
			},
		}
	}
	const image = "container main of pod w-0 has an image that cannot be pulled: check its name and tag, and the pull secret"
	tests := map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"nothing is known":            {corev1.PodStatus{}, ""},
		"no node takes it":            {condition("Unschedulable"), "no node takes pod w-0: kubectl describe pod w-0 says why"},
		"gates":                       {condition("SchedulingGated"), "pod w-0 has scheduling gates, which who set them has to remove"},
		"the scheduler failed":        {condition("SchedulerError"), ""},
		"it starts":                   {waiting("ContainerCreating"), ""},
		"init containers run":         {waiting("PodInitializing"), ""},
		"an image, at first":          {waiting("ErrImagePull"), image},
		"an image, between two tries": {waiting("ImagePullBackOff"), image},
		"an image without a name":     {waiting("InvalidImageName"), "container main of pod w-0 has an image whose name is none: correct it"},
		"a Secret that is not there":  {waiting("CreateContainerConfigError"), "container main of pod w-0 names a Secret, a ConfigMap or a key that is not there: create it, or correct the name"},
		"a container":                 {waiting("CreateContainerError"), "container main of pod w-0 cannot be made: kubectl describe pod says why"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: tc.status}
			pod.Name = "w-0"
			if got := Waits(pod); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
