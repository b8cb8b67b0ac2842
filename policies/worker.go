package policies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// worker evaluates trials in turn on a goroutine of its own. When it hangs in
// a builtin it is abandoned: its slot is given to others, and it stops after the
// trial at hand. Its rule counts how many hang in it, and is asked no more while
// these are maxStuck: so their number is bounded too.
type worker struct {
	attempt *attempt
	trials  []trial
	// results hold the outcomes of the first finished trials; each is written
	// once, before finished counts it.
	results  []result
	finished atomic.Int32
	// started is when the trial at hand began, in nanoseconds since epoch.
	started atomic.Int64
	epoch   time.Time
	// state is changed once, by who is first: the worker that has finished, or
	// who waits for it and gives up.
	state atomic.Int32
	// stuckIn is the rule that an abandoned worker hangs in.
	stuckIn *rule
	// done is closed when all trials are finished.
	done chan struct{}

	eval *evaluation
	// created and updated evaluate on the old object, as if it were created now,
	// or updated; made when first needed.
	created, updated *evaluation
	cut              *cut
}

// States of a worker.
const (
	working int32 = iota
	finished
	abandoned
)

// maxStuck is how many evaluations of one rule may hang at once.
const maxStuck = 2

func newWorker(a *attempt, trials []trial) *worker {
	w := &worker{
		attempt: a,
		trials:  trials,
		results: make([]result, len(trials)),
		epoch:   time.Now(),
		done:    make(chan struct{}),
		eval:    &evaluation{in: a.in, now: a.judgement.request.Now},
	}
	if tracer := a.judgement.snapshot.limits.Tracer; tracer != nil {
		w.eval.tracers = []topdown.QueryTracer{tracer}
	}
	return w
}

// busyFor is how long the worker has been at its present trial.
func (w *worker) busyFor() time.Duration {
	return time.Since(w.epoch) - time.Duration(w.started.Load())
}

func (w *worker) work(ctx context.Context) {
	defer w.leave()
	defer func() { w.cut.release() }()
	growStack()
	for i, t := range w.trials {
		if w.state.Load() == abandoned {
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

// leave gives the slot back, unless who abandoned the worker has.
func (w *worker) leave() {
	if w.state.CompareAndSwap(working, finished) {
		<-w.attempt.judgement.snapshot.slots
		return
	}
	w.stuckIn.stuck.Add(-1)
}

// abandon gives up waiting for the worker. It reports whether it was working.
func (w *worker) abandon() bool {
	at := min(int(w.finished.Load()), len(w.trials)-1)
	w.stuckIn = w.trials[at].policy.rule
	w.stuckIn.stuck.Add(1)
	if w.state.CompareAndSwap(working, abandoned) {
		<-w.attempt.judgement.snapshot.slots
		return true
	}
	w.stuckIn.stuck.Add(-1)
	return false
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
const commonDepth = 64 << 10

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
	if stuck := t.policy.rule.stuck.Load(); stuck >= maxStuck {
		return result{reason: ReasonBusy, err: fmt.Errorf("%d evaluations of it for other requests have not ended long after their time", stuck)}
	}
	limits := w.attempt.judgement.snapshot.limits
	w.cut = w.cut.arm(ctx, limits)
	found, err := w.eval.judge(ctx, t, w.cut.cancel)
	if err != nil {
		return w.failed(ctx, err)
	}
	r = w.ratchet(ctx, t, found, w.cut.cancel)
	r.findings, r.tolerated = told(r.findings), told(r.tolerated)
	r.lacks, r.partly = t.lacks.first(found.open), found.partly
	if limits.Explain && len(found.findings) > 0 {
		w.eval.explain(ctx, t, w.cut.cancel, r.findings, r.tolerated)
	}
	return r
}

// failed is the result of a policy that Rego reported an error for.
func (w *worker) failed(ctx context.Context, err error) result {
	var fault *topdown.Error
	switch {
	case w.cut.overfull.Load():
		return result{reason: ReasonMemory, err: errMemory}
	case w.cut.cancel.Cancelled() || topdown.IsCancel(err):
		return w.attempt.late(ctx)
	case errors.As(err, &fault) && fault.Code == memoryCode:
		return result{reason: ReasonMemory, err: errors.New(fault.Message)}
	case errors.As(err, &fault) && fault.Code == topdown.ConflictErr:
		return result{reason: ReasonRuntime, err: fmt.Errorf("%w: two of its bodies hold for the object; make it a set (contains), or let one body exclude the other", err)}
	default:
		return result{reason: ReasonRuntime, err: err}
	}
}
