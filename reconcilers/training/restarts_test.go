package training

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// step is one planning of a history, from the status that the last one left.
type step struct {
	pod      *corev1.Pod
	phase    v1.Phase
	restarts int32
	deletes  bool
}

// follow plans a job of one worker along a history.
func follow(t *testing.T, job *v1.TrainingJob, steps ...step) plan.Result[v1.TrainingJobStatus] {
	t.Helper()
	var result plan.Result[v1.TrainingJobStatus]
	for i, step := range steps {
		var observed plan.Observed
		if step.pod != nil {
			observed = somePods(step.pod)
		}
		result = Plan(job, observed, later)
		got := []any{result.Status.Phase, ptr.Deref(result.Status.Restarts, 0), len(result.Delete) > 0}
		if diff := cmp.Diff([]any{step.phase, step.restarts, step.deletes}, got); diff != "" {
			t.Fatalf("step %d: phase, restarts, deletes mismatch (-want +got):\n%s", i, diff)
		}
		job.Status = result.Status
	}
	return result
}

// nth is the nth pod of one name.
func nth(n int, mods ...fixtures.PodMod) *corev1.Pod {
	return fixtures.Pod("a-worker-0", append([]fixtures.PodMod{fixtures.UID(fmt.Sprintf("pod-%d", n))}, mods...)...)
}

func TestBackoffLimit(t *testing.T) {
	one := func(policy v1.RestartPolicy, limit int32) *v1.TrainingJob {
		return started(fixtures.TrainingJob("a", fixtures.Workers(1), fixtures.Restart(policy), fixtures.BackoffLimit(limit)))
	}
	exceeded := v1.TrainingJobBackoffLimitExceededReason
	tests := map[string]struct {
		job   *v1.TrainingJob
		steps []step
		want  string
	}{
		"out of memory under ExitCode stops after the third new pod": {
			job: one(v1.RestartExitCode, 3),
			steps: []step{
				{pod: nth(0, fixtures.Failed(137)), phase: v1.PhaseRestarting, restarts: 1, deletes: true},
				{pod: nth(0, fixtures.Failed(137)), phase: v1.PhaseRestarting, restarts: 1, deletes: true},
				{phase: v1.PhaseRestarting, restarts: 1},
				{pod: nth(1, fixtures.Running()), phase: v1.PhaseRunning, restarts: 1},
				{pod: nth(1, fixtures.Failed(137)), phase: v1.PhaseRestarting, restarts: 2, deletes: true},
				{pod: nth(2, fixtures.Failed(137)), phase: v1.PhaseRestarting, restarts: 3, deletes: true},
				{pod: nth(3, fixtures.Failed(137)), phase: v1.PhaseFailed, restarts: 3},
			},
			want: exceeded + ": pod a-worker-0 ended with exit code 137 (OOMKilled) after 3 restarts of the job; backoffLimit is 3",
		},
		"limit 0 allows no restart": {
			job:   one(v1.RestartOnFailure, 0),
			steps: []step{{pod: nth(0, fixtures.CrashLoop(), fixtures.RestartedInPlace(0, 1)), phase: v1.PhaseFailed, deletes: true}},
			want:  exceeded + ": pod a-worker-0 ended with exit code 1 after 0 restarts of the job; backoffLimit is 0",
		},
		"restarts in place stop when one more is due": {
			job: one(v1.RestartOnFailure, 2),
			steps: []step{
				{pod: nth(0, fixtures.Running(), fixtures.RestartedInPlace(1, 1)), phase: v1.PhaseRunning, restarts: 1},
				{pod: nth(0, fixtures.Running(), fixtures.RestartedInPlace(2, 1)), phase: v1.PhaseRunning, restarts: 2},
				{pod: nth(0, fixtures.CrashLoop(), fixtures.RestartedInPlace(2, 1)), phase: v1.PhaseFailed, restarts: 2, deletes: true},
			},
			want: exceeded + ": pod a-worker-0 ended with exit code 1 after 2 restarts of the job; backoffLimit is 2",
		},
		"restarts in place that nobody saw in time fail the job as well": {
			job:   one(v1.RestartOnFailure, 2),
			steps: []step{{pod: nth(0, fixtures.Running(), fixtures.RestartedInPlace(4, 7)), phase: v1.PhaseFailed, restarts: 4, deletes: true}},
			want:  exceeded + ": pod a-worker-0 ended with exit code 7 after 4 restarts of the job; backoffLimit is 2",
		},
		"restarts in place and by new pods add up": {
			job: one(v1.RestartOnFailure, 4),
			steps: []step{
				{pod: nth(0, fixtures.Running(), fixtures.RestartedInPlace(2, 1)), phase: v1.PhaseRunning, restarts: 2},
				{pod: nth(0, fixtures.Failed(1), fixtures.RestartedInPlace(2, 1)), phase: v1.PhaseRestarting, restarts: 3, deletes: true},
				{phase: v1.PhaseRestarting, restarts: 3},
				{pod: nth(1, fixtures.Running(), fixtures.RestartedInPlace(1, 1)), phase: v1.PhaseRunning, restarts: 4},
				{pod: nth(1, fixtures.Failed(1), fixtures.RestartedInPlace(1, 1)), phase: v1.PhaseFailed, restarts: 4},
			},
			want: exceeded + ": pod a-worker-0 ended with exit code 1 after 4 restarts of the job; backoffLimit is 4",
		},
		"pods lost to their node use up nothing": {
			job: one(v1.RestartExitCode, 0),
			steps: []step{
				{pod: nth(0, fixtures.Failed(143), fixtures.Disrupted()), phase: v1.PhaseRestarting, deletes: true},
				{phase: v1.PhaseRestarting},
				{pod: nth(1, fixtures.FailedFor("Terminated", "Pod was terminated in response to imminent node shutdown.")), phase: v1.PhaseRestarting, deletes: true},
				{pod: nth(2, fixtures.Running()), phase: v1.PhaseRunning},
			},
		},
		"restarts of sidecars do not count": {
			job:   one(v1.RestartOnFailure, 0),
			steps: []step{{pod: nth(0, fixtures.Running(), fixtures.Sidecar(9)), phase: v1.PhaseRunning}},
		},
		"a pod that is being deleted keeps what it has restarted": {
			job: one(v1.RestartOnFailure, 3),
			steps: []step{
				{pod: nth(0, fixtures.Running(), fixtures.RestartedInPlace(1, 1), fixtures.Terminating()), phase: v1.PhaseCreating, restarts: 1},
				{phase: v1.PhaseCreating, restarts: 1},
				{pod: nth(1, fixtures.Running()), phase: v1.PhaseRunning, restarts: 1},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			result := follow(t, tc.job, tc.steps...)
			got := ""
			if o := outcomeOf(result); o.Reason != "" {
				got = o.Reason + ": " + o.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("failure mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

// Pods that fail together need a restart each.
func TestBackoffLimitOfManyPods(t *testing.T) {
	const prefix = v1.TrainingJobBackoffLimitExceededReason + ": "
	tests := map[string]struct {
		failed, done, limit int32
		mods                []fixtures.JobMod
		want                string
	}{
		"as many as are left": {failed: 5, done: 1, limit: 6},
		"more than are left": {failed: 8, limit: 6,
			want: prefix + "8 pods have failed and need a restart each, and of the 6 that backoffLimit allows 6 are left: " +
				"pod a-worker-0 ended with exit code 137 (OOMKilled), and so on; with runPolicy.restart Gang one restart is for all pods"},
		"after one restart": {failed: 7, done: 1, limit: 6,
			want: prefix + "7 pods have failed and need a restart each, and of the 6 that backoffLimit allows 5 are left: " +
				"pod a-worker-0 ended with exit code 137 (OOMKilled), and so on; with runPolicy.restart Gang one restart is for all pods"},
		"none is left": {failed: 2, done: 6, limit: 6,
			want: prefix + "2 pods have failed and need a restart each, and of the 6 that backoffLimit allows 0 are left: " +
				"pod a-worker-0 ended with exit code 137 (OOMKilled), and so on; with runPolicy.restart Gang one restart is for all pods"},
		"one pod":             {failed: 1, done: 1, limit: 1, want: prefix + "pod a-worker-0 ended with exit code 137 (OOMKilled) after 1 restart of the job; backoffLimit is 1"},
		"all for one restart": {failed: 8, done: 5, limit: 6, mods: []fixtures.JobMod{fixtures.GangRestart()}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := started(fixtures.TrainingJob("a", append([]fixtures.JobMod{
				fixtures.Workers(8), fixtures.Restart(v1.RestartExitCode), fixtures.BackoffLimit(tc.limit)}, tc.mods...)...))
			job.Status.Roles[0].Restarts = new(tc.done)
			var failed []*corev1.Pod
			for i := range tc.failed {
				failed = append(failed, fixtures.Pod(fmt.Sprintf("a-worker-%d", i), fixtures.Failed(137)))
			}
			got := ""
			if o := outcomeOf(Plan(job, somePods(failed...), later)); o.Reason != "" {
				got = o.Reason + ": " + o.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("failure mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObservedRestartsArePruned(t *testing.T) {
	job := started(fixtures.TrainingJob("a", fixtures.Workers(1)))
	result := follow(t, job,
		step{pod: nth(0, fixtures.Running(), fixtures.RestartedInPlace(2, 1)), phase: v1.PhaseRunning, restarts: 2},
		step{pod: nth(1, fixtures.Running(), fixtures.RestartedInPlace(1, 1)), phase: v1.PhaseRunning, restarts: 3},
	)
	want := []v1.ObservedRestarts{{UID: "pod-1", Count: ptr.To[int32](1)}}
	if diff := cmp.Diff(want, result.Status.Roles[0].Observed); diff != "" {
		t.Errorf("observed mismatch (-want +got):\n%s", diff)
	}
}

func TestReplacingSlowsDown(t *testing.T) {
	failed := func(mods ...fixtures.PodMod) *corev1.Pod {
		return nth(0, append(mods, func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(later.Add(-3 * time.Second)) })...)
	}
	tests := map[string]struct {
		restarts int32
		pod      *corev1.Pod
		wantWake time.Duration
	}{
		"the first restart is made at once":                     {pod: failed(fixtures.Failed(137))},
		"the third waits two seconds from the pod's creation":   {restarts: 2, pod: failed(fixtures.Failed(137))},
		"the fourth waits four":                                 {restarts: 3, pod: failed(fixtures.Failed(137)), wantWake: time.Second},
		"a late one waits five minutes":                         {restarts: 100, pod: failed(fixtures.Failed(137)), wantWake: 297 * time.Second},
		"a late one whose pod has run for long is made at once": {restarts: 100, pod: nth(0, fixtures.Failed(137))},
		"a lost pod is replaced after a second":                 {pod: failed(fixtures.FailedFor("NodeShutdown", ""))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := started(fixtures.TrainingJob("a", fixtures.Workers(1), fixtures.Restart(v1.RestartExitCode)))
			job.Status.Roles[0].Restarts = new(tc.restarts)
			result := Plan(job, somePods(tc.pod), later)
			if diff := cmp.Diff([]any{tc.wantWake, tc.wantWake == 0}, []any{result.RequeueAfter, len(result.Delete) > 0}); diff != "" {
				t.Errorf("wake-up, deletes mismatch (-want +got):\n%s", diff)
			}
			if result.Status.Phase != v1.PhaseRestarting {
				t.Errorf("phase %s", result.Status.Phase)
			}
		})
	}
}
