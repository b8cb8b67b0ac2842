package training

import (
	"time"

	"k8s.io/utils/ptr"
)

const (
	// firstDelay and longestDelay bound how soon a failed pod is replaced.
	firstDelay   = time.Second
	longestDelay = 5 * time.Minute
)

// replaceAt returns the earliest time to replace a failed pod. The delay counts
// from when the pod was created: one that ran for long is replaced at once,
// while pods that fail as soon as they start are made ever more slowly, so that
// they do not keep the API server busy. Each restart of the role doubles it.
func (p *planner) replaceAt(m *member) time.Time {
	restarts := ptr.Deref(p.roleStatus(m.role.Name).Restarts, 0)
	if restarts == 0 && !m.Lost {
		return p.now.Time
	}
	delay := firstDelay
	for range min(max(restarts, 1)-1, 16) {
		delay = min(2*delay, longestDelay)
	}
	return m.pod.CreationTimestamp.Add(delay)
}
