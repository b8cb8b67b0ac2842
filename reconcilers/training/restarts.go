package training

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// How restarts are counted.
//
// A restart is one by the kubelet, in place, or one by a new pod. Both are in
// status.roles[].restarts, which is stored, so neither a new pod nor a new
// controller forgets any. status.roles[].observed says for each existing pod
// how many of its restarts are in there already: the main container's restart
// count, and one more once the pod is being replaced. Counting is therefore
// idempotent: planning twice from the same status gives the same number, and
// planning from an outdated one cannot be written, since status writes carry
// the resource version. A failed pod is deleted only after the status that
// counts it was stored (plan.Result.Delete), so none goes uncounted.
//
// backoffLimit N allows N restarts. The job fails when it would need one more:
// when pods that have failed, or whose container the kubelet is about to
// restart, would take the number beyond N; or when the kubelet was faster and
// it is beyond N already. A failure that ends the job is not a restart: with
// new pods the count stops at N exactly, or below it where more pods fail at
// once than restarts are left: each needs one of its own, and starting some of
// them would leave a job that can never be whole again.

// countRestartsInPlace adds what the kubelet restarted since the last time.
func (p *planner) countRestartsInPlace() {
	for _, crew := range p.census.crews {
		status := p.roleStatus(crew.role.Name)
		counted := countedRestarts(status)
		var observed []v1.ObservedRestarts
		for _, pod := range crew.pods() {
			uid := string(pod.UID)
			now := max(pods.MainStatus(pod, p.census.container()).RestartCount, counted[uid])
			addRestarts(status, now-counted[uid])
			if now > 0 {
				observed = append(observed, v1.ObservedRestarts{UID: uid, Count: new(now)})
			}
		}
		// Pods that are gone are left out: their restarts are in the sum.
		status.Observed = observed
		sortObserved(status)
	}
}

// countReplacement counts that a pod is replaced, unless that was done.
func (p *planner) countReplacement(m *member) {
	if m.Lost || p.replacementCounted(m) {
		return
	}
	status, uid := p.roleStatus(m.role.Name), string(m.pod.UID)
	addRestarts(status, 1)
	status.Observed = slices.DeleteFunc(status.Observed, func(o v1.ObservedRestarts) bool { return o.UID == uid })
	status.Observed = append(status.Observed, v1.ObservedRestarts{UID: uid, Count: new(m.Restarts + 1)})
	sortObserved(status)
}

// replacementCounted says whether the stored status has the replacement of a
// pod among its restarts.
func (p *planner) replacementCounted(m *member) bool {
	return countedRestarts(p.roleStatus(m.role.Name))[string(m.pod.UID)] > m.Restarts
}

// backoffLimitExceeded fails the job when it would need more restarts than it
// may have.
func (p *planner) backoffLimitExceeded() *verdict {
	limit := runPolicy(p.job).BackoffLimit
	if limit == nil {
		return nil
	}
	var done, needed int32
	var worst *member
	for _, crew := range p.census.crews {
		done += ptr.Deref(p.roleStatus(crew.role.Name).Restarts, 0)
		for _, m := range crew.members {
			switch {
			case p.needsRestart(m):
				if needed++; needed == 1 {
					worst = m
				}
			case needed == 0 && m.Restarts > 0 && (worst == nil || m.Restarts > worst.Restarts):
				worst = m
			}
		}
	}
	if gangRestarts(p.job) {
		// All pods that have failed are replaced by one restart.
		needed = min(needed, 1)
	}
	if done+needed <= *limit {
		return nil
	}
	message := fmt.Sprintf("after %s of the job; backoffLimit is %d", plan.Count(done, "restart"), *limit)
	if left := *limit - done; needed > 1 && left >= 0 {
		// Pods that fail together need a restart each. Those that are left are not
		// given to some of them: the others would never come.
		return failure(v1.TrainingJobBackoffLimitExceededReason, fmt.Sprintf(
			"%d pods have failed and need a restart each, and of the %d that backoffLimit allows %d are left: pod %s %s, and so on; "+
				"with runPolicy.restart Gang one restart is for all pods", needed, *limit, left, worst.pod.Name, worst.ending()))
	}
	if worst != nil {
		message = fmt.Sprintf("pod %s %s %s", worst.pod.Name, worst.ending(), message)
	}
	return failure(v1.TrainingJobBackoffLimitExceededReason, message)
}

// needsRestart says whether a restart of the pod is due that is not counted yet.
func (p *planner) needsRestart(m *member) bool {
	return m.AwaitsRestart || (m.replaced() && !m.Lost && !p.replacementCounted(m))
}

// roleStatus returns the status of a role, making it if there is none.
func (p *planner) roleStatus(name v1.RoleName) *v1.RoleStatus {
	i := slices.IndexFunc(p.status.Roles, func(s v1.RoleStatus) bool { return s.Name == name })
	if i < 0 {
		p.status.Roles = append(p.status.Roles, v1.RoleStatus{Name: name})
		i = len(p.status.Roles) - 1
	}
	return &p.status.Roles[i]
}

func addRestarts(status *v1.RoleStatus, n int32) {
	status.Restarts = new(ptr.Deref(status.Restarts, 0) + n)
}

func countedRestarts(status *v1.RoleStatus) map[string]int32 {
	counted := make(map[string]int32, len(status.Observed))
	for _, o := range status.Observed {
		counted[o.UID] = ptr.Deref(o.Count, 0)
	}
	return counted
}

func sortObserved(status *v1.RoleStatus) {
	slices.SortFunc(status.Observed, func(a, b v1.ObservedRestarts) int { return cmp.Compare(a.UID, b.UID) })
}
