package pods

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

const (
	// maxNamed is how many pods one event names.
	maxNamed = 8
	// maxReason is how much of what a pod says of itself is repeated, in bytes.
	maxReason = 200
)

// CreatedEvent tells that pods were made.
func CreatedEvent(n int) plan.Event {
	return plan.Event{
		Type: corev1.EventTypeNormal, Reason: "PodsCreated", Action: "CreatePods",
		Message: "Created " + plan.Count(n, "pod"),
	}
}

// Replaced is a pod that has ended and that a new one takes the place of.
type Replaced struct {
	Pod *corev1.Pod
	Condition
}

// ReplacedEvent tells of all pods that one pass replaces, of which there must be
// one. Events of one reason are folded into the first, whose text stays; that
// they are related to different pods keeps those of different passes apart.
func ReplacedEvent(replaced []Replaced) plan.Event {
	e := plan.Event{Type: corev1.EventTypeWarning, Reason: "PodReplaced", Action: "ReplacePod", Related: replaced[0].Pod}
	if len(replaced) == 1 {
		e.Message = replaced[0].says() + "; a new one takes its place"
		if replaced[0].Lost {
			e.Message += ", which is not counted as a restart"
		}
		return e
	}
	var lines []string
	for _, r := range replaced[:min(len(replaced), maxNamed)] {
		line := r.says()
		if r.Lost {
			line += ", which is not counted as a restart"
		}
		lines = append(lines, line)
	}
	if more := len(replaced) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	e.Message = fmt.Sprintf("New pods take the place of %d: %s", len(replaced), strings.Join(lines, "; "))
	return e
}

func (r Replaced) says() string {
	switch {
	case r.Lost:
		return fmt.Sprintf("Pod %s was lost with its node%s", r.Pod.Name, inBrackets(r.Pod.Status.Reason, r.Pod.Status.Message))
	case r.Exit == nil && r.State == Succeeded:
		return fmt.Sprintf("Pod %s ended", r.Pod.Name)
	default:
		return fmt.Sprintf("Pod %s %s", r.Pod.Name, Ending(r.Exit, r.Pod))
	}
}

// Ending says in words how a pod ended, of which the exit is that of its main
// container; nil where that is not known.
func Ending(exit *corev1.ContainerStateTerminated, pod *corev1.Pod) string {
	switch {
	case exit != nil && pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "":
		return fmt.Sprintf("ended with exit code %d%s", exit.ExitCode, inBrackets(pod.Status.Reason, pod.Status.Message))
	case exit != nil && exit.Reason != "" && exit.Reason != "Error":
		return fmt.Sprintf("ended with exit code %d (%s)", exit.ExitCode, exit.Reason)
	case exit != nil:
		return fmt.Sprintf("ended with exit code %d", exit.ExitCode)
	case pod.Status.Reason != "":
		return "failed" + inBrackets(pod.Status.Reason, pod.Status.Message)
	default:
		return "failed without an exit code"
	}
}

// inBrackets gives the reason that a pod gives, and as much of its own words as
// a line can hold.
func inBrackets(reason, message string) string {
	message = strings.Trim(strings.Join(strings.Fields(message), " "), ". ")
	if len(message) > maxReason {
		message = strings.ToValidUTF8(message[:maxReason], "") + "..."
	}
	switch {
	case reason == "" && message == "":
		return ""
	case message == "":
		return " (" + reason + ")"
	case reason == "":
		return " (" + message + ")"
	default:
		return " (" + reason + ": " + message + ")"
	}
}
