package training

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// planPods creates the pods that are missing, replaces those that have failed,
// and removes those that are too many. A pod that is being deleted is waited
// for: its successor has the same name.
func (p *planner) planPods() {
	if p.restartGang() {
		return
	}
	created := 0
	var replaced []pods.Replaced
	for _, crew := range p.census.crews {
		for _, m := range crew.members {
			switch {
			case m.State == pods.Missing && p.awaits(m):
			case m.State == pods.Missing:
				p.result.Create = append(p.result.Create, p.newPod(m))
				created++
			case m.replaced() && p.now.Time.Before(p.replaceAt(m)):
				p.wakeAt(p.replaceAt(m))
			case m.replaced():
				replaced = append(replaced, pods.Replaced{Pod: m.pod, Condition: m.Condition})
				p.countReplacement(m)
				p.remove(m.pod, "replaced by a new pod")
			case m.pod != nil:
				p.result.Apply = pods.Relabel(p.result.Apply, m.pod, p.ownLabels(m))
			}
		}
		for _, pod := range crew.surplus {
			p.remove(pod, "scaled down")
		}
	}
	for _, pod := range p.census.strays {
		p.remove(pod, "belongs to no role")
	}
	if len(replaced) > 0 {
		p.event(pods.ReplacedEvent(replaced))
	}
	if created > 0 {
		p.event(pods.CreatedEvent(created))
	}
}

// awaits says whether the pod of a member has to wait for others, or for the
// gang's group.
func (p *planner) awaits(m *member) bool {
	if p.gang.Awaited() {
		return true
	}
	f, ok := p.framework.(awaiting)
	return ok && f.awaits(p.census, m) != ""
}

// newPod returns the pod of a member, from its role's template.
func (p *planner) newPod(m *member) *corev1.Pod {
	template := m.role.Template.DeepCopy()
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        childName(p.job, m.role.Name, m.index),
			Namespace:   p.job.Namespace,
			Labels:      pods.WithLabels(template.Labels, p.ownLabels(m)),
			Annotations: template.Annotations,
		},
		Spec: template.Spec,
	}
	pod.Spec.RestartPolicy = podRestartPolicy(p.job, m.role.RestartPolicy)
	if pod.Spec.HostNetwork && pod.Spec.DNSPolicy == "" {
		// With the node's own resolver the pod would not find its peers.
		pod.Spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	if gang := p.job.Spec.Gang; gang != nil && pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = gang.Scheduler
	}
	p.gang.Join(m.role.Name, pod)
	p.gather(m.role, pod)
	p.framework.equip(p.census, m, pod)
	return pod
}

// ownLabels are those of a member's pod that are not of its template.
func (p *planner) ownLabels(m *member) map[string]string {
	labels := memberLabels(p.job, m.role.Name, m.index)
	if gangRestarts(p.job) {
		labels[v1.AttemptLabel] = itoa(attempt(p.status))
	}
	return labels
}

// podRestartPolicy is what the kubelet shall do. Where exit codes decide it must
// not restart anything, as it would not look at them; nor where all pods are
// restarted together, as it knows of one only.
func podRestartPolicy(job *v1.TrainingJob, policy v1.RestartPolicy) corev1.RestartPolicy {
	if gangRestarts(job) {
		return corev1.RestartPolicyNever
	}
	switch policy {
	case v1.RestartAlways:
		return corev1.RestartPolicyAlways
	case v1.RestartNever, v1.RestartExitCode:
		return corev1.RestartPolicyNever
	default:
		return corev1.RestartPolicyOnFailure
	}
}

// jobLabels are on every child of a job.
func jobLabels(job *v1.TrainingJob) map[string]string {
	return map[string]string{
		v1.ManagedByLabel: v1.ManagedByValue,
		v1.JobNameLabel:   job.Name,
	}
}

// roleLabels are on every child of a role.
func roleLabels(job *v1.TrainingJob, role v1.RoleName) map[string]string {
	return pods.WithLabels(jobLabels(job), map[string]string{v1.RoleLabel: strings.ToLower(string(role))})
}

// memberLabels are on the pod and the service of a member.
func memberLabels(job *v1.TrainingJob, role v1.RoleName, index int32) map[string]string {
	return pods.WithLabels(roleLabels(job, role), map[string]string{v1.IndexLabel: strconv.Itoa(int(index))})
}

// roleSelector selects the pods of a role, as a string.
func roleSelector(job *v1.TrainingJob, role v1.RoleName) string {
	return fmt.Sprintf("%s=%s,%s=%s", v1.JobNameLabel, job.Name, v1.RoleLabel, strings.ToLower(string(role)))
}
