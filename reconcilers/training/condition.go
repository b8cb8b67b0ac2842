package training

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// state is how far one pod is, as its main container tells.
type state int

const (
	// missing: there is no pod.
	missing state = iota
	// pending: the main container has not started.
	pending
	// active: the main container runs, or the kubelet restarts it in place.
	active
	// succeeded: the main container has ended well for good.
	succeeded
	// failed: the main container has ended badly and nobody restarts it in
	// place, or the pod was lost with its node.
	failed
	// terminating: the pod is being deleted, which is never a failure.
	terminating
)

// condition is what there is to know about one pod.
type condition struct {
	state state
	// ready says that an active pod is ready.
	ready bool
	// lost says that a failed pod failed through its node and not by itself.
	lost bool
	// awaitsRestart says that the main container of an active pod has ended and
	// the kubelet is about to restart it.
	awaitsRestart bool
	// restarts is how often the kubelet restarted the main container.
	restarts int32
	// exit is how the main container ended last, nil when that is not known.
	exit *corev1.ContainerStateTerminated
}

// examine reads a pod. Only the main container counts: a pod whose main
// container has ended for good has succeeded or failed although a sidecar still
// runs, and the exit codes of sidecars mean nothing.
func examine(pod *corev1.Pod, container string) condition {
	status := mainStatus(pod, container)
	c := condition{
		restarts: status.RestartCount,
		exit:     lastExit(status),
		ready:    isReady(pod),
	}
	ended := status.State.Terminated
	switch {
	case pod.DeletionTimestamp != nil:
		c.state = terminating
	case pod.Status.Phase == corev1.PodSucceeded:
		c.state = succeeded
	case pod.Status.Phase == corev1.PodFailed:
		// A training that is told to stop may well exit with 0: for a pod that
		// was lost that is no success.
		c.state, c.lost, c.exit = failed, isLost(pod), ended
		if !c.lost && ended != nil && ended.ExitCode == 0 {
			c.state = succeeded
		}
	case pod.Status.Phase != corev1.PodRunning:
		c.state = pending
	case ended == nil || restartsInPlace(pod, ended.ExitCode):
		c.state = active
		c.awaitsRestart = ended != nil || (status.State.Waiting != nil && c.exit != nil)
	case ended.ExitCode == 0:
		c.state = succeeded
	default:
		c.state = failed
	}
	return c
}

// mainContainer returns the container with the framework's name, or else the
// first.
func mainContainer(spec *corev1.PodSpec, name string) *corev1.Container {
	if len(spec.Containers) == 0 {
		return nil
	}
	i := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	return &spec.Containers[max(i, 0)]
}

func mainStatus(pod *corev1.Pod, name string) corev1.ContainerStatus {
	if container := mainContainer(&pod.Spec, name); container != nil {
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

// restartsInPlace says whether the kubelet restarts a container that ended.
func restartsInPlace(pod *corev1.Pod, exitCode int32) bool {
	switch pod.Spec.RestartPolicy {
	case corev1.RestartPolicyAlways, "":
		return true
	case corev1.RestartPolicyOnFailure:
		return exitCode != 0
	default:
		return false
	}
}

func isReady(pod *corev1.Pod) bool {
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

// isLost says whether a failed pod failed through its node: drained, preempted,
// shut down, evicted because the node ran short.
//
// A pod that is evicted because it went beyond a limit of its own, as for
// ephemeral storage, is not lost: it would do so again and again. The kubelet
// gives such pods no DisruptionTarget, and a message that speaks of the limit.
func isLost(pod *corev1.Pod) bool {
	switch {
	case hasCondition(pod, corev1.DisruptionTarget):
		return true
	case pod.Status.Reason == "Evicted":
		return !strings.Contains(pod.Status.Message, "limit")
	default:
		return slices.Contains(lostReasons, pod.Status.Reason)
	}
}
