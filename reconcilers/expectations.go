package reconcilers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

const (
	// patience is how long a pass waits for the cache to show what an earlier
	// pass did. After that it goes on: names are deterministic, deletions name
	// a UID and status writes a version, so an outdated view can waste calls
	// and cannot do harm twice. It is reached only if a child was made and
	// deleted by somebody before the cache showed it.
	patience = 10 * time.Second
	// staleRetry is how soon to look again at an object whose own status write
	// is not in the cache yet. No event need come: status writes wake nobody.
	staleRetry = 50 * time.Millisecond
)

// expectations remember, for each object, what was done to it and its children
// and is not in the cache yet. They spare the API server the calls that an
// outdated cache would lead to, and keep a finished object from being planned
// as if it were still running.
//
// They are lost when the process ends, which is safe: a cache that starts is
// filled from a list that is at least as new as everything written before.
type expectations struct {
	mu      sync.Mutex
	objects map[client.ObjectKey]*expected
}

// expected is what is not in the cache yet of one object.
type expected struct {
	// owner is the object's UID: one of the same name starts afresh.
	owner types.UID
	// created and deleted hold children, and until when to wait for them.
	created, deleted map[types.UID]time.Time
	// outdated is the version of the object that a status write replaced.
	outdated string
	until    time.Time
	// countsChanged is since when counts of pods differ from the written ones.
	countsChanged time.Time
}

func newExpectations() *expectations {
	return &expectations{objects: map[client.ObjectKey]*expected{}}
}

// of returns what is expected of an object. The caller holds the lock.
func (e *expectations) of(key client.ObjectKey) *expected {
	if e.objects[key] == nil {
		e.objects[key] = &expected{created: map[types.UID]time.Time{}, deleted: map[types.UID]time.Time{}}
	}
	return e.objects[key]
}

func (e *expectations) expectCreated(key client.ObjectKey, uid types.UID, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(key).created[uid] = now.Add(patience)
}

func (e *expectations) expectDeleted(key client.ObjectKey, uid types.UID, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(key).deleted[uid] = now.Add(patience)
}

func (e *expectations) expectWritten(key client.ObjectKey, outdated string, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.of(key)
	x.outdated, x.until, x.countsChanged = outdated, now.Add(patience), time.Time{}
}

// waitForCounts returns for how long to wait for more changes of counts, from
// the first one on.
func (e *expectations) waitForCounts(key client.ObjectKey, now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.of(key)
	if x.countsChanged.IsZero() {
		x.countsChanged = now
	}
	return max(x.countsChanged.Add(coalesce).Sub(now), 0)
}

// countsAreWritten ends the wait when counts are what is written again.
func (e *expectations) countsAreWritten(key client.ObjectKey) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(key).countsChanged = time.Time{}
}

// outstanding drops what the cache shows by now, and returns how long to wait
// for the rest, 0 if there is none.
func (e *expectations) outstanding(key client.ObjectKey, object plan.Object, children []plan.Object, now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.of(key); x.owner != object.GetUID() {
		delete(e.objects, key)
	}
	x := e.of(key)
	x.owner = object.GetUID()
	alive := make(map[types.UID]bool, len(children))
	for _, child := range children {
		delete(x.created, child.GetUID())
		alive[child.GetUID()] = child.GetDeletionTimestamp() == nil
	}
	for uid := range x.deleted {
		if !alive[uid] {
			delete(x.deleted, uid)
		}
	}
	if x.outdated != "" {
		if x.outdated == object.GetResourceVersion() && now.Before(x.until) {
			return staleRetry
		}
		x.outdated = ""
	}
	return max(longest(x.created, now), longest(x.deleted, now))
}

// longest returns the time until the last deadline, dropping those that passed.
func longest(deadlines map[types.UID]time.Time, now time.Time) time.Duration {
	var wait time.Duration
	for uid, deadline := range deadlines {
		if !now.Before(deadline) {
			delete(deadlines, uid)
			continue
		}
		wait = max(wait, deadline.Sub(now))
	}
	return wait
}

func (e *expectations) forget(key client.ObjectKey) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.objects, key)
}

// once remembers which objects something was said about.
type once struct {
	mu   sync.Mutex
	said map[client.ObjectKey]types.UID
}

func (o *once) first(key client.ObjectKey, uid types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.said[key] == uid {
		return false
	}
	if o.said == nil {
		o.said = map[client.ObjectKey]types.UID{}
	}
	o.said[key] = uid
	return true
}

func (o *once) forget(key client.ObjectKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.said, key)
}
