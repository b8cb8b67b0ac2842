package training

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

func (p *planner) event(e plan.Event) { p.result.Events = append(p.result.Events, e) }

func gangRestarted(cause *gangCause) plan.Event {
	name, what := cause.member.role.Name, "was deleted"
	switch {
	case cause.member.pod == nil:
	case cause.lost && cause.member.State == pods.Failed:
		what = "was lost with its node"
	case !cause.lost:
		what = cause.member.ending()
	}
	counted := ""
	if cause.lost {
		counted = ", which is not counted as a restart"
	}
	return plan.Event{
		Type: corev1.EventTypeWarning, Reason: "GangRestarted", Action: "RestartGang",
		Message: fmt.Sprintf("The pod of %s %d %s: all pods are replaced%s", name, cause.member.index, what, counted),
	}
}

func jobSucceeded(message string) plan.Event {
	return plan.Event{Type: corev1.EventTypeNormal, Reason: "JobSucceeded", Action: "FinishJob", Message: message}
}

func jobFailed(reason, message string) plan.Event {
	return plan.Event{Type: corev1.EventTypeWarning, Reason: "JobFailed", Action: "FinishJob", Message: reason + ": " + message}
}

func jobSuspended() plan.Event {
	return plan.Event{Type: corev1.EventTypeNormal, Reason: "JobSuspended", Action: "SuspendJob", Message: "Deleted the pods of the suspended job"}
}

func jobResumed() plan.Event {
	return plan.Event{Type: corev1.EventTypeNormal, Reason: "JobResumed", Action: "ResumeJob", Message: "Resumed the job"}
}
