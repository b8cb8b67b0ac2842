package training

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// cleanUp deletes what a finished job leaves, by its cleanPodPolicy and for
// every way of finishing alike. A service goes with its pod, what else the pods
// need with those that run. Under None pods that still run are left running,
// but for those that have used up the restarts.
func (p *planner) cleanUp() {
	p.removeAutoscaler("the job has finished")
	p.removePodGroups("the job has finished")
	policy := runPolicy(p.job).CleanPodPolicy
	if policy != v1.CleanPodAll && policy != v1.CleanPodRunning {
		p.endLoops()
		return
	}
	p.removeSupplies("the job has finished")
	kept := map[string]bool{}
	for _, pod := range plan.ChildrenOf[*corev1.Pod](p.observed) {
		if policy == v1.CleanPodRunning && nothingRuns(pod) && pod.DeletionTimestamp == nil {
			kept[pod.Name] = true
			continue
		}
		p.remove(pod, "the job has finished")
	}
	for _, service := range plan.ChildrenOf[*corev1.Service](p.observed) {
		if !kept[service.Name] {
			p.remove(service, "the job has finished")
		}
	}
}

// endLoops deletes the pods for which the job ran out of restarts, where their
// kubelets would start them again for ever and keep their accelerators busy.
func (p *planner) endLoops() {
	failed := meta.FindStatusCondition(p.status.Conditions, v1.TrainingJobFailedCondition)
	if failed == nil || failed.Status != metav1.ConditionTrue || failed.Reason != v1.TrainingJobBackoffLimitExceededReason {
		return
	}
	for _, crew := range p.census.crews {
		for _, m := range crew.members {
			if m.pod != nil && m.pod.Spec.RestartPolicy != corev1.RestartPolicyNever && !nothingRunsAgain(m) {
				p.remove(m.pod, "it would be restarted for ever")
			}
		}
	}
}

// nothingRunsAgain says whether a pod has ended, or was never restarted.
func nothingRunsAgain(m *member) bool {
	ended := m.pod.Status.Phase == corev1.PodSucceeded || m.pod.Status.Phase == corev1.PodFailed
	return ended || m.Restarts == 0 && !m.AwaitsRestart
}

// nothingRuns says whether a pod has ended, or is about to: kubelets tell that
// the last container has before they tell that the pod has, and a pod deleted in
// between takes its logs with it. One whose containers start again after all is
// seen, and judged, again.
func nothingRuns(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Terminated == nil {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0 && len(pod.Status.ContainerStatuses) == len(pod.Spec.Containers)
}
