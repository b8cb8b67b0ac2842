package policies

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// grace is how long after its deadline a policy may take to notice that it was
// cut. Rego notices at once between two expressions, but not within a builtin
// such as a regular expression over a megabyte.
const grace = 50 * time.Millisecond

var (
	errLabelsUnknown = errors.New("the caller gave none")
	errRequestOver   = errors.New("the time of the request was over before it had finished")
)

// result is what one policy says, or why it says nothing.
type result struct {
	findings  []finding
	tolerated []finding
	reason    ErrorReason
	err       error
	took      time.Duration
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
	limits := a.judgement.snapshot.limits
	for len(trials) > 0 {
		if !a.acquire(ctx) {
			a.judgement.failAll(trials, ReasonBusy, "no evaluation slot became free in time")
			return
		}
		w := &worker{
			attempt: a,
			results: make(chan result, len(trials)),
			eval:    &evaluation{in: a.in, now: a.judgement.request.Now},
		}
		go w.work(ctx, trials)
		done := a.collect(ctx, w, trials, limits.Deadline+grace)
		trials = trials[done:]
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

// collect records results until all have come or the worker is overdue, and
// returns how many trials are settled.
func (a *attempt) collect(ctx context.Context, w *worker, trials []trial, patience time.Duration) int {
	overdue := time.NewTimer(patience)
	defer overdue.Stop()
	over := ctx.Done()
	for i := 0; i < len(trials); {
		select {
		case result := <-w.results:
			a.settle(trials[i], result)
			overdue.Reset(patience)
			i++
		case <-over:
			// The worker has heard of it too and is given time to say so.
			over = nil
			overdue.Reset(grace)
		case <-overdue.C:
			w.abandoned.Store(true)
			late := a.late(ctx)
			late.took = patience
			a.settle(trials[i], late)
			return i + 1
		}
	}
	return len(trials)
}

func (a *attempt) settle(t trial, result result) {
	j := a.judgement
	if result.err == nil {
		outcome := j.record(t, result)
		j.snapshot.limits.Observer.Evaluated(t.policy.name, outcome, result.took)
		return
	}
	j.verdict.Errors = append(j.verdict.Errors, PolicyError{
		Policy: t.policy.name, Reason: result.reason, Message: result.err.Error(), Action: t.onError(),
	})
	j.snapshot.limits.Observer.Evaluated(t.policy.name, Outcome(result.reason), result.took)
}

// late is the result of a policy that was cut, by its own deadline or with the
// request.
func (a *attempt) late(ctx context.Context) result {
	if ctx.Err() != nil {
		return result{reason: ReasonDeadline, err: errRequestOver}
	}
	return result{reason: ReasonDeadline, err: fmt.Errorf("it did not finish within %s", a.judgement.snapshot.limits.Deadline)}
}

// worker evaluates trials in turn on a goroutine of its own. When it hangs in
// a builtin it is abandoned: it keeps its slot, so that the number of such
// goroutines is bounded, and stops after the trial at hand.
type worker struct {
	attempt   *attempt
	results   chan result
	abandoned atomic.Bool
	eval      *evaluation
	// old evaluates on the old object; made when first needed.
	old *evaluation
}

func (w *worker) work(ctx context.Context, trials []trial) {
	defer func() { <-w.attempt.judgement.snapshot.slots }()
	for _, t := range trials {
		if w.abandoned.Load() {
			return
		}
		start := time.Now()
		result := w.evaluate(ctx, t)
		result.took = time.Since(start)
		w.results <- result
	}
}

// evaluate runs one policy until its deadline.
func (w *worker) evaluate(ctx context.Context, t trial) (r result) {
	if ctx.Err() != nil {
		return w.attempt.late(ctx)
	}
	cancel := topdown.NewCancel()
	timer := time.AfterFunc(w.attempt.judgement.snapshot.limits.Deadline, cancel.Cancel)
	defer timer.Stop()
	stop := context.AfterFunc(ctx, cancel.Cancel)
	defer stop()
	defer func() {
		if panicked := recover(); panicked != nil {
			r = result{reason: ReasonPanic, err: fmt.Errorf("it panicked: %v", panicked)}
		}
	}()
	findings, err := w.eval.run(ctx, t.policy.rule, t.parameters, cancel)
	if err != nil {
		if cancel.Cancelled() || topdown.IsCancel(err) {
			return w.attempt.late(ctx)
		}
		return result{reason: ReasonRuntime, err: err}
	}
	return w.ratchet(ctx, t, findings, cancel)
}
