package reconcilers

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/test/fixtures"
)

const testFinalizer = "penstock.dev/test"

// newHeldBench returns a bench whose kind holds its objects while hold says so,
// and wants a pod made while one is being deleted.
func newHeldBench(t *testing.T, hold *bool, job *v1.TrainingJob) *bench {
	b := newBench(t, job)
	b.loop.kind.Finalizer = testFinalizer
	b.loop.kind.Plan = func(job *v1.TrainingJob, observed plan.Observed, _ time.Time) plan.Result[v1.TrainingJobStatus] {
		result := plan.Result[v1.TrainingJobStatus]{Status: job.Status, Finalize: *hold, RequeueAfter: time.Minute}
		result.Status.ObservedGeneration = job.Generation + 1
		if job.DeletionTimestamp != nil && len(plan.ChildrenOf[*corev1.Pod](observed)) == 0 {
			pod := fixtures.Pod("cleanup")
			pod.UID, pod.Labels = "", map[string]string{v1.ManagedByLabel: v1.ManagedByValue}
			result.Create = append(result.Create, pod)
		}
		return result
	}
	return b
}

func (b *bench) finalizers() []string {
	b.Helper()
	job := &v1.TrainingJob{}
	if err := b.client.Get(b.Context(), key("a"), job); err != nil {
		if apierrors.IsNotFound(err) {
			return []string{"gone"}
		}
		b.Fatal(err)
	}
	return job.Finalizers
}

func deleted(job *v1.TrainingJob) *v1.TrainingJob {
	job.DeletionTimestamp, job.Finalizers = new(metav1.NewTime(fixtures.Start)), []string{testFinalizer}
	return job
}

func TestFinalizerComesFirst(t *testing.T) {
	hold := true
	b := newHeldBench(t, &hold, fixtures.TrainingJob("a"))
	b.reconcile()
	if got := b.finalizers(); !slices.Equal(got, []string{testFinalizer}) {
		t.Errorf("finalizers %v", got)
	}
	hold = false
	b.reconcile()
	if got := b.finalizers(); len(got) > 0 {
		t.Errorf("what needs none any more keeps %v", got)
	}
}

func TestDeletionIsPlanned(t *testing.T) {
	hold := true
	job := deleted(fixtures.TrainingJob("a"))
	// It need not be valid any more.
	job.Spec.Roles = nil
	b := newHeldBench(t, &hold, job)
	result, writes := b.reconcile()
	if !slices.Equal(writes, []string{"create", "status"}) {
		t.Errorf("it writes %v, want a pod and a status that tells of it", writes)
	}
	if result.RequeueAfter != time.Minute {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
	if _, writes := b.reconcile(); len(writes) > 0 || !slices.Contains(b.finalizers(), testFinalizer) {
		t.Errorf("while there is something to do it writes %v, finalizers %v", writes, b.finalizers())
	}
	hold = false
	b.reconcile()
	if got := b.finalizers(); !slices.Equal(got, []string{"gone"}) {
		t.Errorf("when that is done it has finalizers %v", got)
	}
}

// TestOtherFinalizersAreNotOurs: what somebody else holds is not planned.
func TestOtherFinalizersAreNotOurs(t *testing.T) {
	hold := true
	job := deleted(fixtures.TrainingJob("a"))
	job.Finalizers = []string{"example.com/theirs"}
	b := newHeldBench(t, &hold, job)
	if _, writes := b.reconcile(); len(writes) > 0 || !slices.Equal(b.finalizers(), job.Finalizers) {
		t.Errorf("it writes %v, finalizers %v", writes, b.finalizers())
	}
}

// TestNamespaceGoes: nothing can be made in it, so nothing is waited for.
func TestNamespaceGoes(t *testing.T) {
	hold := true
	b := newHeldBench(t, &hold, deleted(fixtures.TrainingJob("a")))
	going := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "cleanup", nil)
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	b.refuse = going
	b.reconcile()
	if got := b.finalizers(); !slices.Equal(got, []string{"gone"}) {
		t.Errorf("it is held by %v", got)
	}
}

// TestNothingIsMadeWithoutTheFinalizer: what cannot be cleaned up is not made.
func TestNothingIsMadeWithoutTheFinalizer(t *testing.T) {
	hold := true
	b := newHeldBench(t, &hold, fixtures.TrainingJob("a"))
	planned := b.loop.kind.Plan
	b.loop.kind.Plan = func(job *v1.TrainingJob, observed plan.Observed, now time.Time) plan.Result[v1.TrainingJobStatus] {
		result := planned(job, observed, now)
		result.Create = append(result.Create, fixtures.Pod("worker"))
		return result
	}
	refusing := interceptor.NewClient(b.client, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return apierrors.NewConflict(schema.GroupResource{}, "a", nil)
		},
	})
	b.loop.client = refusing
	if _, err := b.loop.Reconcile(t.Context(), ctrl.Request{NamespacedName: key("a")}); !apierrors.IsConflict(err) {
		t.Fatalf("error %v, want a conflict", err)
	}
	if len(b.writes) > 0 {
		t.Errorf("it writes %v", b.writes)
	}
}
