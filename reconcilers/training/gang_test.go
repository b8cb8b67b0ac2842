package training

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// ofAttempt marks a pod as one of an attempt of its gang.
func ofAttempt(n int32) fixtures.PodMod {
	return func(pod *corev1.Pod) {
		pod.Labels = map[string]string{v1.AttemptLabel: itoa(n)}
		pod.UID += types.UID("-" + itoa(n))
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
}

// gangStep is one planning in the life of a gang of two workers.
type gangStep struct {
	pods    []*corev1.Pod
	after   time.Duration
	want    outcome
	attempt int32
}

func TestGangRestart(t *testing.T) {
	worker := func(index int, attempt int32, mods ...fixtures.PodMod) *corev1.Pod {
		return fixtures.Pod("a-worker-"+itoa(int32(index)), append([]fixtures.PodMod{ofAttempt(attempt)}, mods...)...)
	}
	running, both := fixtures.Running(), []string{"a-worker-0", "a-worker-1"}
	tests := map[string]struct {
		policy v1.RestartPolicy
		mods   []fixtures.JobMod
		steps  []gangStep
	}{
		"one failure replaces all, once the old ones are gone": {
			policy: v1.RestartOnFailure,
			steps: []gangStep{
				{want: outcome{Phase: v1.PhaseCreating, Created: both, Ready: "0/2"}},
				{pods: []*corev1.Pod{worker(0, 0, running), worker(1, 0, running)}, want: outcome{Phase: v1.PhaseRunning, Ready: "2/2"}},
				{pods: []*corev1.Pod{worker(0, 0, running), worker(1, 0, fixtures.Failed(1))},
					want: outcome{Phase: v1.PhaseRestarting, Deleted: both, Restarts: 1, Ready: "0/2"}, attempt: 1},
				{pods: []*corev1.Pod{worker(0, 0, running, fixtures.Terminating()), worker(1, 0, fixtures.Failed(1))},
					want: outcome{Phase: v1.PhaseRestarting, Deleted: []string{"a-worker-1"}, Restarts: 1, Ready: "0/2"}, attempt: 1},
				{pods: []*corev1.Pod{worker(0, 0, fixtures.Failed(143), fixtures.Terminating())},
					want: outcome{Phase: v1.PhaseRestarting, Restarts: 1, Ready: "0/2"}, attempt: 1},
				{want: outcome{Phase: v1.PhaseRestarting, Created: both, Restarts: 1, Ready: "0/2"}, attempt: 1},
				{pods: []*corev1.Pod{worker(0, 1, running), worker(1, 1)}, want: outcome{Phase: v1.PhaseRestarting, Restarts: 1, Ready: "1/2"}, attempt: 1},
				{pods: []*corev1.Pod{worker(0, 1, running), worker(1, 1, running)}, want: outcome{Phase: v1.PhaseRunning, Restarts: 1, Ready: "2/2"}, attempt: 1},
			},
		},
		"members that fail together are one restart, and the limit is exact": {
			policy: v1.RestartExitCode,
			mods:   []fixtures.JobMod{fixtures.BackoffLimit(1)},
			steps: []gangStep{
				{pods: []*corev1.Pod{worker(0, 0, fixtures.Failed(137)), worker(1, 0, fixtures.Failed(134))},
					want: outcome{Phase: v1.PhaseRestarting, Deleted: both, Restarts: 1, Ready: "0/2"}, attempt: 1},
				{after: time.Minute, pods: []*corev1.Pod{worker(0, 1, running), worker(1, 1, fixtures.Failed(137))},
					want: outcome{Phase: v1.PhaseFailed, Reason: v1.TrainingJobBackoffLimitExceededReason, Restarts: 1, Ready: "1/2",
						Message: "pod a-worker-1 ended with exit code 137 (OOMKilled) after 1 restart of the job; backoffLimit is 1"}, attempt: 1},
			},
		},
		"a permanent exit code fails the job": {
			policy: v1.RestartExitCode,
			steps: []gangStep{{pods: []*corev1.Pod{worker(0, 0, running), worker(1, 0, fixtures.Failed(1))},
				want: outcome{Phase: v1.PhaseFailed, Reason: v1.TrainingJobPodFailedReason, Ready: "1/2",
					Message: "pod a-worker-1 ended with exit code 1, and restartPolicy ExitCode does not restart it"}}},
		},
		"a lost node restarts the gang for free, with what failed for it": {
			policy: v1.RestartExitCode,
			mods:   []fixtures.JobMod{fixtures.BackoffLimit(0)},
			steps: []gangStep{{pods: []*corev1.Pod{worker(0, 0, fixtures.Failed(1)), worker(1, 0, fixtures.Failed(143), fixtures.Disrupted())},
				want: outcome{Phase: v1.PhaseRestarting, Deleted: both, Ready: "0/2"}, attempt: 1}},
		},
		"a drain does as well": {
			policy: v1.RestartNever,
			mods:   []fixtures.JobMod{fixtures.BackoffLimit(0)},
			steps: []gangStep{{pods: []*corev1.Pod{worker(0, 0, running), worker(1, 0, running, fixtures.Terminating())},
				want: outcome{Phase: v1.PhaseRestarting, Deleted: []string{"a-worker-0"}, Ready: "0/2"}, attempt: 1}},
		},
		"a pod that vanished while nobody looked does, once all were there": {
			policy: v1.RestartNever,
			steps: []gangStep{
				{pods: []*corev1.Pod{worker(0, 0, running)}, want: outcome{Phase: v1.PhaseRunning, Created: []string{"a-worker-1"}, Ready: "1/2"}},
				{pods: []*corev1.Pod{worker(0, 0, running), worker(1, 0, running)}, want: outcome{Phase: v1.PhaseRunning, Ready: "2/2"}},
				{pods: []*corev1.Pod{worker(0, 0, running)}, want: outcome{Phase: v1.PhaseRestarting, Deleted: []string{"a-worker-0"}, Ready: "0/2"}, attempt: 1},
			},
		},
		"a member that is done is not missed, but runs again with the others": {
			policy: v1.RestartOnFailure,
			steps: []gangStep{
				{pods: []*corev1.Pod{worker(0, 0, running), worker(1, 0, fixtures.Succeeded())}, want: outcome{Phase: v1.PhaseRunning, Ready: "2/2"}},
				{pods: []*corev1.Pod{worker(0, 0, running)}, want: outcome{Phase: v1.PhaseRunning, Ready: "2/2"}},
				{pods: []*corev1.Pod{worker(0, 0, fixtures.Failed(1))},
					want: outcome{Phase: v1.PhaseRestarting, Deleted: []string{"a-worker-0"}, Restarts: 1, Ready: "0/2"}, attempt: 1},
				{want: outcome{Phase: v1.PhaseRestarting, Created: both, Restarts: 1, Ready: "0/2"}, attempt: 1},
			},
		},
		"an elastic worker that leaves restarts nobody": {
			policy: v1.RestartOnFailure,
			mods:   []fixtures.JobMod{fixtures.Elastic(1, 2)},
			steps: []gangStep{{pods: []*corev1.Pod{worker(0, 0, running), worker(1, 0, running, fixtures.Terminating())},
				want: outcome{Phase: v1.PhaseRunning, Ready: "1/2"}}},
		},
		"an outdated status makes nothing": {
			policy: v1.RestartOnFailure,
			steps: []gangStep{{pods: []*corev1.Pod{worker(0, 3, running, func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(later) })},
				want: outcome{Phase: v1.PhaseCreating, Ready: "0/2"}}},
		},
		"a later attempt that no lag explains any more is an edited label": {
			policy: v1.RestartOnFailure,
			steps:  []gangStep{{pods: []*corev1.Pod{worker(0, 3, running), worker(1, 0, running)}, want: outcome{Phase: v1.PhaseRunning, Ready: "2/2"}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := started(fixtures.TrainingJob("a", append(tc.mods, fixtures.Restart(tc.policy), fixtures.GangRestart())...))
			now := later
			for i, step := range tc.steps {
				now = now.Add(step.after)
				result := Plan(job, somePods(step.pods...), now)
				if diff := cmp.Diff(step.want, outcomeOf(result), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("step %d mismatch (-want +got):\n%s", i, diff)
				}
				if got := ptr.Deref(result.Status.Attempt, 0); got != step.attempt {
					t.Fatalf("step %d: attempt %d, want %d", i, got, step.attempt)
				}
				for _, child := range result.Create {
					pod := child.(*corev1.Pod)
					if attemptOf(pod) != step.attempt || pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
						t.Errorf("step %d: pod of attempt %d, restarted by the kubelet %s", i, attemptOf(pod), pod.Spec.RestartPolicy)
					}
				}
				job.Status = result.Status
			}
		})
	}
}

// TestEditedLabels: services find pods by their labels, and restarts of gangs
// know them by one.
func TestEditedLabels(t *testing.T) {
	job := started(fixtures.TrainingJob("a", fixtures.Workers(2), fixtures.GangRestart()))
	labelled := func(index int32, key, value string) *corev1.Pod {
		return fixtures.Pod("a-worker-"+itoa(index), fixtures.Running(), func(pod *corev1.Pod) {
			pod.Labels = memberLabels(job, v1.RoleWorker, index)
			pod.Labels[v1.AttemptLabel] = "0"
			pod.Labels[key] = value
		})
	}
	for key, want := range map[string]bool{v1.AttemptLabel: true, v1.JobNameLabel: true, v1.IndexLabel: true, "team": false} {
		result := Plan(job, somePods(labelled(0, key, "7"), labelled(1, "team", "a")), later)
		var restored []string
		for _, child := range result.Apply {
			if pod, ok := child.(*corev1ac.PodApplyConfiguration); ok {
				restored = append(restored, *pod.Name)
				if pod.Labels[v1.AttemptLabel] != "0" || pod.Labels[v1.IndexLabel] != "0" {
					t.Errorf("%s: restores %v", key, pod.Labels)
				}
			}
		}
		if got := slices.Equal(restored, []string{"a-worker-0"}); got != want || len(restored) > 1 {
			t.Errorf("%s: restores the labels of %v", key, restored)
		}
		if len(result.Create)+len(result.Delete) > 0 {
			t.Errorf("%s: creates %d, deletes %d", key, len(result.Create), len(result.Delete))
		}
	}
	// One of an earlier attempt, or of none, cannot be beside one of this attempt.
	job.Status.Attempt = new(int32(3))
	if result := Plan(job, somePods(labelled(0, v1.AttemptLabel, "3"), labelled(1, "team", "a")), later); len(result.Apply) == 0 || len(result.Delete) > 0 {
		t.Errorf("a pod without its attempt: applies %d, deletes %d", len(result.Apply), len(result.Delete))
	}
	fresh := labelled(0, v1.AttemptLabel, "7")
	fresh.CreationTimestamp = metav1.NewTime(later.Add(-20 * time.Second))
	if got := Plan(job, somePods(fresh), later).RequeueAfter; got != 40*time.Second {
		t.Errorf("looks again after %s", got)
	}
}

func TestGangRestartSaysWhy(t *testing.T) {
	job := started(fixtures.TrainingJob("a", fixtures.GangRestart()))
	result := Plan(job, somePods(fixtures.Pod("a-worker-0", fixtures.Failed(9)), fixtures.Pod("a-worker-1", fixtures.Running())), later)
	c := meta.FindStatusCondition(result.Status.Conditions, v1.TrainingJobRestartingCondition)
	if c == nil || c.Reason != v1.TrainingJobGangRestartingReason {
		t.Errorf("condition %+v", c)
	}
	if len(result.Events) != 1 || result.Events[0].Message != "The pod of Worker 0 ended with exit code 9: all pods are replaced" {
		t.Errorf("events %+v", result.Events)
	}
}

// TestGangRestartSlowsDown: a gang that fails as it starts comes back ever more
// slowly.
func TestGangRestartSlowsDown(t *testing.T) {
	job := started(fixtures.TrainingJob("a", fixtures.GangRestart()))
	job.Status.Roles[0].Restarts = new(int32(3))
	young := func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(later.Add(-time.Second)) }
	result := Plan(job, somePods(fixtures.Pod("a-worker-0", fixtures.Failed(9), young), fixtures.Pod("a-worker-1", fixtures.Running(), young)), later)
	if result.RequeueAfter != 3*time.Second || len(result.Delete) > 0 || result.Status.Phase != v1.PhaseRestarting || attempt(&result.Status) != 0 {
		t.Errorf("wake-up %v, %d deletions, phase %s, attempt %d", result.RequeueAfter, len(result.Delete), result.Status.Phase, attempt(&result.Status))
	}
}

// TestCompletedPodsAreNotRunAgain goes through the roles and what becomes of
// their indices once their pods have succeeded and are gone.
func TestCompletedPodsAreNotRunAgain(t *testing.T) {
	of := func(framework v1.Framework, mods ...fixtures.JobMod) *v1.TrainingJob {
		return fixtures.TrainingJob("a", append(mods, fixtures.Framework(framework))...)
	}
	named := func(name, container string, mods ...fixtures.PodMod) *corev1.Pod {
		return fixtures.Pod(name, append([]fixtures.PodMod{func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = container }}, mods...)...)
	}
	tests := map[string]struct {
		job       *v1.TrainingJob
		before    []*corev1.Pod
		after     []*corev1.Pod
		completed string
		want      outcome
	}{
		"a worker of several": {
			job:       of(v1.FrameworkJAX, fixtures.Workers(3)),
			before:    []*corev1.Pod{named("a-worker-0", "jax", fixtures.Running()), named("a-worker-1", "jax", fixtures.Succeeded()), named("a-worker-2", "jax", fixtures.Succeeded())},
			after:     []*corev1.Pod{named("a-worker-0", "jax", fixtures.Running())},
			completed: "1-2",
			want:      outcome{Phase: v1.PhaseRunning, Ready: "3/3"},
		},
		"the job ends when the last one does": {
			job:       of(v1.FrameworkJAX),
			before:    []*corev1.Pod{named("a-worker-0", "jax", fixtures.Succeeded()), named("a-worker-1", "jax", fixtures.Running())},
			after:     []*corev1.Pod{named("a-worker-1", "jax", fixtures.Succeeded())},
			completed: "0",
			want:      outcome{Phase: v1.PhaseSucceeded, Ready: "2/2"},
		},
		"one whose pod is being deleted": {
			job:       of(v1.FrameworkPaddlePaddle),
			before:    []*corev1.Pod{named("a-worker-0", "paddle", fixtures.Succeeded()), named("a-worker-1", "paddle", fixtures.Running())},
			after:     []*corev1.Pod{named("a-worker-0", "paddle", fixtures.Succeeded(), fixtures.Terminating()), named("a-worker-1", "paddle", fixtures.Running())},
			completed: "0",
			want:      outcome{Phase: v1.PhaseRunning, Ready: "2/2"},
		},
		"an evaluator": {
			job:       of(v1.FrameworkTensorFlow, fixtures.Role(v1.RoleEvaluator, 1), fixtures.Workers(1)),
			before:    []*corev1.Pod{named("a-evaluator-0", "tensorflow", fixtures.Succeeded()), named("a-worker-0", "tensorflow", fixtures.Running())},
			after:     []*corev1.Pod{named("a-worker-0", "tensorflow", fixtures.Running())},
			completed: "0",
			want:      outcome{Phase: v1.PhaseRunning, Ready: "2/2"},
		},
		"but a parameter server, which serves": {
			job:    of(v1.FrameworkTensorFlow, fixtures.Role(v1.RolePS, 1), fixtures.Workers(1)),
			before: []*corev1.Pod{named("a-ps-0", "tensorflow", fixtures.Succeeded()), named("a-worker-0", "tensorflow", fixtures.Running())},
			after:  []*corev1.Pod{named("a-worker-0", "tensorflow", fixtures.Running())},
			want:   outcome{Phase: v1.PhaseRunning, Created: []string{"a-ps-0"}, Ready: "1/2"},
		},
		"and an MPI worker": {
			job:    of(v1.FrameworkMPI, fixtures.Workers(1), fixtures.Role(v1.RoleLauncher, 1)),
			before: []*corev1.Pod{named("a-worker-0", "mpi", fixtures.Succeeded()), named("a-launcher-0", "mpi", fixtures.Running())},
			after:  []*corev1.Pod{named("a-launcher-0", "mpi", fixtures.Running())},
			want:   outcome{Phase: v1.PhaseRunning, Created: []string{"a-worker-0"}, Ready: "1/2"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := started(tc.job)
			job.Status = Plan(job, somePods(tc.before...), later).Status
			if diff := cmp.Diff(tc.completed, job.Status.Roles[0].CompletedIndexes); diff != "" {
				t.Errorf("completedIndexes mismatch (-want +got):\n%s", diff)
			}
			result := Plan(job, somePods(tc.after...), later.Add(time.Second))
			if diff := cmp.Diff(tc.want, outcomeOf(result), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Plan() mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompletedIndexesAreForgotten(t *testing.T) {
	job := started(fixtures.TrainingJob("a", fixtures.Workers(3), fixtures.Elastic(1, 4), fixtures.Scaled(3)))
	job.Status = Plan(job, somePods(fixtures.Pod("a-worker-0", fixtures.Running()), fixtures.Pod("a-worker-2", fixtures.Succeeded())), later).Status
	if got := job.Status.Roles[0].CompletedIndexes; got != "2" {
		t.Fatalf("completedIndexes %q", got)
	}
	running := somePods(fixtures.Pod("a-worker-0", fixtures.Running()), fixtures.Pod("a-worker-1", fixtures.Running()))
	job.Spec.Elastic.Replicas = new(int32(2))
	scaled := job.DeepCopy()
	scaled.Status = Plan(job, running, later).Status
	scaled.Spec.Elastic.Replicas = new(int32(3))
	if diff := cmp.Diff([]string{"a-worker-2"}, outcomeOf(Plan(scaled, running, later)).Created); diff != "" {
		t.Errorf("after scaling down and up, created (-want +got):\n%s", diff)
	}
	job.Spec.RunPolicy.Suspend = new(true)
	if got := Plan(job, running, later).Status.Roles[0].CompletedIndexes; got != "" {
		t.Errorf("a suspended job keeps completedIndexes %q", got)
	}
}

func FuzzCompletedIndexes(f *testing.F) {
	for _, seed := range []string{"", "0", "0-2,5", "2-0", "1-1,1", "-", "a,3", "4294967296", "0-99999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		job := started(fixtures.TrainingJob("a", fixtures.Workers(6)))
		job.Status.Roles[0].CompletedIndexes = text
		first := Plan(job, somePods(), later)
		written := first.Status.Roles[0].CompletedIndexes
		job.Status = first.Status
		if again := Plan(job, somePods(), later).Status.Roles[0].CompletedIndexes; again != written {
			t.Errorf("%q is read as %q, and that as %q", text, written, again)
		}
	})
}
