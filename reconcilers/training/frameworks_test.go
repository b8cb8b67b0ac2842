package training

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// TestFrameworksOutcome goes through what makes a job of each framework wait,
// run, succeed or fail.
func TestFrameworksOutcome(t *testing.T) {
	tf := func(mods ...fixtures.JobMod) *v1.TrainingJob {
		return fixtures.TrainingJob("a", append(mods, fixtures.Framework(v1.FrameworkTensorFlow), fixtures.Restart(v1.RestartNever))...)
	}
	tfSpec := func(success v1.SuccessPolicy, workers v1.WorkerMembership) fixtures.JobMod {
		return func(job *v1.TrainingJob) {
			job.Spec.TensorFlow = &v1.TensorFlow{SuccessPolicy: success, Workers: workers}
		}
	}
	mpi := func(mods ...fixtures.JobMod) *v1.TrainingJob {
		return fixtures.TrainingJob("a", append([]fixtures.JobMod{
			fixtures.Role(v1.RoleLauncher, 1), fixtures.Framework(v1.FrameworkMPI), fixtures.Restart(v1.RestartNever)}, mods...)...)
	}
	creation := func(creation v1.LauncherCreation) fixtures.JobMod {
		return func(job *v1.TrainingJob) { job.Spec.MPI = &v1.MPI{LauncherCreation: creation} }
	}
	named := func(container string, mods ...fixtures.PodMod) []fixtures.PodMod {
		return append([]fixtures.PodMod{func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = container }}, mods...)
	}
	pod := func(container, name string, mods ...fixtures.PodMod) *corev1.Pod {
		return fixtures.Pod("a-"+name, named(container, mods...)...)
	}
	notReady := func(pod *corev1.Pod) { pod.Status.Conditions = nil }

	tests := map[string]struct {
		job  *v1.TrainingJob
		pods []*corev1.Pod
		want outcome
	}{
		"a TensorFlow chief ends the job, whatever the others do": {
			job: tf(fixtures.Role(v1.RoleChief, 1)),
			pods: []*corev1.Pod{pod("tensorflow", "chief-0", fixtures.Succeeded()),
				pod("tensorflow", "worker-0", fixtures.Running()), pod("tensorflow", "worker-1", fixtures.Failed(1))},
			want: outcome{Phase: v1.PhaseSucceeded, Ready: "2/3"},
		},
		"worker 0 ends a TensorFlow job without chief": {
			job:  tf(),
			pods: []*corev1.Pod{pod("tensorflow", "worker-0", fixtures.Succeeded()), pod("tensorflow", "worker-1", fixtures.Running())},
			want: outcome{Phase: v1.PhaseSucceeded, Ready: "2/2"},
		},
		"another worker does not": {
			job:  tf(),
			pods: []*corev1.Pod{pod("tensorflow", "worker-0", fixtures.Running()), pod("tensorflow", "worker-1", fixtures.Succeeded())},
			want: outcome{Phase: v1.PhaseRunning, Ready: "2/2"},
		},
		"AllWorkers waits for all": {
			job:  tf(tfSpec(v1.SuccessAllWorkers, v1.WorkersStatic)),
			pods: []*corev1.Pod{pod("tensorflow", "worker-0", fixtures.Succeeded()), pod("tensorflow", "worker-1", fixtures.Running())},
			want: outcome{Phase: v1.PhaseRunning, Ready: "2/2"},
		},
		"a parameter server that fails fails the job under Never": {
			job:  tf(fixtures.Workers(1), fixtures.Role(v1.RolePS, 1)),
			pods: []*corev1.Pod{pod("tensorflow", "worker-0", fixtures.Running()), pod("tensorflow", "ps-0", fixtures.Failed(1))},
			want: outcome{Phase: v1.PhaseFailed, Reason: v1.TrainingJobPodFailedReason, Ready: "1/2",
				Message: "pod a-ps-0 ended with exit code 1, and restartPolicy Never does not restart it"},
		},
		"an evaluator that fails does not": {
			job:  tf(fixtures.Workers(1), fixtures.Role(v1.RoleEvaluator, 1)),
			pods: []*corev1.Pod{pod("tensorflow", "worker-0", fixtures.Running()), pod("tensorflow", "evaluator-0", fixtures.Failed(1))},
			want: outcome{Phase: v1.PhaseRunning, Ready: "1/2"},
		},
		"a dynamic worker may fail": {
			job:  tf(tfSpec(v1.SuccessWorker0, v1.WorkersDynamic)),
			pods: []*corev1.Pod{pod("tensorflow", "worker-0", fixtures.Running()), pod("tensorflow", "worker-1", fixtures.Failed(1))},
			want: outcome{Phase: v1.PhaseRunning, Ready: "1/2"},
		},
		"but not the one whose success is waited for": {
			job:  tf(tfSpec(v1.SuccessWorker0, v1.WorkersDynamic)),
			pods: []*corev1.Pod{pod("tensorflow", "worker-0", fixtures.Failed(1)), pod("tensorflow", "worker-1", fixtures.Running())},
			want: outcome{Phase: v1.PhaseFailed, Reason: v1.TrainingJobPodFailedReason, Ready: "1/2",
				Message: "pod a-worker-0 ended with exit code 1, and restartPolicy Never does not restart it"},
		},
		"dynamic workers that have failed are not waited for": {
			job:  tf(tfSpec(v1.SuccessAllWorkers, v1.WorkersDynamic)),
			pods: []*corev1.Pod{pod("tensorflow", "worker-0", fixtures.Failed(1)), pod("tensorflow", "worker-1", fixtures.Succeeded())},
			want: outcome{Phase: v1.PhaseSucceeded, Ready: "1/2"},
		},
		"a job whose dynamic workers have all failed has failed": {
			job:  tf(tfSpec(v1.SuccessAllWorkers, v1.WorkersDynamic), fixtures.Workers(1)),
			pods: []*corev1.Pod{pod("tensorflow", "worker-0", fixtures.Failed(2))},
			want: outcome{Phase: v1.PhaseFailed, Reason: v1.TrainingJobPodFailedReason, Ready: "0/1",
				Message: "pod a-worker-0 ended with exit code 2, and restartPolicy Never does not restart it"},
		},
		"an MPI launcher waits for its workers": {
			job:  mpi(),
			want: outcome{Phase: v1.PhaseCreating, Created: []string{"a-worker-0", "a-worker-1"}, Ready: "0/3"},
		},
		"running is not ready": {
			job:  mpi(),
			pods: []*corev1.Pod{pod("mpi", "worker-0", fixtures.Running()), pod("mpi", "worker-1", fixtures.Running(), notReady)},
			want: outcome{Phase: v1.PhaseCreating, Ready: "1/3"},
		},
		"it is made when all are ready": {
			job:  mpi(),
			pods: []*corev1.Pod{pod("mpi", "worker-0", fixtures.Running()), pod("mpi", "worker-1", fixtures.Running())},
			want: outcome{Phase: v1.PhaseCreating, Created: []string{"a-launcher-0"}, Ready: "2/3"},
		},
		"it stays when one is not any more": {
			job:  mpi(),
			pods: []*corev1.Pod{pod("mpi", "launcher-0", fixtures.Running()), pod("mpi", "worker-0", fixtures.Running())},
			want: outcome{Phase: v1.PhaseRunning, Created: []string{"a-worker-1"}, Ready: "2/3"},
		},
		"the least number of workers is enough for an elastic job": {
			job:  mpi(fixtures.Elastic(1, 4)),
			pods: []*corev1.Pod{pod("mpi", "worker-0", fixtures.Running()), pod("mpi", "worker-1")},
			want: outcome{Phase: v1.PhaseCreating, Created: []string{"a-launcher-0"}, Ready: "1/3"},
		},
		"AtStartup makes the launcher at once": {
			job:  mpi(creation(v1.LauncherAtStartup)),
			want: outcome{Phase: v1.PhaseCreating, Created: []string{"a-launcher-0", "a-worker-0", "a-worker-1"}, Ready: "0/3"},
		},
		"a launcher without workers waits for nobody": {
			job:  mpi(fixtures.Workers(0)),
			want: outcome{Phase: v1.PhaseCreating, Created: []string{"a-launcher-0"}, Ready: "0/1"},
		},
		"a worker that fails before the launcher is there fails the job": {
			job:  mpi(fixtures.Workers(1)),
			pods: []*corev1.Pod{pod("mpi", "worker-0", fixtures.Failed(255))},
			want: outcome{Phase: v1.PhaseFailed, Reason: v1.TrainingJobPodFailedReason, Ready: "0/2",
				Message: "pod a-worker-0 ended with exit code 255, and restartPolicy Never does not restart it"},
		},
		"an MPI job is done when its launcher is": {
			job:  mpi(fixtures.Workers(1)),
			pods: []*corev1.Pod{pod("mpi", "launcher-0", fixtures.Succeeded()), pod("mpi", "worker-0", fixtures.Running())},
			want: outcome{Phase: v1.PhaseSucceeded, Ready: "2/2"},
		},
		"a PaddlePaddle master ends the job": {
			job:  fixtures.TrainingJob("a", fixtures.Master(), fixtures.Framework(v1.FrameworkPaddlePaddle), fixtures.Workers(1)),
			pods: []*corev1.Pod{pod("paddle", "master-0", fixtures.Succeeded()), pod("paddle", "worker-0", fixtures.Running())},
			want: outcome{Phase: v1.PhaseSucceeded, Ready: "2/2"},
		},
		"without one all workers must be done": {
			job:  fixtures.TrainingJob("a", fixtures.Framework(v1.FrameworkPaddlePaddle)),
			pods: []*corev1.Pod{pod("paddle", "worker-0", fixtures.Succeeded()), pod("paddle", "worker-1", fixtures.Running())},
			want: outcome{Phase: v1.PhaseRunning, Ready: "2/2"},
		},
		"an XGBoost worker that fails is replaced under OnFailure": {
			job:  fixtures.TrainingJob("a", fixtures.Master(), fixtures.Framework(v1.FrameworkXGBoost), fixtures.Workers(1)),
			pods: []*corev1.Pod{pod("xgboost", "master-0", fixtures.Running()), pod("xgboost", "worker-0", fixtures.Failed(1))},
			want: outcome{Phase: v1.PhaseRestarting, Deleted: []string{"a-worker-0"}, Restarts: 1, Ready: "1/2"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			result := Plan(started(tc.job), somePods(tc.pods...), later)
			if diff := cmp.Diff(tc.want, outcomeOf(result), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Plan() mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTFConfigIsRead holds TF_CONFIG against what TensorFlow reads: every task
// is in its own cluster at its index, but for the evaluator, which is outside.
func TestTFConfigIsRead(t *testing.T) {
	for _, membership := range []v1.WorkerMembership{v1.WorkersStatic, v1.WorkersDynamic} {
		job := fixtures.TrainingJob("a", fixtures.Role(v1.RoleChief, 1), fixtures.Role(v1.RolePS, 2), fixtures.Role(v1.RoleEvaluator, 1),
			fixtures.Workers(3), fixtures.Framework(v1.FrameworkTensorFlow))
		job.Spec.TensorFlow = &v1.TensorFlow{Workers: membership}
		for _, child := range Plan(job, plan.Observed{}, fixtures.Start).Create {
			pod := child.(*corev1.Pod)
			var config struct {
				Cluster map[string]any
				Task    struct {
					Type  string
					Index int
				}
			}
			if err := json.Unmarshal([]byte(value(pod, "TF_CONFIG")), &config); err != nil {
				t.Fatal(err)
			}
			if pod.Name != "a-"+config.Task.Type+"-"+itoa(int32(config.Task.Index)) {
				t.Errorf("pod %s is told that it is %+v", pod.Name, config.Task)
			}
			if config.Cluster["evaluator"] != nil {
				t.Errorf("pod %s: the evaluator is in the cluster", pod.Name)
			}
			if config.Task.Type == "evaluator" {
				continue
			}
			var own any
			switch tasks := config.Cluster[config.Task.Type].(type) {
			case []any:
				own = tasks[config.Task.Index]
			case map[string]any:
				own = tasks[itoa(int32(config.Task.Index))]
			}
			if own != pod.Name+".team-a.svc:23456" {
				t.Errorf("pod %s is at %v in its cluster", pod.Name, own)
			}
		}
	}
}

// value gives a variable of the first container.
func value(pod *corev1.Pod, name string) string {
	for _, env := range pod.Spec.Containers[0].Env {
		if env.Name == name {
			return env.Value
		}
	}
	return ""
}

// TestInjectedValuesWin sets every variable that a framework injects to
// something else in the template, and others beside it.
func TestInjectedValuesWin(t *testing.T) {
	for _, framework := range []v1.Framework{
		v1.FrameworkPyTorch, v1.FrameworkTensorFlow, v1.FrameworkMPI, v1.FrameworkPaddlePaddle, v1.FrameworkXGBoost, v1.FrameworkJAX,
	} {
		t.Run(string(framework), func(t *testing.T) {
			leader := v1.RoleMaster
			switch framework {
			case v1.FrameworkMPI:
				leader = v1.RoleLauncher
			case v1.FrameworkJAX:
				leader = v1.RoleWorker
			}
			mods := []fixtures.JobMod{fixtures.Framework(framework)}
			if leader != v1.RoleWorker {
				mods = append([]fixtures.JobMod{fixtures.Role(leader, 1)}, mods...)
			}
			job := fixtures.TrainingJob("a", append(mods, func(job *v1.TrainingJob) {
				if framework == v1.FrameworkMPI {
					job.Spec.MPI = &v1.MPI{LauncherCreation: v1.LauncherAtStartup}
				}
			})...)
			want := Plan(job, plan.Observed{}, fixtures.Start).Create
			for i := range job.Spec.Roles {
				main := &job.Spec.Roles[i].Template.Spec.Containers[0]
				for _, env := range want[0].(*corev1.Pod).Spec.Containers[0].Env {
					main.Env = append(main.Env, corev1.EnvVar{Name: env.Name, Value: "the user's"})
				}
				for _, child := range want[1:] {
					for _, env := range child.(*corev1.Pod).Spec.Containers[0].Env {
						main.Env = append(main.Env, corev1.EnvVar{Name: env.Name, Value: "the user's"})
					}
				}
				main.Env = append(main.Env, corev1.EnvVar{Name: "SEED", Value: "7"})
			}
			for i, child := range Plan(job, plan.Observed{}, fixtures.Start).Create {
				got := child.(*corev1.Pod).Spec.Containers[0].Env
				names := map[string]int{}
				for _, env := range got {
					names[env.Name]++
				}
				for _, env := range want[i].(*corev1.Pod).Spec.Containers[0].Env {
					if found := value(child.(*corev1.Pod), env.Name); found != env.Value || names[env.Name] != 1 {
						t.Errorf("%s: %s=%q %d times, want %q once", child.GetName(), env.Name, found, names[env.Name], env.Value)
					}
				}
				if value(child.(*corev1.Pod), "SEED") != "7" {
					t.Errorf("%s lost the user's SEED", child.GetName())
				}
			}
		})
	}
}

// TestSSHKey lets OpenSSH itself read what the generator made.
func TestSSHKey(t *testing.T) {
	job := fixtures.TrainingJob("a", fixtures.Role(v1.RoleLauncher, 1), fixtures.Framework(v1.FrameworkMPI))
	result := Plan(job, plan.Observed{}, fixtures.Start)
	if len(result.Generate) != 1 || result.Generate[0].Generator != sshKeyGenerator {
		t.Fatalf("generates %+v", result.Generate)
	}
	secret := result.Generate[0].Child.(*corev1.Secret)
	if len(secret.Data) > 0 {
		t.Errorf("the plan has content of its own in the secret")
	}
	if err := generateSSHKey(secret); err != nil {
		t.Fatal(err)
	}
	other := secret.DeepCopy()
	if err := generateSSHKey(other); err != nil || bytes.Equal(other.Data[sshPublicKey], secret.Data[sshPublicKey]) {
		t.Errorf("a second key is the same: %v", err)
	}
	observed := plan.Observed{Children: []plan.Object{secret}}
	if again := Plan(job, observed, later); len(again.Generate) > 0 {
		t.Errorf("a key that is there is made again")
	}
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("there is no ssh-keygen to read the key with")
	}
	file := filepath.Join(t.TempDir(), "id_rsa")
	if err := os.WriteFile(file, secret.Data[corev1.SSHAuthPrivateKey], 0o600); err != nil {
		t.Fatal(err)
	}
	public, err := exec.CommandContext(t.Context(), keygen, "-y", "-f", file).CombinedOutput()
	if err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, public)
	}
	if got, want := strings.Fields(string(public))[:2], strings.Fields(string(secret.Data[sshPublicKey])); !cmp.Equal(want, got) {
		t.Errorf("OpenSSH derives the public key %v, the secret has %v", got, want)
	}
}

// TestMPIHostsFollowTheWorkers: the script finds the workers that run, the
// host file names all that are wanted.
func TestMPIHostsFollowTheWorkers(t *testing.T) {
	job := fixtures.TrainingJob("a", fixtures.Role(v1.RoleLauncher, 1), fixtures.Framework(v1.FrameworkMPI), fixtures.Elastic(1, 3), fixtures.Scaled(3))
	job.Spec.MPI = &v1.MPI{SlotsPerWorker: new(int32(4)), Launcher: v1.LauncherAsWorker}
	result := Plan(job, somePods(fixtures.Pod("a-worker-0", fixtures.Running()), fixtures.Pod("a-worker-1"), fixtures.Pod("a-worker-2", fixtures.Running())), later)
	var data map[string]string
	for _, child := range result.Apply {
		if config, ok := child.(*corev1ac.ConfigMapApplyConfiguration); ok {
			data = config.Data
		}
	}
	want := map[string]string{
		mpiHostfile: "a-launcher-0 slots=4\na-worker-0 slots=4\na-worker-1 slots=4\na-worker-2 slots=4\n",
		mpiDiscover: "#!/bin/sh\necho a-worker-0:4\necho a-worker-2:4\n",
	}
	if diff := cmp.Diff(want, data); diff != "" {
		t.Errorf("config map mismatch (-want +got):\n%s", diff)
	}
}

// TestSuppliesGoWithTheJob: suspended, and finished with nothing left running,
// a job keeps no key.
func TestSuppliesGoWithTheJob(t *testing.T) {
	job := fixtures.TrainingJob("a", fixtures.Role(v1.RoleLauncher, 1), fixtures.Framework(v1.FrameworkMPI))
	secret := &corev1.Secret{}
	secret.Name, secret.UID = "a-ssh", "secret"
	config := &corev1.ConfigMap{}
	config.Name, config.UID = "a-config", "config"
	launcher := fixtures.Pod("a-launcher-0", fixtures.Succeeded())
	for policy, want := range map[v1.CleanPodPolicy]int{v1.CleanPodAll: 2, v1.CleanPodRunning: 2, v1.CleanPodNone: 0} {
		job := started(job.DeepCopy())
		job.Spec.RunPolicy.CleanPodPolicy = policy
		result := Plan(job, plan.Observed{Children: []plan.Object{launcher, secret, config}}, later)
		got := 0
		for _, deletion := range result.Delete {
			if isSupply(deletion.Child) {
				got++
			}
		}
		if got != want {
			t.Errorf("cleanPodPolicy %s deletes %d supplies, want %d", policy, got, want)
		}
	}
	job.Spec.RunPolicy.Suspend = new(true)
	if result := Plan(job, plan.Observed{Children: []plan.Object{secret, config}}, later); len(result.Delete) != 2 {
		t.Errorf("suspending deletes %d children, want 2", len(result.Delete))
	}
}

// TestEmptyRendezvousOptions: a list that is there and empty sets nothing.
func TestEmptyRendezvousOptions(t *testing.T) {
	job := fixtures.TrainingJob("a", fixtures.Elastic(1, 2))
	job.Spec.PyTorch.Rendezvous = &v1.Rendezvous{Options: []v1.RendezvousOption{}}
	for _, child := range Plan(job, plan.Observed{}, fixtures.Start).Create {
		for _, env := range child.(*corev1.Pod).Spec.Containers[0].Env {
			if env.Name == "PET_RDZV_CONF" {
				t.Errorf("%s has %s=%q", child.GetName(), env.Name, env.Value)
			}
		}
	}
}
