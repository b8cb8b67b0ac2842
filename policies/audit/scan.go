package audit

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/penstock-dev/penstock/policies/stored"
)

const (
	// paceSlice is how long to judge before resting paceRest times as long, so
	// that the audit takes a quarter of a processor at most: requests come first.
	paceSlice = 10 * time.Millisecond
	paceRest  = 3
	// maxScanNamespaces is from how many namespaces on all are read.
	maxScanNamespaces = 32
	// maxIdle bounds waiting for an exception to end: clocks are set.
	maxIdle = time.Hour
)

// A pace has judging take turns, and rest.
type pace struct {
	mu    sync.Mutex
	spent time.Duration
}

// do judges when it is its turn, and rests unless it is in a hurry.
func (p *pace) do(ctx context.Context, hurry bool, judge func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	began := time.Now()
	judge()
	if p.spent += time.Since(began); p.spent < paceSlice || hurry {
		return
	}
	pause(ctx, nil, min(paceRest*p.spent, time.Second))
	p.spent = 0
}

// An kindScan is what to judge again of a kind: by the policies of all, all of
// its objects, and by others those of namespaces.
type kindScan struct {
	kind stored.Kind
	all  map[string]bool
	// in are policies by namespace.
	in map[string]map[string]bool
	// inventory tells that the inventory is the reason.
	inventory bool
}

func (s *kindScan) add(policy, namespace string) {
	if s.all[policy] {
		return
	}
	if s.in[namespace] == nil {
		if len(s.in) >= maxScanNamespaces {
			s.all[policy] = true
			return
		}
		s.in[namespace] = map[string]bool{}
	}
	s.in[namespace][policy] = true
}

func (s *kindScan) has(policy string) bool {
	if s.all[policy] {
		return true
	}
	for _, in := range s.in {
		if in[policy] {
			return true
		}
	}
	return false
}

func (s *kindScan) drop(policy string) {
	delete(s.all, policy)
	for _, in := range s.in {
		delete(in, policy)
	}
}

// want is the scan of a kind to come. Its caller holds mu.
func (a *Auditor) want(kind stored.Kind) *kindScan {
	scan := a.scans[kind.GroupVersionKind]
	if scan == nil {
		scan = &kindScan{kind: kind, all: map[string]bool{}, in: map[string]map[string]bool{}}
		a.scans[kind.GroupVersionKind] = scan
	}
	signal(a.work)
	return scan
}

// scan judges again what is to be, one kind after the other, until ctx ends.
func (a *Auditor) scan(ctx context.Context) {
	for ctx.Err() == nil {
		if scan, w := a.nextScan(); scan != nil {
			began := a.stored.Clock()
			err := a.scanKind(ctx, w, scan)
			a.scanned(scan, err, began)
			if err != nil {
				ctrl.LoggerFrom(ctx).V(1).Info("Stored objects could not be read", "GroupVersionKind", scan.kind.GroupVersionKind.String(), "fault", err.Error())
				pause(ctx, nil, retryDelay)
			}
			continue
		}
		now := a.stored.Clock()
		a.judgeDue(ctx, now)
		a.mu.Lock()
		next := a.results.nextDue()
		a.mu.Unlock()
		idle := maxIdle
		if !next.IsZero() {
			// An exception does not count from its end on.
			idle = min(maxIdle, max(retryDelay/10, next.Sub(now)))
		}
		pause(ctx, a.work, idle)
	}
}

func pause(ctx context.Context, work <-chan struct{}, idle time.Duration) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-work:
	case <-timer.C:
	}
}

// nextScan takes a scan of a kind that is watched; one that is not read yet, or
// cannot be, is read by its watch.
func (a *Auditor) nextScan() (*kindScan, *kindWatch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for kind, scan := range a.scans {
		w := a.watches[kind]
		if w == nil || w.closed {
			delete(a.scans, kind)
			continue
		}
		if !w.synced {
			continue
		}
		delete(a.scans, kind)
		a.scanning, a.fresh = scan, map[objectKey]bool{}
		return scan, w
	}
	return nil, nil
}

func (a *Auditor) scanKind(ctx context.Context, w *kindWatch, scan *kindScan) error {
	judgeBy := func(only map[string]bool) func(*unstructured.Unstructured) {
		return func(object *unstructured.Unstructured) {
			if object.GetDeletionTimestamp() == nil {
				a.judge(ctx, w, object, only)
			}
		}
	}
	if len(scan.all) > 0 {
		if _, err := a.pages(ctx, scan.kind, "", metav1.ListOptions{}, judgeBy(scan.all)); err != nil {
			return err
		}
	}
	for namespace, only := range scan.in {
		if _, err := a.pages(ctx, scan.kind, namespace, metav1.ListOptions{}, judgeBy(only)); err != nil {
			return err
		}
	}
	return nil
}

// scanned notes that a scan ended; one that failed is made again.
func (a *Auditor) scanned(scan *kindScan, err error, began time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scanning, a.fresh = nil, nil
	if scan.inventory {
		now := a.stored.Clock()
		a.inventoryAt = now.Add(now.Sub(began) * inventoryShare)
	}
	if err != nil && !unreadable(err) {
		again := a.want(scan.kind)
		for policy := range scan.all {
			again.all[policy] = true
		}
		for namespace, in := range scan.in {
			for policy := range in {
				again.add(policy, namespace)
			}
		}
		return
	}
	for name, policy := range a.policies {
		policy.dirty = policy.dirty || scan.has(name)
	}
}

// judgeDue judges again the objects that an exception covered that ended, and
// those that a policy could not be evaluated for a while ago.
func (a *Auditor) judgeDue(ctx context.Context, now time.Time) {
	a.mu.Lock()
	due := a.results.due(now)
	a.mu.Unlock()
	for object, only := range due {
		a.mu.Lock()
		w := a.watches[object.kind]
		a.mu.Unlock()
		if w == nil || ctx.Err() != nil {
			continue
		}
		if err := a.judgeOne(ctx, w, object, only); err != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("Stored object could not be read", "GroupVersionKind", object.kind.String(), "fault", err.Error())
			pause(ctx, nil, retryDelay)
		}
	}
}

// judgeOne reads an object by its name, which needs no more rights than listing,
// and has policies judge it.
func (a *Auditor) judgeOne(ctx context.Context, w *kindWatch, object *auditedObject, only map[string]bool) error {
	a.mu.Lock()
	scan := &kindScan{kind: w.Kind}
	a.scanning, a.fresh = scan, map[objectKey]bool{}
	a.mu.Unlock()
	byName := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", object.name).String()}
	found := false
	_, err := a.pages(ctx, w.Kind, object.namespace, byName, func(one *unstructured.Unstructured) {
		if one.GetUID() == object.uid && one.GetDeletionTimestamp() == nil {
			found = true
			a.judge(ctx, w, one, only)
		}
	})
	a.scanned(scan, nil, a.stored.Clock())
	if err == nil && !found {
		a.gone(w, keyOf(object.uid))
	}
	return err
}
