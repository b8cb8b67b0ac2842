package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

const (
	paddle = `template: {spec: {containers: [{name: paddle, image: a}]}}`
	jax    = `template: {spec: {containers: [{name: jax, image: a}]}}`
)

// edits are edits of jobs: each replaces one text of the stored job by another,
// and is refused at fields, or at none.
var edits = map[string]struct {
	job, old, new string
	want          []string
}{
	"more PyTorch workers": {
		job: `{framework: PyTorch, roles: [{name: Master, ` + torch + `}, {name: Worker, replicas: 1, ` + torch + `}]}`,
		old: "replicas: 1", new: "replicas: 3", want: []string{"spec.roles[1].replicas"},
	},
	"more PyTorch workers where their number was left out": {
		job: `{framework: PyTorch, roles: [{name: Worker, ` + torch + `}]}`,
		old: "Worker,", new: "Worker, replicas: 3,", want: []string{"spec.roles[0].replicas"},
	},
	"a number of PyTorch workers that was left out": {
		job: `{framework: PyTorch, roles: [{name: Worker, ` + torch + `}]}`, old: "Worker,", new: "Worker, replicas: 1,",
	},
	"more JAX workers": {
		job: `{framework: JAX, roles: [{name: Worker, replicas: 1, ` + jax + `}]}`,
		old: "replicas: 1", new: "replicas: 3", want: []string{"spec.roles[0].replicas"},
	},
	"fewer PaddlePaddle workers": {
		job: `{framework: PaddlePaddle, roles: [{name: Worker, replicas: 3, ` + paddle + `}]}`,
		old: "replicas: 3", new: "replicas: 1", want: []string{"spec.roles[0].replicas"},
	},
	"more XGBoost workers": {
		job: `{framework: XGBoost, roles: [{name: Master, ` + boost + `}, {name: Worker, replicas: 1, ` + boost + `}]}`,
		old: "replicas: 1", new: "replicas: 3", want: []string{"spec.roles[1].replicas"},
	},
	"more parameter servers": {
		job: `{framework: TensorFlow, tensorflow: {workers: Dynamic}, roles: [{name: PS, replicas: 1, ` + tensor + `}, {name: Worker, ` + tensor + `}]}`,
		old: "replicas: 1", new: "replicas: 3", want: []string{"spec.roles[0].replicas"},
	},
	"more fixed TensorFlow workers": {
		job: `{framework: TensorFlow, roles: [{name: PS, ` + tensor + `}, {name: Worker, replicas: 1, ` + tensor + `}]}`,
		old: "replicas: 1", new: "replicas: 3", want: []string{"spec.roles[1].replicas"},
	},
	"more TensorFlow workers that come and go": {
		job: `{framework: TensorFlow, tensorflow: {workers: Dynamic}, roles: [{name: PS, ` + tensor + `}, {name: Worker, replicas: 1, ` + tensor + `}]}`,
		old: "replicas: 1", new: "replicas: 3",
	},
	"more MPI workers, which the launcher reads anew": {
		job: `{framework: MPI, roles: [{name: Launcher, ` + mpi + `}, {name: Worker, replicas: 1, ` + mpi + `}]}`,
		old: "replicas: 1", new: "replicas: 3",
	},
	"another count of an elastic job": {
		job: `{framework: PyTorch, elastic: {replicas: 1, minReplicas: 1, maxReplicas: 3}, roles: [{name: Worker, ` + torch + `}]}`,
		old: "{replicas: 1", new: "{replicas: 3",
	},
	"the count of an elastic job, as v1alpha1 writes it": {
		job: `{framework: PyTorch, elastic: {minReplicas: 1, maxReplicas: 3}, roles: [{name: Worker, replicas: 1, ` + torch + `}]}`,
		old: ", replicas: 1", new: ", replicas: 3",
	},
	"metrics of an elastic job": {
		job: `{framework: PyTorch, elastic: {minReplicas: 1, maxReplicas: 3}, roles: [{name: Worker, ` + torch + `}]}`,
		old: "{minReplicas", new: "{metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}], minReplicas",
	},
	"bounds that PyTorch's pods are told": {
		job: `{framework: PyTorch, elastic: {minReplicas: 1, maxReplicas: 3}, roles: [{name: Worker, replicas: 2, ` + torch + `}]}`,
		old: "minReplicas: 1, maxReplicas: 3", new: "minReplicas: 2, maxReplicas: 4",
		want: []string{"spec.elastic.minReplicas", "spec.elastic.maxReplicas"},
	},
	"bounds that MPI's pods are not told": {
		job: `{framework: MPI, elastic: {minReplicas: 1, maxReplicas: 3}, roles: [{name: Launcher, ` + mpi + `}, {name: Worker, replicas: 2, ` + mpi + `}]}`,
		old: "minReplicas: 1, maxReplicas: 3", new: "minReplicas: 2, maxReplicas: 4",
	},
	"elastic from now on": {
		job: `{framework: PyTorch, roles: [{name: Worker, ` + torch + `}]}`,
		old: "PyTorch,", new: "PyTorch, elastic: {minReplicas: 1, maxReplicas: 3},", want: []string{"spec.elastic"},
	},
	"elastic no longer": {
		job: `{framework: JAX, elastic: {minReplicas: 1, maxReplicas: 3}, roles: [{name: Worker, ` + jax + `}]}`,
		old: "elastic: {minReplicas: 1, maxReplicas: 3},", new: "", want: []string{"spec.elastic"},
	},
	"a role more": {
		job: `{framework: PyTorch, roles: [{name: Worker, ` + torch + `}]}`,
		old: "roles: [", new: "roles: [{name: Master, " + torch + "}, ", want: []string{"spec.roles[0]"},
	},
	"a role less": {
		job: `{framework: MPI, roles: [{name: Launcher, ` + mpi + `}, {name: Worker, ` + mpi + `}]}`,
		old: ", {name: Worker, " + mpi + "}", new: "", want: []string{"spec.roles"},
	},
	"a role in the place of another": {
		job: `{framework: TensorFlow, roles: [{name: Chief, ` + tensor + `}]}`,
		old: "Chief", new: "Master", want: []string{"spec.roles[0]", "spec.roles"},
	},
	"roles in another order": {
		job: `{framework: PyTorch, roles: [{name: Worker, ` + torch + `}, {name: Master, ` + torch + `}]}`,
		old: `[{name: Worker, ` + torch + `}, {name: Master, ` + torch + `}]`, new: `[{name: Master, ` + torch + `}, {name: Worker, ` + torch + `}]`,
	},
	"how many processes": {
		job: `{framework: PyTorch, roles: [{name: Worker, ` + torch + `}]}`,
		old: "PyTorch,", new: `PyTorch, pytorch: {processesPerNode: "8", maxRestarts: 3},`, want: []string{"spec.pytorch.processesPerNode", "spec.pytorch.maxRestarts"},
	},
	"what rendezvous is for, where there was none": {
		job: `{framework: PyTorch, roles: [{name: Worker, ` + torch + `}]}`,
		old: "PyTorch,", new: "PyTorch, pytorch: {rendezvous: {}},", want: []string{"spec.pytorch.rendezvous"},
	},
	"what an elastic rendezvous means anyway": {
		job: `{framework: PyTorch, elastic: {minReplicas: 1, maxReplicas: 3}, roles: [{name: Worker, ` + torch + `}]}`,
		old: "PyTorch,", new: "PyTorch, pytorch: {processesPerNode: auto, rendezvous: {backend: c10d, mode: Shared}},",
	},
	"another rendezvous": {
		job: `{framework: PyTorch, elastic: {minReplicas: 1, maxReplicas: 1}, pytorch: {rendezvous: {host: a}}, roles: [{name: Worker, ` + torch + `}]}`,
		old: "host: a", new: "backend: etcd, host: b, port: 1, id: a, options: [{key: a}], mode: Standalone",
		want: []string{
			"spec.pytorch.rendezvous.backend", "spec.pytorch.rendezvous.host", "spec.pytorch.rendezvous.port",
			"spec.pytorch.rendezvous.id", "spec.pytorch.rendezvous.options", "spec.pytorch.rendezvous.mode",
		},
	},
	"workers that come and go from now on": {
		job: `{framework: TensorFlow, roles: [{name: Worker, ` + tensor + `}]}`,
		old: "TensorFlow,", new: "TensorFlow, tensorflow: {workers: Dynamic},", want: []string{"spec.tensorflow.workers"},
	},
	"another success, of which no pod is told": {
		job: `{framework: TensorFlow, roles: [{name: Worker, ` + tensor + `}]}`,
		old: "TensorFlow,", new: "TensorFlow, tensorflow: {successPolicy: AllWorkers},",
	},
	"all of MPI": {
		job: `{framework: MPI, roles: [{name: Launcher, ` + mpi + `}]}`,
		old: "MPI,", new: "MPI, mpi: {slotsPerWorker: 2, implementation: Intel, sshAuthMountPath: /keys, launcher: LauncherAsWorker, mainContainer: mpi, transport: Exec, kubectlImage: k},",
		want: []string{
			"spec.mpi.slotsPerWorker", "spec.mpi.implementation", "spec.mpi.sshAuthMountPath", "spec.mpi.launcher",
			"spec.mpi.mainContainer", "spec.mpi.transport", "spec.mpi.kubectlImage",
		},
	},
	"a launcher that waits no longer": {
		job: `{framework: MPI, roles: [{name: Launcher, ` + mpi + `}]}`,
		old: "MPI,", new: "MPI, mpi: {launcherCreation: AtStartup},",
	},
}

// TestPodsOfOneKind holds that what a pod is made of changes only while there
// are no pods, in one write with suspending or resuming too, and never again
// once the job has finished.
func TestPodsOfOneKind(t *testing.T) {
	const running, finished = "while the job is not suspended: suspend it first by runPolicy.suspend, or make a new job",
		"any more, as the job has finished: make a new job"
	suspend := func(spec string) string {
		return strings.Replace(spec, "{", "{runPolicy: {suspend: true}, ", 1)
	}
	for name, tc := range edits {
		t.Run(name, func(t *testing.T) {
			edited := strings.Replace(tc.job, tc.old, tc.new, 1)
			if edited == tc.job {
				t.Fatal("the edit changes nothing")
			}
			check := func(what, old, spec string, phase v1.Phase, until string, want []string, conditions ...metav1.Condition) {
				t.Helper()
				stored := jobOf(t, "spec: "+old)
				stored.Status.Phase, stored.Status.Conditions = phase, conditions
				var got []string
				for _, err := range validation.ValidateTrainingJob(stored, jobOf(t, "spec: "+spec)) {
					got = append(got, err.Field)
					if !strings.HasSuffix(err.Detail, until) {
						t.Errorf("%s: %v does not say until when: %s", what, err, until)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
			check("of a running job", tc.job, edited, v1.PhaseRunning, running, tc.want)
			check("as it is suspended", tc.job, suspend(edited), v1.PhaseRunning, "", nil)
			check("while it is suspended", suspend(tc.job), suspend(edited), v1.PhaseSuspended, "", nil)
			check("as it is resumed", suspend(tc.job), edited, v1.PhaseSuspended, "", nil)
			check("of one that was stored although it is invalid", tc.job, edited, v1.PhasePending, "", nil,
				metav1.Condition{Type: v1.InvalidCondition, Status: metav1.ConditionTrue, Reason: v1.InvalidSpecReason})
			check("of one whose pods are forbidden", tc.job, edited, v1.PhaseRunning, running, tc.want,
				metav1.Condition{Type: v1.InvalidCondition, Status: metav1.ConditionTrue, Reason: v1.ChildForbiddenReason})
			check("of one that has succeeded", tc.job, edited, v1.PhaseSucceeded, finished, tc.want)
			check("of one that has failed, and is suspended", suspend(tc.job), suspend(edited), v1.PhaseFailed, finished, tc.want)
		})
	}
}
