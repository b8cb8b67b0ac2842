package pods

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// State is how far one pod is, as its main container tells.
type State int

const (
	// Missing means that there is no pod.
	Missing State = iota
	// Pending means that the main container has not started.
	Pending
	// Active means that the main container runs, or the kubelet restarts it
	// in place.
	Active
	// Succeeded means that the main container has ended well for good.
	Succeeded
	// Failed means that the main container has ended badly and nobody restarts
	// it in place, or that the pod was lost with its node.
	Failed
	// Terminating means that the pod is being deleted, which is never a failure.
	Terminating
)

// Condition is what there is to know about one pod.
type Condition struct {
	State State
	// Ready says that an active pod is ready.
	Ready bool
	// Lost says that a failed pod failed through its node and not by itself.
	Lost bool
	// AwaitsRestart says that the main container of an active pod has ended and
	// the kubelet is about to restart it.
	AwaitsRestart bool
	// Restarts is how often the kubelet restarted the main container.
	Restarts int32
	// Exit is how the main container ended last, nil when that is not known.
	Exit *corev1.ContainerStateTerminated
}

// Examine reads a pod. Only the main container counts: a pod whose main
// container has ended for good has succeeded or failed although a sidecar still
// runs, and the exit codes of sidecars mean nothing.
func Examine(pod *corev1.Pod, container string) Condition {
	status := MainStatus(pod, container)
	c := Condition{
		Restarts: status.RestartCount,
		Exit:     lastExit(status),
		Ready:    IsReady(pod),
	}
	ended := status.State.Terminated
	switch {
	case pod.DeletionTimestamp != nil:
		c.State = Terminating
	case pod.Status.Phase == corev1.PodSucceeded:
		c.State = Succeeded
	case pod.Status.Phase == corev1.PodFailed:
		// A program that is told to stop may well exit with 0: for a pod that
		// was lost that is no success.
		c.State, c.Lost, c.Exit = Failed, IsLost(pod), ended
		if !c.Lost && ended != nil && ended.ExitCode == 0 {
			c.State = Succeeded
		}
	case pod.Status.Phase != corev1.PodRunning:
		c.State = Pending
	case ended == nil || RestartsInPlace(pod, ended.ExitCode):
		c.State = Active
		c.AwaitsRestart = ended != nil || (status.State.Waiting != nil && c.Exit != nil)
	case ended.ExitCode == 0:
		c.State = Succeeded
	default:
		c.State = Failed
	}
	return c
}

// MainContainer returns the container with the framework's name, or else the
// first.
func MainContainer(spec *corev1.PodSpec, name string) *corev1.Container {
	if len(spec.Containers) == 0 {
		return nil
	}
	i := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	return &spec.Containers[max(i, 0)]
}

// MainStatus returns the status of the main container, empty before it has one.
func MainStatus(pod *corev1.Pod, name string) corev1.ContainerStatus {
	if container := MainContainer(&pod.Spec, name); container != nil {
		name = container.Name
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == name {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

func lastExit(status corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if status.State.Terminated != nil {
		return status.State.Terminated
	}
	return status.LastTerminationState.Terminated
}

// RestartsInPlace says whether the kubelet restarts a container that ended.
func RestartsInPlace(pod *corev1.Pod, exitCode int32) bool {
	switch pod.Spec.RestartPolicy {
	case corev1.RestartPolicyAlways, "":
		return true
	case corev1.RestartPolicyOnFailure:
		return exitCode != 0
	default:
		return false
	}
}

// IsReady says whether a pod is ready.
func IsReady(pod *corev1.Pod) bool {
	return hasCondition(pod, corev1.PodReady)
}

func hasCondition(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// lostReasons are the reasons of failed pods that name the node as the cause.
// Kubelets older than the DisruptionTarget condition give nothing else.
var lostReasons = []string{"NodeShutdown", "Shutdown", "Terminated", "NodeLost", "Preempting", "Preempted"}

// IsLost says whether a failed pod failed through its node: drained, preempted,
// shut down, evicted because the node ran short.
//
// A pod that is evicted because it went beyond a limit of its own, as for
// ephemeral storage, is not lost: it would do so again and again. The kubelet
// gives such pods no DisruptionTarget, and a message that speaks of the limit.
func IsLost(pod *corev1.Pod) bool {
	switch {
	case hasCondition(pod, corev1.DisruptionTarget):
		return true
	case pod.Status.Reason == "Evicted":
		return !strings.Contains(pod.Status.Message, "limit")
	default:
		return slices.Contains(lostReasons, pod.Status.Reason)
	}
}
