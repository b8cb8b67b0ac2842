package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
)

const (
	// inventoryRetry is how soon to try again to list a kind: one that is not
	// served, or that Penstock may not list, becomes so without telling.
	inventoryRetry = 5 * time.Second
	// inventoryWatchRetry is how soon to watch again where a watch broke off.
	inventoryWatchRetry = time.Second
)

// An Inventory keeps the inventory of an engine at the objects of the cluster, by
// watch, on every replica. A kind is watched from when the first policy names it
// until the last one is gone, once for all of them. Nothing but Rego values is
// kept of an object.
type Inventory struct {
	engine *policies.Engine
	client dynamic.Interface
	mapper stored.KindMapper
	// changed tells that the status of policies may have to follow.
	changed chan event.GenericEvent

	mu sync.Mutex
	// ctx is that of the process; nil until it has started.
	ctx     context.Context //nolint:containedctx // Watches outlive the event that starts them.
	watches map[schema.GroupVersionKind]*inventoryWatch
}

// inventoryWatch is the watch of one kind.
type inventoryWatch struct {
	kind     schema.GroupVersionKind
	stop     context.CancelFunc
	policies []string
	state    inventoryState
}

// inventoryState says how far the inventory is with a kind.
type inventoryState struct {
	// synced tells that all objects are there.
	synced bool
	// reason and message say what is wrong, empty as long as nothing is known
	// to be.
	reason  string
	message string
}

// notServed says why there is nothing of a kind that is not served.
const notServed = "the API server does not serve it; install what defines it, or take the kind out of spec.inventory and the rule"

// forbiddenInventory says why there is nothing of a kind that Penstock may not read.
const forbiddenInventory = "Penstock may not list and watch it: grant it by a ClusterRole labelled " + stored.AggregationLabel

// settled reports whether waiting for the kind will bring no more by itself.
func (s inventoryState) settled() bool { return s.synced || s.reason != "" }

func newInventory(engine *policies.Engine, client dynamic.Interface, mapper stored.KindMapper) *Inventory {
	return &Inventory{
		engine: engine, client: client, mapper: mapper,
		changed: make(chan event.GenericEvent, 1024),
		watches: map[schema.GroupVersionKind]*inventoryWatch{},
	}
}

// NeedLeaderElection is false: every replica judges requests.
func (*Inventory) NeedLeaderElection() bool { return false }

// Start follows the policies until the process ends.
func (i *Inventory) Start(ctx context.Context) error {
	i.mu.Lock()
	i.ctx = ctx
	i.mu.Unlock()
	i.follow() //nolint:contextcheck // It takes that of the process, which this is.
	<-ctx.Done()
	return nil
}

// follow starts and stops watches, as the policies in force need them.
func (i *Inventory) follow() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ctx == nil || i.ctx.Err() != nil {
		return
	}
	needed := map[schema.GroupVersionKind]bool{}
	for _, need := range i.engine.Inventory().Needs() {
		needed[need.Kind] = true
		w := i.watches[need.Kind]
		if w != nil {
			w.policies = need.Policies
			if !need.Stale || !w.state.synced {
				continue
			}
			// More of the objects is read than was kept of them.
			w.stop()
		}
		w = &inventoryWatch{kind: need.Kind, policies: need.Policies}
		i.watches[need.Kind] = w
		var ctx context.Context
		ctx, w.stop = context.WithCancel(i.ctx)
		go i.run(ctx, w)
	}
	for kind, w := range i.watches {
		if !needed[kind] {
			w.stop()
			delete(i.watches, kind)
			i.engine.Inventory().Forget(kind)
		}
	}
}

// run lists and watches one kind until ctx ends.
func (i *Inventory) run(ctx context.Context, w *inventoryWatch) {
	for ctx.Err() == nil {
		err := i.listAndWatch(ctx, w)
		if ctx.Err() != nil {
			return
		}
		wait := inventoryWatchRetry
		if err != nil {
			i.failed(ctx, w, err)
			wait = inventoryRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func (i *Inventory) listAndWatch(ctx context.Context, w *inventoryWatch) error {
	mapping, err := i.mapper.RESTMapping(w.kind.GroupKind(), w.kind.Version)
	if err != nil {
		return err
	}
	objects := i.client.Resource(mapping.Resource)
	// An error of the list is what is wrong with the kind; the reflector goes on
	// quietly from errors of its watch.
	var listErr error
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := objects.List(ctx, options)
			listErr = err
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			watcher, err := objects.Watch(ctx, options)
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
				listErr = err
			}
			return watcher, err
		},
	}
	store := &inventoryStore{inventory: i, watch: w, ctx: ctx}
	expected := &unstructured.Unstructured{}
	expected.SetGroupVersionKind(w.kind)
	reflector := cache.NewReflectorWithOptions(lists, expected, store, cache.ReflectorOptions{Name: "inventory " + w.kind.String()})
	return errors.Join(reflector.ListAndWatchWithContext(ctx), listErr)
}

// failed notes what is wrong with a kind. Objects that may be out of date for
// good are dropped: their policies answer by their failure policy then. An API
// server that is away for a moment is no reason to.
func (i *Inventory) failed(ctx context.Context, w *inventoryWatch, err error) {
	state := inventoryState{reason: v1.WorkloadPolicyInventoryFailedReason, message: err.Error()}
	gone := true
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		state.reason = v1.WorkloadPolicyKindNotServedReason
		state.message = "the API server does not serve it; it is read as soon as it does"
	case apierrors.IsForbidden(err):
		state.reason = v1.WorkloadPolicyInventoryForbiddenReason
		state.message = forbiddenInventory
	default:
		gone = false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if ctx.Err() != nil || i.watches[w.kind] != w {
		return
	}
	if gone {
		i.engine.Inventory().Forget(w.kind)
		why := state.message
		if state.reason == v1.WorkloadPolicyKindNotServedReason {
			why = notServed
		}
		i.engine.Inventory().Lack(w.kind, why)
	} else {
		state.synced = w.state.synced
	}
	i.set(w, state)
}

// set notes the state of a kind, and has the status of its policies follow. Its
// caller holds mu.
func (i *Inventory) set(w *inventoryWatch, state inventoryState) {
	if w.state == state {
		return
	}
	w.state = state
	ctrl.Log.WithName("inventory").Info("Inventory of a kind changed", "GroupVersionKind", w.kind.String(),
		"synced", state.synced, "reason", state.reason, "fault", state.message)
	for _, name := range w.policies {
		select {
		case i.changed <- event.GenericEvent{Object: &v1.WorkloadPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}}:
		default:
			// Nobody reads where no status is written; a status that says that
			// something is missing is looked at again anyway.
		}
	}
}

// stateOf gives the state of the first kind of a policy that is not synced, or
// that all are.
func (i *Inventory) stateOf(policy *v1.WorkloadPolicy) (schema.GroupVersionKind, inventoryState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, named := range policy.Spec.Inventory {
		kind := schema.FromAPIVersionAndKind(named.APIVersion, named.Kind)
		w := i.watches[kind]
		if w == nil {
			return kind, inventoryState{}
		}
		if !w.state.synced {
			return kind, w.state
		}
	}
	return schema.GroupVersionKind{}, inventoryState{synced: true}
}

// Check passes once no kind is still being read for the first time: a kind that
// cannot be read holds nothing up.
func (i *Inventory) Check(*http.Request) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ctx == nil {
		return errors.New("the inventory is not read yet")
	}
	for kind, w := range i.watches {
		if !w.state.settled() {
			return fmt.Errorf("the objects of kind %s are not read yet", kind)
		}
	}
	return nil
}

// inventoryStore hands what a reflector reads to the engine's inventory.
type inventoryStore struct {
	inventory *Inventory
	watch     *inventoryWatch
	ctx       context.Context //nolint:containedctx // It ends with the watch.
}

var _ cache.ReflectorStore = &inventoryStore{}

// do makes a change unless the watch has ended meanwhile.
func (s *inventoryStore) do(change func(*policies.Inventory) error) error {
	s.inventory.mu.Lock()
	defer s.inventory.mu.Unlock()
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	return change(s.inventory.engine.Inventory())
}

func (s *inventoryStore) Add(object any) error {
	return s.do(func(inventory *policies.Inventory) error {
		return inventory.Set(s.watch.kind, object.(*unstructured.Unstructured).Object)
	})
}

func (s *inventoryStore) Update(object any) error { return s.Add(object) }

func (s *inventoryStore) Delete(object any) error {
	return s.do(func(inventory *policies.Inventory) error {
		deleted, err := meta.Accessor(object)
		if err != nil {
			return fmt.Errorf("failed to read a deleted object: %w", err)
		}
		inventory.Delete(s.watch.kind, deleted.GetNamespace(), deleted.GetName())
		return nil
	})
}

func (s *inventoryStore) Replace(objects []any, _ string) error {
	contents := make([]map[string]any, len(objects))
	for at, object := range objects {
		contents[at] = object.(*unstructured.Unstructured).Object
	}
	err := s.do(func(inventory *policies.Inventory) error {
		if err := inventory.Replace(s.watch.kind, contents); err != nil {
			return err
		}
		s.inventory.set(s.watch, inventoryState{synced: true})
		return nil
	})
	// A policy may have come that reads more while this was being read.
	s.inventory.follow()
	return err
}

func (*inventoryStore) Resync() error { return nil }
