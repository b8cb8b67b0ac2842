package controller

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

// edited is a cluster in which one policy is edited whenever somebody looks.
type edited struct {
	client.Client
	generation atomic.Int64
	fault      error
}

func (e *edited) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if e.fault != nil {
		return e.fault
	}
	policyOf(key.Name, e.generation.Add(1), rule).DeepCopyInto(object.(*v1.WorkloadPolicy))
	runtime.Gosched()
	return nil
}

func (e *edited) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if e.fault != nil {
		return e.fault
	}
	list.(*v1.WorkloadPolicyList).Items = []v1.WorkloadPolicy{*policyOf("a", e.generation.Add(1), rule)}
	runtime.Gosched()
	return nil
}

var requestOfA = reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}

// The first pass and events run side by side; an older reading must not take
// the place of a newer one.
func TestWhatWasReadLaterStays(t *testing.T) {
	cluster := &edited{}
	loader := &Loader{client: cluster, engine: policies.NewEngine(policies.Options{})}
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			var err error
			if i%8 == 0 {
				err = loader.Start(t.Context())
			} else {
				_, err = loader.Reconcile(t.Context(), requestOfA)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got := (&status{engine: loader.engine}).state("a").Generation
	if want := cluster.generation.Load(); got != want {
		t.Errorf("generation %d is in force, want %d", got, want)
	}
}

func TestLoaderIsReadyAfterItsFirstPass(t *testing.T) {
	cluster := &edited{fault: errors.New("the API server is away")}
	loader := &Loader{client: cluster, engine: policies.NewEngine(policies.Options{})}
	if err := loader.Start(t.Context()); err == nil || loader.Loaded() || loader.Check(nil) == nil {
		t.Errorf("ready without having read the policies: %v", err)
	}
	cluster.fault = nil
	if err := loader.Start(t.Context()); err != nil || !loader.Loaded() || loader.Check(nil) != nil {
		t.Errorf("not ready after the first pass: %v", err)
	}
	if loader.NeedLeaderElection() {
		t.Error("only the leader would judge")
	}
}

func TestReconcileFollowsTheCluster(t *testing.T) {
	cluster := &edited{}
	loader := &Loader{client: cluster, engine: policies.NewEngine(policies.Options{})}
	states := func() int { return len(loader.engine.Snapshot().Policies()) }
	if _, err := loader.Reconcile(t.Context(), requestOfA); err != nil || states() != 1 {
		t.Fatalf("got %d policies, %v; want one", states(), err)
	}
	cluster.fault = errors.New("the API server is away")
	if _, err := loader.Reconcile(t.Context(), requestOfA); err == nil || states() != 1 {
		t.Errorf("got %d policies, %v; want to keep one and try again", states(), err)
	}
	cluster.fault = apierrors.NewNotFound(schema.GroupResource{Group: v1.GroupName, Resource: "workloadpolicies"}, "a")
	if _, err := loader.Reconcile(t.Context(), requestOfA); err != nil || states() != 0 {
		t.Errorf("got %d policies, %v; want none", states(), err)
	}
}

// wakes counts how often an audit is woken.
type wakes struct {
	Audit
	count int
}

func (w *wakes) Wake() { w.count++ }

// Whoever audits by some policies only would take away the reports of the others.
func TestAuditIsWokenFromTheFirstPassOn(t *testing.T) {
	woken := &wakes{}
	loader := &Loader{client: &edited{}, engine: policies.NewEngine(policies.Options{}), audit: woken}
	for at, step := range []func() error{
		func() error { _, err := loader.Reconcile(t.Context(), requestOfA); return err },
		func() error { return loader.Start(t.Context()) },
		func() error { _, err := loader.Reconcile(t.Context(), requestOfA); return err },
	} {
		if err := step(); err != nil || woken.count != at {
			t.Errorf("step %d: woken %d times, %v; want %d", at, woken.count, err, at)
		}
	}
}
