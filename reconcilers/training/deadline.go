package training

import (
	"fmt"
	"time"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// deadline returns the instant at which a started job has run long enough.
// Time in suspension does not count, since resuming starts the job anew.
func (p *planner) deadline() (time.Time, bool) {
	seconds := runPolicy(p.job).ActiveDeadlineSeconds
	if seconds == nil || p.status.StartTime == nil {
		return time.Time{}, false
	}
	return p.status.StartTime.Add(time.Duration(*seconds) * time.Second), true
}

func (p *planner) deadlineExceeded() *verdict {
	deadline, ok := p.deadline()
	if !ok || p.now.Time.Before(deadline) {
		return nil
	}
	p.result.Confirm = true
	seconds := *runPolicy(p.job).ActiveDeadlineSeconds
	message := fmt.Sprintf("the job has run for %d seconds, which is its activeDeadlineSeconds", seconds)
	if late := int64(p.now.Sub(deadline) / time.Second); late > 1 {
		// Nobody looked when it was time: no manager ran, or it had too much to do.
		message = fmt.Sprintf("the job was to run for %d seconds, its activeDeadlineSeconds, and this was noticed %d seconds late", seconds, late)
	}
	return failure(v1.TrainingJobDeadlineExceededReason, message)
}

// wakeAtDeadline asks for a planning at the deadline, as nothing else need
// happen then.
func (p *planner) wakeAtDeadline() {
	if deadline, ok := p.deadline(); ok {
		p.wakeAt(deadline)
	}
}
