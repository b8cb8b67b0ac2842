package training

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// expire deletes a finished job when its time to live is over, and until then
// asks for a planning at that instant.
func (p *planner) expire() {
	ttl := runPolicy(p.job).TTLSecondsAfterFinished
	if ttl == nil {
		return
	}
	expiry := p.finishedAt().Add(time.Duration(*ttl) * time.Second)
	if p.now.Time.Before(expiry) {
		p.wakeAt(expiry)
		return
	}
	p.result.DeleteSelf = true
}

// finishedAt returns when the job finished. A status that somebody restored
// without its completion time still has that of its condition.
func (p *planner) finishedAt() time.Time {
	if p.status.CompletionTime != nil {
		return p.status.CompletionTime.Time
	}
	for _, kind := range []string{v1.TrainingJobSucceededCondition, v1.TrainingJobFailedCondition} {
		if c := meta.FindStatusCondition(p.status.Conditions, kind); c != nil {
			return c.LastTransitionTime.Time
		}
	}
	return p.now.Time
}
