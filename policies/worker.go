package policies

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// worker evaluates trials in turn on a goroutine of its own. When it hangs in
// a builtin it is abandoned: it keeps its slot, so that the number of such
// goroutines is bounded, and stops after the trial at hand.
type worker struct {
	attempt *attempt
	trials  []trial
	// results hold the outcomes of the first finished trials; each is written
	// once, before finished counts it.
	results  []result
	finished atomic.Int32
	// started is when the trial at hand began, in nanoseconds since epoch.
	started   atomic.Int64
	epoch     time.Time
	abandoned atomic.Bool
	// done is closed when all trials are finished.
	done chan struct{}

	eval *evaluation
	// old evaluates on the old object; made when first needed.
	old *evaluation
	cut *cut
}

func newWorker(a *attempt, trials []trial) *worker {
	return &worker{
		attempt: a,
		trials:  trials,
		results: make([]result, len(trials)),
		epoch:   time.Now(),
		done:    make(chan struct{}),
		eval:    &evaluation{in: a.in, now: a.judgement.request.Now},
	}
}

// busyFor is how long the worker has been at its present trial.
func (w *worker) busyFor() time.Duration {
	return time.Since(w.epoch) - time.Duration(w.started.Load())
}

func (w *worker) work(ctx context.Context) {
	defer func() { <-w.attempt.judgement.snapshot.slots }()
	defer func() { w.cut.release() }()
	growStack()
	for i, t := range w.trials {
		if w.abandoned.Load() {
			return
		}
		start := time.Since(w.epoch)
		w.started.Store(int64(start))
		result := w.evaluate(ctx, t)
		result.took = time.Since(w.epoch) - start
		w.results[i] = result
		w.finished.Add(1)
	}
	close(w.done)
}

// growStack makes the stack of a new goroutine as large as rules commonly need.
// They recurse deeply, and a stack that doubles until it is large enough is
// copied, frame by frame, each time: a tenth of the evaluation.
//
//go:noinline
func growStack() byte {
	var frame [commonDepth]byte
	return frame[len(os.Args)&(commonDepth-1)] // an index that the compiler does not know keeps the frame
}

// commonDepth is a power of two.
const commonDepth = 32 << 10

// evaluate runs one policy until its deadline.
func (w *worker) evaluate(ctx context.Context, t trial) (r result) {
	if ctx.Err() != nil {
		return w.attempt.late(ctx)
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			r = result{reason: ReasonPanic, err: fmt.Errorf("it panicked: %v", panicked)}
		}
	}()
	if !w.eval.mayFind(t) {
		// Nothing is run that would have to be cut.
		return result{}
	}
	if t.lacks != nil {
		return result{lacks: t.lacks}
	}
	w.cut = w.cut.arm(ctx, w.attempt.judgement.snapshot.limits.Deadline)
	findings, err := w.eval.run(ctx, t, w.cut.cancel)
	if err != nil {
		if w.cut.cancel.Cancelled() || topdown.IsCancel(err) {
			return w.attempt.late(ctx)
		}
		return result{reason: ReasonRuntime, err: err}
	}
	r = w.ratchet(ctx, t, findings, w.cut.cancel)
	if w.attempt.judgement.snapshot.limits.Explain && len(findings) > 0 {
		w.eval.explain(ctx, t, w.cut.cancel, r.findings, r.tolerated)
	}
	return r
}

// cut cancels evaluations at their deadlines and when the request ends. One is
// used for many evaluations, as long as it has not fired.
type cut struct {
	cancel topdown.Cancel
	timer  *time.Timer
	unbind func() bool
}

// arm returns a cut for an evaluation that starts now; c itself, which may be
// nil, if it can be used again.
func (c *cut) arm(ctx context.Context, deadline time.Duration) *cut {
	// A timer that cannot be stopped is firing, perhaps only now.
	if c != nil && c.timer.Stop() && !c.cancel.Cancelled() {
		c.timer.Reset(deadline)
		return c
	}
	c.release()
	cancel := topdown.NewCancel()
	return &cut{
		cancel: cancel,
		timer:  time.AfterFunc(deadline, cancel.Cancel),
		unbind: context.AfterFunc(ctx, cancel.Cancel),
	}
}

func (c *cut) release() {
	if c != nil {
		c.timer.Stop()
		c.unbind()
	}
}
