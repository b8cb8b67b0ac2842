package training

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/test/fixtures"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// outcome is what a test looks at of a result.
type outcome struct {
	Phase    v1.Phase
	Reason   string
	Message  string
	Created  []string
	Deleted  []string
	Restarts int32
	Ready    string
}

func outcomeOf(result plan.Result[v1.TrainingJobStatus]) outcome {
	o := outcome{
		Phase:    result.Status.Phase,
		Restarts: ptr.Deref(result.Status.Restarts, 0),
		Ready:    result.Status.RolesReady,
	}
	for _, kind := range []string{v1.TrainingJobFailedCondition, v1.TrainingJobInvalidCondition} {
		if c := meta.FindStatusCondition(result.Status.Conditions, kind); c != nil {
			o.Reason, o.Message = c.Reason, c.Message
		}
	}
	for _, child := range result.Create {
		o.Created = append(o.Created, child.GetName())
	}
	for _, deletion := range result.Delete {
		if _, ok := deletion.Child.(*corev1.Pod); ok {
			o.Deleted = append(o.Deleted, deletion.Child.GetName())
		}
	}
	return o
}

func somePods(pods ...*corev1.Pod) plan.Observed {
	var observed plan.Observed
	for _, pod := range pods {
		observed.Children = append(observed.Children, pod)
	}
	return observed
}

// started returns a job whose status is that of a minute ago, when it was
// planned first.
func started(job *v1.TrainingJob) *v1.TrainingJob {
	job.Status = Plan(job, plan.Observed{}, fixtures.Start).Status
	return job
}

var later = fixtures.Start.Add(time.Minute)

func TestPlan(t *testing.T) {
	tests := map[string]struct {
		job  *v1.TrainingJob
		pods []*corev1.Pod
		want outcome
	}{
		"a new job creates its pods, the master first": {
			job:  fixtures.TrainingJob("a", fixtures.Master()),
			want: outcome{Phase: v1.PhaseCreating, Created: []string{"a-master-0", "a-worker-0", "a-worker-1"}, Ready: "0/3"},
		},
		"a job runs while its master does": {
			job:  fixtures.TrainingJob("a", fixtures.Master()),
			pods: []*corev1.Pod{fixtures.Pod("a-master-0", fixtures.Running()), fixtures.Pod("a-worker-0"), fixtures.Pod("a-worker-1")},
			want: outcome{Phase: v1.PhaseRunning, Ready: "1/3"},
		},
		"a running worker is not enough where there is a master": {
			job:  fixtures.TrainingJob("a", fixtures.Master()),
			pods: []*corev1.Pod{fixtures.Pod("a-master-0"), fixtures.Pod("a-worker-0", fixtures.Running()), fixtures.Pod("a-worker-1")},
			want: outcome{Phase: v1.PhaseCreating, Ready: "1/3"},
		},
		"a job has succeeded when its master has, whatever workers do": {
			job: fixtures.TrainingJob("a", fixtures.Master(), fixtures.Restart(v1.RestartNever)),
			pods: []*corev1.Pod{
				fixtures.Pod("a-master-0", fixtures.Succeeded()), fixtures.Pod("a-worker-0", fixtures.Running()), fixtures.Pod("a-worker-1", fixtures.Failed(1)),
			},
			want: outcome{Phase: v1.PhaseSucceeded, Ready: "2/3"},
		},
		"without a master all workers must succeed": {
			job:  fixtures.TrainingJob("a"),
			pods: []*corev1.Pod{fixtures.Pod("a-worker-0", fixtures.Succeeded()), fixtures.Pod("a-worker-1", fixtures.Running())},
			want: outcome{Phase: v1.PhaseRunning, Ready: "2/2"},
		},
		"a role of no pods does not succeed at once": {
			job:  fixtures.TrainingJob("a", fixtures.Workers(0)),
			want: outcome{Phase: v1.PhasePending, Ready: "0/0"},
		},
		"a pod whose main container is done has succeeded although a sidecar runs": {
			job: fixtures.TrainingJob("a", fixtures.Workers(1)),
			pods: []*corev1.Pod{
				fixtures.Pod("a-worker-0", fixtures.Exited(0), fixtures.Sidecar(3)),
			},
			want: outcome{Phase: v1.PhaseSucceeded, Ready: "1/1"},
		},
		"a main container that the kubelet restarts whatever happens is not done": {
			job: fixtures.TrainingJob("a", fixtures.Workers(1), fixtures.Restart(v1.RestartAlways)),
			pods: []*corev1.Pod{
				fixtures.Pod("a-worker-0", fixtures.PodRestart(corev1.RestartPolicyAlways), fixtures.Exited(0)),
			},
			want: outcome{Phase: v1.PhaseRunning, Ready: "0/1"},
		},
		"a sidecar that failed does not fail a pod whose main container is done": {
			job: fixtures.TrainingJob("a", fixtures.Workers(1), fixtures.Restart(v1.RestartNever)),
			pods: []*corev1.Pod{
				fixtures.Pod("a-worker-0", fixtures.PodRestart(corev1.RestartPolicyNever), fixtures.Failed(0), fixtures.Sidecar(0)),
			},
			want: outcome{Phase: v1.PhaseSucceeded, Ready: "1/1"},
		},
		"a pod that fails under Never fails the job": {
			job:  fixtures.TrainingJob("a", fixtures.Restart(v1.RestartNever)),
			pods: []*corev1.Pod{fixtures.Pod("a-worker-0", fixtures.Running()), fixtures.Pod("a-worker-1", fixtures.Failed(137))},
			want: outcome{
				Phase: v1.PhaseFailed, Reason: v1.TrainingJobPodFailedReason, Ready: "1/2",
				Message: "pod a-worker-1 ended with exit code 137 (OOMKilled), and restartPolicy Never does not restart it",
			},
		},
		"an exit code below 128 fails a job under ExitCode": {
			job:  fixtures.TrainingJob("a", fixtures.Restart(v1.RestartExitCode)),
			pods: []*corev1.Pod{fixtures.Pod("a-worker-0", fixtures.Failed(127)), fixtures.Pod("a-worker-1", fixtures.Running())},
			want: outcome{
				Phase: v1.PhaseFailed, Reason: v1.TrainingJobPodFailedReason, Ready: "1/2",
				Message: "pod a-worker-0 ended with exit code 127, and restartPolicy ExitCode does not restart it",
			},
		},
		"an exit code of 128 replaces the pod under ExitCode": {
			job:  fixtures.TrainingJob("a", fixtures.Restart(v1.RestartExitCode)),
			pods: []*corev1.Pod{fixtures.Pod("a-worker-0", fixtures.Failed(128)), fixtures.Pod("a-worker-1", fixtures.Running())},
			want: outcome{Phase: v1.PhaseRestarting, Deleted: []string{"a-worker-0"}, Restarts: 1, Ready: "1/2"},
		},
		"a pod that fails without an exit code is replaced under ExitCode": {
			job:  fixtures.TrainingJob("a", fixtures.Restart(v1.RestartExitCode)),
			pods: []*corev1.Pod{fixtures.Pod("a-worker-0", fixtures.FailedFor("UnexpectedAdmissionError", "")), fixtures.Pod("a-worker-1", fixtures.Running())},
			want: outcome{Phase: v1.PhaseRestarting, Deleted: []string{"a-worker-0"}, Restarts: 1, Ready: "1/2"},
		},
		"the exit code of a main container counts while a sidecar still runs": {
			job: fixtures.TrainingJob("a", fixtures.Workers(1), fixtures.Restart(v1.RestartExitCode)),
			pods: []*corev1.Pod{
				fixtures.Pod("a-worker-0", fixtures.PodRestart(corev1.RestartPolicyNever), fixtures.Exited(137), fixtures.Sidecar(0)),
			},
			want: outcome{Phase: v1.PhaseRestarting, Deleted: []string{"a-worker-0"}, Restarts: 1, Ready: "0/1"},
		},
		"a drained pod is replaced without a restart being counted, under Never too": {
			job: fixtures.TrainingJob("a", fixtures.Restart(v1.RestartNever), fixtures.BackoffLimit(0)),
			pods: []*corev1.Pod{
				fixtures.Pod("a-worker-0", fixtures.Failed(0), fixtures.Disrupted()), fixtures.Pod("a-worker-1", fixtures.Running()),
			},
			want: outcome{Phase: v1.PhaseRestarting, Deleted: []string{"a-worker-0"}, Ready: "1/2"},
		},
		"a pod that was evicted for its own limit uses up a restart": {
			job: fixtures.TrainingJob("a"),
			pods: []*corev1.Pod{
				fixtures.Pod("a-worker-0", fixtures.FailedFor("Evicted", `Usage of EmptyDir volume "data" exceeds the limit "1Gi". `)),
				fixtures.Pod("a-worker-1", fixtures.Running()),
			},
			want: outcome{Phase: v1.PhaseRestarting, Deleted: []string{"a-worker-0"}, Restarts: 1, Ready: "1/2"},
		},
		"a pod that was evicted by a short node uses up none": {
			job: fixtures.TrainingJob("a"),
			pods: []*corev1.Pod{
				fixtures.Pod("a-worker-0", fixtures.FailedFor("Evicted", "The node was low on resource: memory. ")),
				fixtures.Pod("a-worker-1", fixtures.Running()),
			},
			want: outcome{Phase: v1.PhaseRestarting, Deleted: []string{"a-worker-0"}, Ready: "1/2"},
		},
		"a pod that is being deleted is no failure and is waited for": {
			job: fixtures.TrainingJob("a", fixtures.Restart(v1.RestartNever)),
			pods: []*corev1.Pod{
				fixtures.Pod("a-worker-0", fixtures.Failed(143), fixtures.Terminating()), fixtures.Pod("a-worker-1", fixtures.Running()),
			},
			want: outcome{Phase: v1.PhaseRunning, Ready: "1/2"},
		},
		"a pod that somebody deleted is created anew, under Never too": {
			job:  fixtures.TrainingJob("a", fixtures.Restart(v1.RestartNever)),
			pods: []*corev1.Pod{fixtures.Pod("a-worker-1", fixtures.Running())},
			want: outcome{Phase: v1.PhaseRunning, Created: []string{"a-worker-0"}, Ready: "1/2"},
		},
		"scaling down removes the highest indices": {
			job: fixtures.TrainingJob("a", fixtures.Workers(3), fixtures.Elastic(1, 4), fixtures.Scaled(1)),
			pods: []*corev1.Pod{
				fixtures.Pod("a-worker-0", fixtures.Running()), fixtures.Pod("a-worker-1", fixtures.Running()), fixtures.Pod("a-worker-2", fixtures.Failed(1)),
			},
			want: outcome{Phase: v1.PhaseRunning, Deleted: []string{"a-worker-1", "a-worker-2"}, Ready: "1/1"},
		},
		"scaling up leaves running pods alone": {
			job:  fixtures.TrainingJob("a", fixtures.Workers(1), fixtures.Elastic(1, 4), fixtures.Scaled(3)),
			pods: []*corev1.Pod{fixtures.Pod("a-worker-0", fixtures.Running())},
			want: outcome{Phase: v1.PhaseRunning, Created: []string{"a-worker-1", "a-worker-2"}, Ready: "1/3"},
		},
		"a worker that cannot be placed does not keep an elastic job from being done": {
			job:  fixtures.TrainingJob("a", fixtures.Workers(3), fixtures.Elastic(2, 4)),
			pods: []*corev1.Pod{fixtures.Pod("a-worker-0", fixtures.Succeeded()), fixtures.Pod("a-worker-1", fixtures.Succeeded()), fixtures.Pod("a-worker-2")},
			want: outcome{Phase: v1.PhaseSucceeded, Ready: "2/3"},
		},
		"an elastic job waits for workers that still write": {
			job:  fixtures.TrainingJob("a", fixtures.Elastic(1, 4)),
			pods: []*corev1.Pod{fixtures.Pod("a-worker-0", fixtures.Succeeded()), fixtures.Pod("a-worker-1", fixtures.Running())},
			want: outcome{Phase: v1.PhaseRunning, Ready: "2/2"},
		},
		"an elastic job is not done below its minimum": {
			job:  fixtures.TrainingJob("a", fixtures.Elastic(2, 4)),
			pods: []*corev1.Pod{fixtures.Pod("a-worker-0", fixtures.Succeeded()), fixtures.Pod("a-worker-1")},
			want: outcome{Phase: v1.PhaseCreating, Ready: "1/2"},
		},
		"an XGBoost job has succeeded when its master has": {
			job: fixtures.TrainingJob("a", fixtures.Master(), func(job *v1.TrainingJob) { job.Spec.Framework = v1.FrameworkXGBoost }),
			pods: []*corev1.Pod{
				fixtures.Pod("a-master-0", fixtures.Succeeded()), fixtures.Pod("a-worker-0", fixtures.Running()), fixtures.Pod("a-worker-1", fixtures.Running()),
			},
			want: outcome{Phase: v1.PhaseSucceeded, Ready: "3/3"},
		},
		"a JAX job has succeeded when all its workers have": {
			job:  fixtures.TrainingJob("a", func(job *v1.TrainingJob) { job.Spec.Framework = v1.FrameworkJAX }),
			pods: []*corev1.Pod{fixtures.Pod("a-worker-0", fixtures.Succeeded()), fixtures.Pod("a-worker-1", fixtures.Running())},
			want: outcome{Phase: v1.PhaseRunning, Ready: "2/2"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job, observed := started(tc.job), somePods(tc.pods...)
			before := []any{job.DeepCopy(), somePods(deepCopies(tc.pods)...)}
			result := Plan(job, observed, later)
			if diff := cmp.Diff(tc.want, outcomeOf(result), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Plan() mismatch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, []any{job, observed}); diff != "" {
				t.Errorf("Plan() changed its arguments (-before +after):\n%s", diff)
			}
			again := Plan(job, observed, later)
			if diff := cmp.Diff(result, again); diff != "" {
				t.Errorf("Plan() is not deterministic (-first +second):\n%s", diff)
			}
		})
	}
}

func TestGangIsNotPassedOverInSilence(t *testing.T) {
	job := fixtures.TrainingJob("a", func(job *v1.TrainingJob) { job.Spec.Gang = &v1.Gang{Scheduler: "volcano"} })
	result := Plan(job, plan.Observed{}, fixtures.Start)
	c := meta.FindStatusCondition(result.Status.Conditions, v1.TrainingJobGangScheduledCondition)
	if c == nil || c.Reason != v1.GangUnsupportedReason {
		t.Errorf("condition %+v", c)
	}
	if got := result.Create[0].(*corev1.Pod).Spec.SchedulerName; got != "volcano" {
		t.Errorf("schedulerName %q", got)
	}
}

func deepCopies(pods []*corev1.Pod) []*corev1.Pod {
	var copies []*corev1.Pod
	for _, pod := range pods {
		copies = append(copies, pod.DeepCopy())
	}
	return copies
}

// TestPlanChildren compares the children of each testdata/*.input.yaml with the
// golden file beside it.
func TestPlanChildren(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.input.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".input.yaml"), func(t *testing.T) {
			data, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			job := &v1.TrainingJob{}
			if err := yaml.UnmarshalStrict(data, job); err != nil {
				t.Fatal(err)
			}
			result := Plan(job, plan.Observed{}, fixtures.Start)
			var documents []string
			children := make([]any, 0, len(result.Apply)+len(result.Create))
			for _, child := range result.Apply {
				children = append(children, child)
			}
			for _, generated := range result.Generate {
				children = append(children, generated)
			}
			for _, child := range result.Create {
				children = append(children, child)
			}
			for _, child := range children {
				document, err := yaml.Marshal(child)
				if err != nil {
					t.Fatal(err)
				}
				documents = append(documents, string(document))
			}
			got, golden := strings.Join(documents, "---\n"), strings.Replace(input, ".input.", ".output.", 1)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("children mismatch (-want +got):\n%s", diff)
			}
		})
	}
}
