package training

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// family returns a pod and its service.
func family(name string, mods ...fixtures.PodMod) []plan.Object {
	return []plan.Object{
		fixtures.Pod(name, mods...),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fixtures.Namespace, UID: "service-" + fixtures.Pod(name).UID}},
	}
}

func gathered(families ...[]plan.Object) plan.Observed {
	var observed plan.Observed
	for _, family := range families {
		observed.Children = append(observed.Children, family...)
	}
	return observed
}

// deleted returns what a result deletes, as kind/name.
func deleted(result plan.Result[v1.TrainingJobStatus]) []string {
	var names []string
	for _, deletion := range result.Delete {
		kind := "service/"
		if _, ok := deletion.Child.(*corev1.Pod); ok {
			kind = "pod/"
		}
		names = append(names, kind+deletion.Child.GetName())
	}
	return names
}

func TestDeadline(t *testing.T) {
	running := somePods(fixtures.Pod("a-worker-0", fixtures.Running()), fixtures.Pod("a-worker-1", fixtures.Running()))
	tests := map[string]struct {
		seconds   int64
		at        time.Duration
		wantPhase v1.Phase
		wantWake  time.Duration
	}{
		"a quiet job wakes at its deadline":        {seconds: 100, at: 40 * time.Second, wantPhase: v1.PhaseRunning, wantWake: 60 * time.Second},
		"it goes on until a moment before":         {seconds: 100, at: 99 * time.Second, wantPhase: v1.PhaseRunning, wantWake: time.Second},
		"it fails at the instant of the deadline":  {seconds: 100, at: 100 * time.Second, wantPhase: v1.PhaseFailed},
		"a deadline of 0 fails before any pod":     {seconds: 0, at: 0, wantPhase: v1.PhaseFailed},
		"a deadline missed while down still holds": {seconds: 100, at: time.Hour, wantPhase: v1.PhaseFailed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := started(fixtures.TrainingJob("a", fixtures.Deadline(max(tc.seconds, 1))))
			job.Spec.RunPolicy.ActiveDeadlineSeconds = new(tc.seconds)
			result := Plan(job, running, fixtures.Start.Add(tc.at))
			if diff := cmp.Diff([]any{tc.wantPhase, tc.wantWake}, []any{result.Status.Phase, result.RequeueAfter}); diff != "" {
				t.Errorf("phase and wake-up mismatch (-want +got):\n%s", diff)
			}
			if tc.wantPhase == v1.PhaseFailed {
				if c := meta.FindStatusCondition(result.Status.Conditions, v1.TrainingJobFailedCondition); c.Reason != v1.TrainingJobDeadlineExceededReason {
					t.Errorf("reason = %s", c.Reason)
				}
				if len(result.Create) > 0 {
					t.Errorf("a job past its deadline creates %d pods", len(result.Create))
				}
			}
		})
	}
}

// TestFinish goes through every way of finishing and every cleanPodPolicy.
func TestFinish(t *testing.T) {
	never := []fixtures.JobMod{fixtures.Master(), fixtures.Workers(1), fixtures.Restart(v1.RestartNever)}
	causes := map[string]struct {
		mods   []fixtures.JobMod
		master []fixtures.PodMod
		at     time.Duration
		// ended says that the master has ended, so that Running keeps it.
		ended bool
	}{
		"success":      {mods: never, master: []fixtures.PodMod{fixtures.Succeeded()}, ended: true},
		"a failed pod": {mods: never, master: []fixtures.PodMod{fixtures.Failed(1)}, ended: true},
		"the backoff":  {mods: append(never, fixtures.Restart(v1.RestartExitCode), fixtures.BackoffLimit(0)), master: []fixtures.PodMod{fixtures.Failed(137)}, ended: true},
		"the deadline": {mods: append(never, fixtures.Deadline(60)), master: []fixtures.PodMod{fixtures.Running()}, at: time.Minute},
		// The kubelet has not yet said that the pod has ended as well.
		"an exit":          {mods: never, master: []fixtures.PodMod{fixtures.PodRestart(corev1.RestartPolicyNever), fixtures.Exited(0)}, ended: true},
		"a sidecar's stay": {mods: never, master: []fixtures.PodMod{fixtures.PodRestart(corev1.RestartPolicyNever), fixtures.Exited(0), fixtures.Sidecar(0)}},
	}
	master, worker := []string{"pod/a-master-0", "service/a-master-0"}, []string{"pod/a-worker-0", "service/a-worker-0"}
	for cause, tc := range causes {
		for _, policy := range []v1.CleanPodPolicy{v1.CleanPodAll, v1.CleanPodRunning, v1.CleanPodNone} {
			t.Run(cause+" with cleanPodPolicy "+string(policy), func(t *testing.T) {
				job := started(fixtures.TrainingJob("a", append(tc.mods, fixtures.CleanPods(policy), fixtures.TTL(3600))...))
				observed := gathered(family("a-master-0", tc.master...), family("a-worker-0", fixtures.Running()))
				result := Plan(job, observed, fixtures.Start.Add(tc.at))

				var want []string
				switch {
				case policy == v1.CleanPodAll, policy == v1.CleanPodRunning && !tc.ended:
					want = append(append(want, master...), worker...)
				case policy == v1.CleanPodRunning:
					want = worker
				}
				byName := cmpopts.SortSlices(func(a, b string) bool { return a < b })
				if diff := cmp.Diff(want, deleted(result), byName, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("deleted mismatch (-want +got):\n%s", diff)
				}
				if result.Status.CompletionTime == nil || result.RequeueAfter != time.Hour {
					t.Errorf("completion time %v, wake-up %v; want one, 1h", result.Status.CompletionTime, result.RequeueAfter)
				}

				// Whatever is seen later, the job stays as it finished.
				job.Status = result.Status
				late := Plan(job, somePods(fixtures.Pod("a-worker-0", fixtures.Failed(1))), fixtures.Start.Add(2*time.Hour))
				if !late.DeleteSelf || len(late.Create)+len(late.Apply) > 0 {
					t.Errorf("after its time to live: deletes itself %v, makes %d children", late.DeleteSelf, len(late.Create)+len(late.Apply))
				}
				if diff := cmp.Diff(final(result.Status), final(late.Status)); diff != "" {
					t.Errorf("a finished job changed (-then +later):\n%s", diff)
				}
			})
		}
	}
}

// final is a status without what may change after the end: the pods that run.
func final(status v1.TrainingJobStatus) v1.TrainingJobStatus {
	status = *status.DeepCopy()
	for i := range status.Roles {
		status.Roles[i].Active, status.Roles[i].Ready = nil, nil
	}
	status.Elastic, status.RolesReady = nil, ""
	return status
}

func TestSuspend(t *testing.T) {
	job := started(fixtures.TrainingJob("a", fixtures.CleanPods(v1.CleanPodNone), fixtures.Deadline(100), fixtures.BackoffLimit(3)))
	running := gathered(
		family("a-worker-0", fixtures.Running(), fixtures.RestartedInPlace(2, 1)),
		family("a-worker-1", fixtures.Running()))
	job.Status = Plan(job, running, fixtures.Start.Add(30*time.Second)).Status

	job.Spec.RunPolicy.Suspend = new(true)
	result := Plan(job, running, fixtures.Start.Add(60*time.Second))
	if got := len(result.Delete); got != 4 {
		t.Errorf("suspending deletes %d children, want both pods and both services", got)
	}
	if result.Status.Phase != v1.PhaseSuspended || !isTrue(result.Status.Conditions, v1.TrainingJobSuspendedCondition) ||
		isTrue(result.Status.Conditions, v1.TrainingJobRunningCondition) || finished(&result.Status) {
		t.Errorf("suspended status: %+v", result.Status)
	}
	role := result.Status.Roles[0]
	if *role.Active+*role.Ready+*role.Succeeded+*role.Failed != 0 || result.Status.RolesReady != "0/2" {
		t.Errorf("suspended counts: %+v", role)
	}
	job.Status = result.Status

	// A deadline does not run out during suspension.
	result = Plan(job, plan.Observed{}, fixtures.Start.Add(24*time.Hour))
	if result.Status.Phase != v1.PhaseSuspended || result.RequeueAfter != 0 || len(result.Events) > 0 {
		t.Errorf("a day later: phase %s, wake-up %v, events %v", result.Status.Phase, result.RequeueAfter, result.Events)
	}
	job.Status = result.Status

	// A resumed job waits for pods that are still leaving, then starts with its
	// whole deadline and limit.
	job.Spec.RunPolicy.Suspend = new(false)
	resumed := fixtures.Start.Add(48 * time.Hour)
	leaving := somePods(fixtures.Pod("a-worker-0", fixtures.Running(), fixtures.RestartedInPlace(3, 1), fixtures.Terminating()))
	result = Plan(job, leaving, resumed.Add(-time.Minute))
	if result.Status.Phase != v1.PhaseSuspended || len(result.Create) > 0 {
		t.Errorf("with a pod leaving: phase %s, creates %v", result.Status.Phase, outcomeOf(result).Created)
	}
	job.Status = result.Status
	result = Plan(job, plan.Observed{}, resumed)
	if diff := cmp.Diff([]string{"a-worker-0", "a-worker-1"}, outcomeOf(result).Created); diff != "" {
		t.Errorf("created mismatch (-want +got):\n%s", diff)
	}
	if result.RequeueAfter != 100*time.Second || *result.Status.Restarts != 0 || !result.Status.StartTime.Time.Equal(resumed) {
		t.Errorf("resumed: wake-up %v, restarts %d, start %v", result.RequeueAfter, *result.Status.Restarts, result.Status.StartTime)
	}
	c := meta.FindStatusCondition(result.Status.Conditions, v1.TrainingJobSuspendedCondition)
	if c.Status != metav1.ConditionFalse || c.Reason != v1.TrainingJobResumedReason {
		t.Errorf("Suspended condition: %+v", c)
	}
}

func TestDeadlineSaysWhenItWasNoticed(t *testing.T) {
	running := somePods(fixtures.Pod("a-worker-0", fixtures.Running()), fixtures.Pod("a-worker-1", fixtures.Running()))
	for at, want := range map[time.Duration]string{
		15 * time.Second: "the job has run for 15 seconds, which is its activeDeadlineSeconds",
		36 * time.Second: "the job was to run for 15 seconds, its activeDeadlineSeconds, and this was noticed 21 seconds late",
	} {
		result := Plan(started(fixtures.TrainingJob("a", fixtures.Deadline(15))), running, fixtures.Start.Add(at))
		if c := meta.FindStatusCondition(result.Status.Conditions, v1.TrainingJobFailedCondition); c == nil || c.Message != want {
			t.Errorf("after %v: %+v; want %q", at, c, want)
		}
	}
}

// A finished job's READY follows its pods.
func TestReadyOfAFinishedJob(t *testing.T) {
	job := started(fixtures.TrainingJob("a", fixtures.Deadline(60), fixtures.CleanPods(v1.CleanPodNone)))
	running := somePods(fixtures.Pod("a-worker-0", fixtures.Running()), fixtures.Pod("a-worker-1", fixtures.Running()))
	for _, step := range []struct {
		observed plan.Observed
		want     string
	}{{running, "2/2"}, {somePods(fixtures.Pod("a-worker-1", fixtures.Running())), "1/2"}, {plan.Observed{}, "0/2"}} {
		job.Status = Plan(job, step.observed, fixtures.Start.Add(time.Minute)).Status
		if job.Status.Phase != v1.PhaseFailed || job.Status.RolesReady != step.want {
			t.Errorf("phase %s, ready %s; want Failed, %s", job.Status.Phase, job.Status.RolesReady, step.want)
		}
	}
}

// Under None a pod stays, but for one that would be restarted for ever.
func TestLoopsEndWithTheJob(t *testing.T) {
	job := started(fixtures.TrainingJob("a", fixtures.Workers(3), fixtures.BackoffLimit(1), fixtures.CleanPods(v1.CleanPodNone)))
	observed := gathered(
		family("a-worker-0", fixtures.Running(), fixtures.PodRestart(corev1.RestartPolicyOnFailure), fixtures.RestartedInPlace(2, 1)),
		family("a-worker-1", fixtures.Running(), fixtures.PodRestart(corev1.RestartPolicyOnFailure)),
		family("a-worker-2", fixtures.Succeeded(), fixtures.PodRestart(corev1.RestartPolicyOnFailure)))
	result := Plan(job, observed, later)
	if diff := cmp.Diff([]string{"pod/a-worker-0"}, deleted(result)); diff != "" || result.Status.Phase != v1.PhaseFailed {
		t.Errorf("phase %s, deleted (-want +got):\n%s", result.Status.Phase, diff)
	}
	// At the deadline nothing loops.
	job = started(fixtures.TrainingJob("a", fixtures.Workers(3), fixtures.Deadline(1), fixtures.CleanPods(v1.CleanPodNone)))
	if result := Plan(job, observed, later); len(result.Delete) > 0 || result.Status.Phase != v1.PhaseFailed {
		t.Errorf("at the deadline: phase %s, deletes %v", result.Status.Phase, deleted(result))
	}
}

// A job does not succeed without pods that the API server refuses.
func TestSuccessNeedsThePods(t *testing.T) {
	refused := metav1.Condition{Type: v1.InvalidCondition, Status: metav1.ConditionTrue, Reason: v1.ChildRejectedReason, Message: "the API server refuses a Pod: bad"}
	tests := map[string]struct {
		mods      []fixtures.JobMod
		condition metav1.Condition
		others    []plan.Object
		want      v1.Phase
	}{
		"workers that could not be made":            {mods: []fixtures.JobMod{fixtures.Master(), fixtures.Workers(2)}, condition: refused, want: v1.PhaseFailed},
		"workers that there are":                    {mods: []fixtures.JobMod{fixtures.Master(), fixtures.Workers(1)}, condition: refused, others: family("a-worker-0", fixtures.Running()), want: v1.PhaseSucceeded},
		"workers above the least number":            {mods: []fixtures.JobMod{fixtures.Master(), fixtures.Workers(2), fixtures.Elastic(1, 2)}, condition: refused, others: family("a-worker-0", fixtures.Running()), want: v1.PhaseSucceeded},
		"workers that are gone, with nothing wrong": {mods: []fixtures.JobMod{fixtures.Master(), fixtures.Workers(2)}, want: v1.PhaseSucceeded},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := started(fixtures.TrainingJob("a", tc.mods...))
			if tc.condition.Type != "" {
				job.Status.Conditions = append(job.Status.Conditions, tc.condition)
			}
			result := Plan(job, gathered(family("a-master-0", fixtures.Succeeded()), tc.others), later)
			if result.Status.Phase != tc.want {
				t.Errorf("phase %s, want %s", result.Status.Phase, tc.want)
			}
			failed := meta.FindStatusCondition(result.Status.Conditions, v1.TrainingJobFailedCondition)
			if tc.want == v1.PhaseFailed && (failed == nil || failed.Reason != v1.TrainingJobPodsMissingReason) {
				t.Errorf("Failed condition %+v", failed)
			}
		})
	}
}

func TestSuspendingAFinishedJobDoesNothing(t *testing.T) {
	job := started(fixtures.TrainingJob("a", fixtures.Workers(1)))
	done := somePods(fixtures.Pod("a-worker-0", fixtures.Succeeded()))
	job.Status = Plan(job, done, later).Status
	job.Spec.RunPolicy.Suspend = new(true)
	result := Plan(job, done, later.Add(time.Minute))
	if result.Status.Phase != v1.PhaseSucceeded || len(result.Delete) > 0 {
		t.Errorf("phase %s, deletes %v", result.Status.Phase, deleted(result))
	}
}

func TestRestartingLasts(t *testing.T) {
	job := started(fixtures.TrainingJob("a", fixtures.Restart(v1.RestartExitCode)))
	other := fixtures.Pod("a-worker-1", fixtures.Running())
	for i, step := range []struct {
		pods []*corev1.Pod
		want v1.Phase
	}{
		{[]*corev1.Pod{nth(0, fixtures.Failed(137)), other}, v1.PhaseRestarting},
		{[]*corev1.Pod{nth(0, fixtures.Failed(137), fixtures.Terminating()), other}, v1.PhaseRestarting},
		{[]*corev1.Pod{other}, v1.PhaseRestarting},
		{[]*corev1.Pod{nth(1), other}, v1.PhaseRestarting},
		{[]*corev1.Pod{nth(1, fixtures.Running()), other}, v1.PhaseRunning},
		{[]*corev1.Pod{other}, v1.PhaseRunning},
	} {
		result := Plan(job, somePods(step.pods...), later)
		if result.Status.Phase != step.want {
			t.Errorf("step %d: phase %s, want %s", i, result.Status.Phase, step.want)
		}
		job.Status = result.Status
	}
}
