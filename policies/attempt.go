package policies

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// grace is how long after its deadline a policy may take to notice that it was
// cut. Rego notices at once between two expressions, but not within a builtin
// such as a regular expression over a megabyte.
const grace = 50 * time.Millisecond

var errRequestOver = errors.New("the time of the request was over before it had finished")

// result is what one policy says, or why it says nothing.
type result struct {
	findings  []finding
	tolerated []finding
	reason    ErrorReason
	err       error
	// lacks is set where there is more to say that depends on it; partly tells that
	// the policy was asked all the same, as far as it goes without.
	lacks  *lack
	partly bool
	took   time.Duration
}

// attempt has the policies of one request evaluated in turn by a worker, and
// goes on without the worker when it does not answer.
type attempt struct {
	judgement *judgement
	in        *input
}

func newAttempt(j *judgement, in *input) *attempt {
	return &attempt{judgement: j, in: in}
}

// run evaluates the trials and records each result.
func (a *attempt) run(ctx context.Context, trials []trial) {
	for len(trials) > 0 {
		if !a.acquire(ctx) {
			a.judgement.failAll(trials, ReasonBusy, "no evaluation slot became free in time")
			return
		}
		w := newWorker(a, trials)
		go w.work(ctx)
		trials = trials[a.await(ctx, w):]
	}
}

// acquire takes an evaluation slot; the worker gives it back.
func (a *attempt) acquire(ctx context.Context) bool {
	slots := a.judgement.snapshot.slots
	select {
	case slots <- struct{}{}:
		return true
	default:
	}
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// await waits until the worker has finished or is overdue with a trial,
// records the results, and returns how many trials are settled.
func (a *attempt) await(ctx context.Context, w *worker) int {
	patience := a.judgement.snapshot.limits.Deadline + grace
	overdue := time.NewTimer(patience)
	defer overdue.Stop()
	over := ctx.Done()
	for {
		select {
		case <-w.done:
			a.settleAll(w, len(w.trials))
			return len(w.trials)
		case <-over:
			// The worker has heard of it too and is given time to say so.
			over, patience = nil, grace
			overdue.Reset(grace)
		case <-overdue.C:
			// The worker may have begun another trial in the meantime.
			if left := patience - w.busyFor(); left > 0 {
				overdue.Reset(left)
				continue
			}
			if !w.abandon() {
				overdue.Reset(grace)
				continue // it is about to say that it is done
			}
			finished := int(w.finished.Load())
			a.settleAll(w, finished)
			if finished == len(w.trials) {
				return finished
			}
			late := a.late(ctx)
			late.took = patience
			a.settle(w.trials[finished], late)
			return finished + 1
		}
	}
}

// settleAll records the first n results of a worker.
func (a *attempt) settleAll(w *worker, n int) {
	for i := range n {
		a.settle(w.trials[i], w.results[i])
	}
}

func (a *attempt) settle(t trial, result result) {
	j := a.judgement
	if lacks := result.lacks; lacks != nil && result.err == nil {
		if result.partly {
			j.record(t, result)
		}
		if lacks.err == nil || j.request.Offline {
			j.leave(t.policy, lacks.missing, result.partly)
			return
		}
		result.reason, result.err = ReasonInventory, lacks.err
	}
	if result.err == nil {
		outcome := j.record(t, result)
		j.observe(t, outcome, result.took)
		return
	}
	j.verdict.Errors = append(j.verdict.Errors, PolicyError{
		Policy: t.policy.name, Reason: result.reason, Message: Printable(result.err.Error()), Action: t.onError(),
	})
	j.observe(t, Outcome(result.reason), result.took)
}

// late is the result of a policy that was cut, by its own deadline or with the
// request.
func (a *attempt) late(ctx context.Context) result {
	if ctx.Err() != nil {
		return result{reason: ReasonDeadline, err: errRequestOver}
	}
	return result{reason: ReasonDeadline, err: fmt.Errorf(
		"it did not finish within %s: try again; if it stays so, the policy has to look at less, or the manager's --policy-deadline to be raised", a.judgement.snapshot.limits.Deadline)}
}
