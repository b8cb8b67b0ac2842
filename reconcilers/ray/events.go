package ray

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

func (p *planner) event(e plan.Event) { p.result.Events = append(p.result.Events, e) }

func replicaIncomplete(u *unit) plan.Event {
	return plan.Event{
		Type: corev1.EventTypeWarning, Reason: "ReplicaIncomplete", Action: "ReplaceReplica",
		Message: fmt.Sprintf("Replica %d of group %s has not the hosts that it should have; all of it is replaced", u.index, u.role.Name),
	}
}

func scaledDown(g *group, n int, why string) plan.Event {
	return plan.Event{
		Type: corev1.EventTypeNormal, Reason: "ScaledDown", Action: "DeletePods",
		Message: fmt.Sprintf("Removed %s of group %s: %s", plan.Count(n, "replica"), g.role.Name, why),
	}
}

func workersAbandoned(n int) plan.Event {
	return plan.Event{
		Type: corev1.EventTypeWarning, Reason: "HeadLost", Action: "ReplaceWorkers",
		Message: fmt.Sprintf("The head was lost and its state with it: %s of workers, which nobody restarts in place, replaced", plan.Count(n, "replica")),
	}
}

func madeRoom(u *unit) plan.Event {
	return plan.Event{
		Type: corev1.EventTypeWarning, Reason: "MadeRoomForHead", Action: "DeletePods",
		Message: fmt.Sprintf("Removed replica %d of group %s: a quota left no room for the head", u.index, u.role.Name),
	}
}

func tokenRenewed() plan.Event {
	return plan.Event{
		Type: corev1.EventTypeWarning, Reason: "TokenRenewed", Action: "ReplacePods",
		Message: "The secret of the token was made anew: the pods, which hold the old token, are replaced",
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
