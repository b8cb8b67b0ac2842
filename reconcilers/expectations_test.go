package reconcilers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/training"
	"github.com/penstock-dev/penstock/test/fixtures"
)

func TestLoopWaitsForItsCache(t *testing.T) {
	b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(1)))
	b.reconcile()

	b.behind = true
	result, writes := b.reconcile()
	if writes != nil || result.RequeueAfter != patience {
		t.Errorf("while the cache is behind: writes %v, requeue after %v", writes, result.RequeueAfter)
	}
	b.behind = false
	if result, writes := b.reconcile(); writes != nil || result.RequeueAfter != 5*time.Minute {
		t.Errorf("when it has caught up: writes %v, requeue after %v", writes, result.RequeueAfter)
	}
}

// A pod that somebody deletes before the cache shows it is never shown.
func TestLoopDoesNotWaitForEver(t *testing.T) {
	b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(1)))
	b.reconcile()
	if err := b.client.Delete(t.Context(), fixtures.Pod("a-worker-0")); err != nil {
		t.Fatal(err)
	}
	if _, writes := b.reconcile(); writes != nil {
		t.Errorf("at once: writes %v", writes)
	}
	b.clock.SetTime(fixtures.Start.Add(patience))
	if _, writes := b.reconcile(); !cmp.Equal(writes, []string{"create"}) {
		t.Errorf("after a while: writes %v", writes)
	}
}

// Planning a job that has finished from what it was before would start it again.
func TestLoopDoesNotPlanFromAnOutdatedJob(t *testing.T) {
	b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(1), fixtures.CleanPods(v1.CleanPodAll)))
	b.reconcile()
	b.setPod("a-worker-0", fixtures.Succeeded())
	outdated := b.job()
	b.reconcile()

	b.outdated = outdated
	if result, writes := b.reconcile(); writes != nil || result.RequeueAfter != staleRetry {
		t.Errorf("from an outdated job: writes %v, requeue after %v", writes, result.RequeueAfter)
	}
	b.outdated = nil
	if _, writes := b.reconcile(); writes != nil || len(b.pods()) > 0 {
		t.Errorf("from the newest: writes %v, pods %v", writes, b.pods())
	}
}

func TestExceptStatus(t *testing.T) {
	predicate := exceptStatus(training.Kind(nil, nil))
	tests := map[string]struct {
		change func(*v1.TrainingJob)
		want   bool
	}{
		"a status write is filtered out":                           {func(job *v1.TrainingJob) { job.Status.Phase = v1.PhaseRunning }, false},
		"a change of the spec without a new generation is not":     {func(job *v1.TrainingJob) { job.Spec.Gang = &v1.Gang{QueueName: "q"} }, true},
		"a deletion is not":                                        {func(job *v1.TrainingJob) { job.Finalizers = []string{"x"} }, true},
		"a change of an annotation is not":                         {func(job *v1.TrainingJob) { job.Annotations = map[string]string{"a": "b"} }, true},
		"a status write together with a change of the spec is not": {func(job *v1.TrainingJob) { job.Status.Phase, job.Generation = v1.PhaseRunning, 2 }, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := fixtures.TrainingJob("a"), fixtures.TrainingJob("a")
			before.ResourceVersion, after.ResourceVersion = "1", "2"
			tc.change(after)
			if got := predicate.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: client.Object(after)}); got != tc.want {
				t.Errorf("passes: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTruncate(t *testing.T) {
	for text, want := range map[string]string{"short": "short", "123456789": "12345...", "1234ü789x": "1234..."} {
		if got := truncate(text, 8); got != want {
			t.Errorf("truncate(%q) = %q, want %q", text, got, want)
		}
	}
}
