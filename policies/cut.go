package policies

import (
	"context"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// cut cancels evaluations at their deadlines, when the request ends, and when
// the process runs out of memory. One is used for many evaluations, as long as it
// has not fired.
type cut struct {
	cancel topdown.Cancel
	timer  *time.Timer
	unbind func() bool
	memory *memoryGuard
	// until is the deadline, in nanoseconds since epoch.
	until atomic.Int64
	epoch time.Time
	// overfull tells that it fired for want of memory.
	overfull atomic.Bool
}

// watchEvery is how often an evaluation that takes long is looked at.
const watchEvery = 20 * time.Millisecond

// arm returns a cut for an evaluation that starts now; c itself, which may be
// nil, if it can be used again.
func (c *cut) arm(ctx context.Context, limits *Options) *cut {
	deadline := limits.Deadline
	// A timer that cannot be stopped is firing, perhaps only now.
	if c != nil && c.timer.Stop() && !c.cancel.Cancelled() {
		c.until.Store(int64(time.Since(c.epoch) + deadline))
		c.timer.Reset(min(deadline, watchEvery))
		return c
	}
	c.release()
	next := &cut{cancel: topdown.NewCancel(), memory: limits.memory, epoch: time.Now()}
	next.until.Store(int64(deadline))
	// It is stopped until its own function can see it.
	next.timer = time.AfterFunc(math.MaxInt64, next.look)
	next.timer.Reset(min(deadline, watchEvery))
	next.unbind = context.AfterFunc(ctx, next.cancel.Cancel)
	return next
}

// look cancels the evaluation if it is time to.
func (c *cut) look() {
	left := time.Duration(c.until.Load()) - time.Since(c.epoch)
	switch {
	case left <= 0:
		c.cancel.Cancel()
	case c.memory.exceeded():
		c.overfull.Store(true)
		c.cancel.Cancel()
	default:
		c.timer.Reset(min(left, watchEvery))
	}
}

func (c *cut) release() {
	if c != nil {
		c.timer.Stop()
		c.unbind()
	}
}

var errMemory = errors.New("it was stopped because the process ran out of memory while it was evaluated")

// memoryGuard tells when the process holds more than it may.
type memoryGuard struct {
	// limit is that of the heap, in bytes; 0 for none.
	limit uint64

	mu sync.Mutex
	// collected is when the heap was collected to see what of it is in use.
	collected time.Time
	full      bool
}

// collectEvery is how often the guard collects the heap at the most.
const collectEvery = time.Second

// memoryLimit is three quarters of what GOMEMLIMIT gives the process, 0 if that
// is not set: what is left is for what is not judging.
func memoryLimit() uint64 {
	given := debug.SetMemoryLimit(-1)
	if given == math.MaxInt64 {
		return 0
	}
	return uint64(given) / 4 * 3
}

// exceeded reports whether more is in use than the limit. What is in use is
// known only after the heap was collected, which is done only when it is
// larger than the limit.
func (g *memoryGuard) exceeded() bool {
	if g == nil || g.limit == 0 || heapBytes() <= g.limit {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.collected) < collectEvery && g.full {
		return heapBytes() > g.limit
	}
	if heapBytes() <= g.limit {
		return false // somebody else has collected meanwhile
	}
	runtime.GC()
	g.collected = time.Now()
	g.full = heapBytes() > g.limit
	return g.full
}

// heapBytes is the size of the objects on the heap, those included that are not
// in use any more and not collected yet.
func heapBytes() uint64 {
	sample := [1]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample[:])
	return sample[0].Value.Uint64()
}
