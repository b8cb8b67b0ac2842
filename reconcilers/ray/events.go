package ray

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

func (p *planner) event(e plan.Event) { p.result.Events = append(p.result.Events, e) }

func podsCreated(n int) plan.Event {
	return plan.Event{Type: corev1.EventTypeNormal, Reason: "PodsCreated", Action: "CreatePods", Message: fmt.Sprintf("Created %d pods", n)}
}

func podReplaced(pod *corev1.Pod, c pods.Condition) plan.Event {
	how := "ended"
	switch {
	case c.Lost:
		how = "was lost with its node"
	case c.Exit != nil && c.Exit.Reason != "" && c.Exit.Reason != "Error":
		how = fmt.Sprintf("ended with exit code %d (%s)", c.Exit.ExitCode, c.Exit.Reason)
	case c.Exit != nil:
		how = fmt.Sprintf("ended with exit code %d", c.Exit.ExitCode)
	}
	return plan.Event{
		Type: corev1.EventTypeWarning, Reason: "PodReplaced", Action: "ReplacePod",
		Message: fmt.Sprintf("Pod %s %s; a new one takes its place", pod.Name, how),
	}
}

func replicaIncomplete(u *unit) plan.Event {
	return plan.Event{
		Type: corev1.EventTypeWarning, Reason: "ReplicaIncomplete", Action: "ReplaceReplica",
		Message: fmt.Sprintf("Replica %d of group %s has not the hosts that it should have; all of it is replaced", u.index, u.role.Name),
	}
}

func scaledDown(g *group, n int, why string) plan.Event {
	return plan.Event{
		Type: corev1.EventTypeNormal, Reason: "ScaledDown", Action: "DeletePods",
		Message: fmt.Sprintf("Removed %d replicas of group %s: %s", n, g.role.Name, why),
	}
}

func workersAbandoned(n int) plan.Event {
	return plan.Event{
		Type: corev1.EventTypeWarning, Reason: "HeadLost", Action: "ReplaceWorkers",
		Message: fmt.Sprintf("The head was lost and its state with it: %d replicas of workers, which nobody restarts in place, are replaced", n),
	}
}

func upgradeStarted() plan.Event {
	return plan.Event{Type: corev1.EventTypeNormal, Reason: "UpgradeStarted", Action: "ReplacePods", Message: "Began to replace pods of an older template"}
}

func upgradeComplete() plan.Event {
	return plan.Event{Type: corev1.EventTypeNormal, Reason: "UpgradeCompleted", Action: "ReplacePods", Message: "All pods are of the newest template"}
}

func clusterSuspended() plan.Event {
	return plan.Event{Type: corev1.EventTypeNormal, Reason: "ClusterSuspended", Action: "SuspendCluster", Message: "Deleted the pods of the suspended cluster"}
}

func clusterResumed() plan.Event {
	return plan.Event{Type: corev1.EventTypeNormal, Reason: "ClusterResumed", Action: "ResumeCluster", Message: "Resumed the cluster"}
}
