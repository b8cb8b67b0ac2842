package pods

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Waits says why a pod that has not started does not, in words for who wrote it:
// that no node takes it, that an image cannot be pulled, that a container cannot be
// made. It is empty while nothing is known to be in the way.
//
// It says nothing that changes while the pod waits, as the scheduler's own message
// does with every node that comes: each change would be a write of the status.
func Waits(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status == corev1.ConditionTrue {
			continue
		}
		switch c.Reason {
		case corev1.PodReasonUnschedulable:
			return fmt.Sprintf("no node takes pod %s: kubectl describe pod %[1]s says why", pod.Name)
		case corev1.PodReasonSchedulingGated:
			return fmt.Sprintf("pod %s has scheduling gates, which who set them has to remove", pod.Name)
		}
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if waiting := status.State.Waiting; waiting != nil {
			if why := cannotStart(waiting.Reason); why != "" {
				return fmt.Sprintf("container %s of pod %s %s", status.Name, pod.Name, why)
			}
		}
	}
	return ""
}

// The reasons that a kubelet gives for a container that waits:
// https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/kubelet/images/types.go
// and pkg/kubelet/kuberuntime/kuberuntime_container.go. It goes back and forth
// between those of one fault.
var (
	imageReasons  = []string{"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed", "ErrImageNeverPull", "ImageInspectError"}
	configReasons = []string{"CreateContainerConfigError"}
	createReasons = []string{"CreateContainerError", "PreCreateHookError", "PreStartHookError", "RunContainerError"}
)

func cannotStart(reason string) string {
	switch {
	case reason == "InvalidImageName":
		return "has an image whose name is none: correct it"
	case slices.Contains(imageReasons, reason):
		return "has an image that cannot be pulled: check its name and tag, and the pull secret"
	case slices.Contains(configReasons, reason):
		return "names a Secret, a ConfigMap or a key that is not there: create it, or correct the name"
	case slices.Contains(createReasons, reason):
		return "cannot be made: kubectl describe pod says why"
	}
	return ""
}
