package training

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// cleanUp deletes what a finished job leaves, by its cleanPodPolicy and for
// every way of finishing alike. A service goes with its pod, what else the pods
// need with those that run. Under None pods that still run are left running.
func (p *planner) cleanUp() {
	p.removeAutoscaler("the job has finished")
	p.removePodGroups("the job has finished")
	policy := runPolicy(p.job).CleanPodPolicy
	if policy != v1.CleanPodAll && policy != v1.CleanPodRunning {
		return
	}
	p.removeSupplies("the job has finished")
	kept := map[string]bool{}
	for _, pod := range plan.ChildrenOf[*corev1.Pod](p.observed) {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if policy == v1.CleanPodRunning && ended && pod.DeletionTimestamp == nil {
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
