package policies

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// Options are the limits of an engine. The zero value of each means its default.
type Options struct {
	// Deadline is how long one policy may take for one request; 500 ms by default.
	Deadline time.Duration
	// MaxInputBytes bounds object and old object together; 8 MiB by default,
	// more than the API server stores.
	MaxInputBytes int
	// Concurrency is the number of requests evaluated at once; twice the
	// number of processors by default.
	Concurrency int
	// Observer is told of every evaluation.
	Observer Observer
	// Tracer, if set, is shown every step of every evaluation; it is for
	// coverage, offline.
	Tracer topdown.QueryTracer
	// Explain has every violation carry an Explanation. Rules that find one are
	// evaluated twice; it is for offline checks.
	Explain bool
	// MemoryBytes is how large the heap of the process may be before evaluations
	// that take long are stopped; three quarters of GOMEMLIMIT by default, and
	// no limit where that is not set.
	MemoryBytes uint64

	memory *memoryGuard
}

func (o Options) withDefaults() *Options {
	o.Deadline = cmp.Or(o.Deadline, 500*time.Millisecond)
	o.MaxInputBytes = cmp.Or(o.MaxInputBytes, 8<<20)
	o.Concurrency = cmp.Or(o.Concurrency, 2*runtime.GOMAXPROCS(0))
	o.memory = &memoryGuard{limit: cmp.Or(o.MemoryBytes, memoryLimit())}
	if o.Observer == nil {
		o.Observer = noObserver{}
	}
	return &o
}

// Engine holds the policies of a process. Its methods may be called
// concurrently; none of them holds up a request that is being judged.
type Engine struct {
	limits    *Options
	slots     chan struct{}
	inventory *Inventory

	// mu serialises changes, compilation included; Judge never takes it.
	mu      sync.Mutex
	entries map[string]*entry

	snapshot atomic.Pointer[Snapshot]
}

// entry is what the engine knows of one policy.
type entry struct {
	// inForce judges requests: the newest version that compiled, or, when none
	// has, a version that answers by its failure policy.
	inForce *Policy
	// generation and digest are those of the newest version, err its faults.
	generation int64
	digest     string
	err        *CompileError
	// uid tells apart policies that had the same name.
	uid types.UID
}

// NewEngine returns an engine without policies.
func NewEngine(options Options) *Engine {
	limits := options.withDefaults()
	e := &Engine{
		limits:    limits,
		slots:     make(chan struct{}, limits.Concurrency),
		inventory: newInventory(),
		entries:   map[string]*entry{},
	}
	e.publish()
	return e
}

// Alone returns a snapshot of one policy, which need not be in force, with limits
// of its own. It sees the inventory of the engine as it is now: of the kinds and
// fields that policies in force read.
func (e *Engine) Alone(policy *v1.WorkloadPolicy, options Options) (*Snapshot, error) {
	alone := NewEngine(options)
	alone.inventory.state.Store(e.inventory.state.Load())
	err := alone.Set(policy)
	return alone.Snapshot(), err
}

// Snapshot returns the policies in force now.
func (e *Engine) Snapshot() *Snapshot { return e.snapshot.Load() }

// Inventory returns the cluster objects that policies read.
func (e *Engine) Inventory() *Inventory { return e.inventory }

// Set adds or changes a policy. When it does not compile the error is a
// *CompileError, and the last version that compiled, if any, stays in force.
func (e *Engine) Set(policy *v1.WorkloadPolicy) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := newEntry(e.entries[policy.Name], policy)
	e.entries[policy.Name] = next
	e.publish()
	if next.err != nil {
		return next.err
	}
	return nil
}

// Remove takes a policy out of force.
func (e *Engine) Remove(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.entries[name]; !ok {
		return
	}
	delete(e.entries, name)
	e.publish()
	e.limits.Observer.Removed(name)
}

// Replace makes policies the whole set, in one step. It returns the faults of
// those that did not compile, by name; they are treated as by Set.
func (e *Engine) Replace(policies []*v1.WorkloadPolicy) map[string]error {
	e.mu.Lock()
	defer e.mu.Unlock()
	entries := e.compileAll(policies)
	faults := map[string]error{}
	for name, next := range entries {
		if next.err != nil {
			faults[name] = next.err
		}
	}
	before := e.entries
	e.entries = entries
	e.publish()
	for name := range before {
		if entries[name] == nil {
			e.limits.Observer.Removed(name)
		}
	}
	return faults
}

// compileAll compiles policies on all processors: a process that starts
// answers for none of its policies before it has compiled all of them.
func (e *Engine) compileAll(policies []*v1.WorkloadPolicy) map[string]*entry {
	compiled := make([]*entry, len(policies))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(policies) {
					return
				}
				compiled[i] = newEntry(e.entries[policies[i].Name], policies[i])
			}
		})
	}
	workers.Wait()
	entries := make(map[string]*entry, len(policies))
	for i, policy := range policies {
		entries[policy.Name] = compiled[i]
	}
	return entries
}

// newEntry compiles a policy unless its spec is the one compiled before.
func newEntry(last *entry, policy *v1.WorkloadPolicy) *entry {
	next := &entry{uid: policy.UID, generation: policy.Generation, digest: specDigest(&policy.Spec)}
	if last != nil && last.digest == next.digest {
		next.err = last.err
		next.inForce = last.inForce
		if last.err == nil && last.inForce.generation != policy.Generation {
			next.inForce = last.inForce.withGeneration(policy.Generation)
		}
		return next
	}
	compiled, err := compile(policy)
	next.err = err
	next.inForce = compiled
	if err != nil && last != nil && last.inForce.rule != nil {
		next.inForce = last.inForce
	}
	return next
}

// publish swaps the snapshot. Its caller holds mu.
func (e *Engine) publish() {
	entries := slices.Collect(maps.Values(e.entries))
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.inForce.name, b.inForce.name) })
	inForce := make([]*Policy, len(entries))
	for i, e := range entries {
		inForce[i] = e.inForce
	}
	e.inventory.want(inForce)
	e.snapshot.Store(newSnapshot(entries, inForce, e))
}
