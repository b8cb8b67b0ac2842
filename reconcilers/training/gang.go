package training

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// How a gang is restarted.
//
// With runPolicy.restart Gang, one pod that has to be restarted means that all
// are: the processes of a collective framework cannot join again one by one. A
// restart is one write of the status, with the next attempt and the count of
// restarts in it, and the deletion of every pod after that. Pods carry their
// attempt as a label, so whoever reads the status knows which are old; new ones
// come only when the old are gone, since peers of one attempt must not meet
// those of another. Both steps can be repeated without harm: the status is
// written by resource version, and old pods are deleted by UID.

// gangRestarts says whether the pods of a job are restarted all together.
func gangRestarts(job *v1.TrainingJob) bool { return runPolicy(job).Restart == v1.RestartGang }

func attempt(status *v1.TrainingJobStatus) int32 { return ptr.Deref(status.Attempt, 0) }

// attemptOf reads the attempt that a pod is of; 0 where it does not say.
func attemptOf(pod *corev1.Pod) int32 {
	n, err := strconv.ParseInt(pod.Labels[v1.AttemptLabel], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// gangCause is why a gang is restarted.
type gangCause struct {
	member *member
	// lost says that a member was lost with its node or deleted by somebody,
	// which uses up no restart: what else has failed by then followed from it.
	lost bool
}

// gangBreak returns why the gang has to be restarted, or nil.
func (p *planner) gangBreak() *gangCause {
	if !gangRestarts(p.job) {
		return nil
	}
	var failed *gangCause
	for _, crew := range p.census.crews {
		for _, m := range crew.members {
			switch {
			case m.replaced() && m.Lost, p.gone(m):
				return &gangCause{member: m, lost: true}
			case m.replaced() && failed == nil:
				failed = &gangCause{member: m}
			}
		}
	}
	return failed
}

// gone says whether the pod of a member is being deleted, or was, by somebody
// else. That no pod is there means so only if the role was complete once in
// this attempt: before that it may not have been made. An elastic worker that
// leaves is what its job is made for.
func (p *planner) gone(m *member) bool {
	if p.job.Spec.Elastic != nil && m.role.Name == v1.RoleWorker {
		return false
	}
	switch m.State {
	case pods.Terminating:
		return p.census.attemptOf(m.pod) == attempt(&p.job.Status)
	case pods.Missing:
		for i := range p.job.Status.Roles {
			stored := &p.job.Status.Roles[i]
			if stored.Name == m.role.Name {
				there := ptr.Deref(stored.Active, 0) + ptr.Deref(stored.Succeeded, 0)
				return m.index < ptr.Deref(stored.Replicas, 0) && there >= ptr.Deref(stored.Replicas, 0)
			}
		}
	}
	return false
}

// restartGang takes a restart of the gang one step on. While it returns true no
// pod is made.
func (p *planner) restartGang() bool {
	if p.census.ahead {
		p.wakeAt(p.census.believed)
		return true
	}
	if len(p.census.old) > 0 {
		p.gangRestarting = true
		for _, pod := range p.census.old {
			p.remove(pod, "of an earlier attempt")
		}
		return true
	}
	cause := p.gangBreak()
	if cause == nil {
		return false
	}
	p.gangRestarting = true
	if m := cause.member; m.pod != nil && p.now.Time.Before(p.replaceAt(m)) {
		p.wakeAt(p.replaceAt(m))
		return true
	}
	p.event(gangRestarted(cause))
	if !cause.lost {
		addRestarts(p.roleStatus(cause.member.role.Name), 1)
	}
	p.status.Attempt = new(attempt(p.status) + 1)
	p.removeAll()
	return true
}

// removeAll deletes every pod. None of them counts for anything any more.
func (p *planner) removeAll() {
	for _, crew := range p.census.crews {
		for _, pod := range crew.pods() {
			p.remove(pod, "replaced with its gang")
		}
		for _, m := range crew.members {
			m.Condition = pods.Condition{State: pods.Terminating}
			if m.pod == nil {
				m.State = pods.Missing
			}
		}
	}
	for _, pod := range p.census.strays {
		p.remove(pod, "belongs to no role")
	}
}
