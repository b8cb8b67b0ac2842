package defaulting_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
)

// specs are written as users write them: as YAML.
func specOf(t testing.TB, text string) v1.TrainingJobSpec {
	t.Helper()
	var spec v1.TrainingJobSpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatalf("failed to decode the test's spec: %v\n%s", err, text)
	}
	return spec
}

func TestDefaultTrainingJob(t *testing.T) {
	tests := map[string]struct {
		spec string
		want string
	}{
		"a PyTorch job with nothing but images is spelt out": {
			spec: `
framework: PyTorch
roles:
- {name: master, template: {spec: {containers: [{name: pytorch, image: a}]}}}
- {name: WORKER, replicas: 3, template: {spec: {containers: [{name: log, image: b}, {name: pytorch, image: a}]}}}
`,
			want: `
framework: PyTorch
runPolicy: {suspend: false, cleanPodPolicy: None}
pytorch: {processesPerNode: auto}
roles:
- {name: Master, replicas: 1, restartPolicy: OnFailure, template: {spec: {containers: [
    {name: pytorch, image: a, ports: [{name: pytorchjob-port, containerPort: 23456, protocol: TCP}]}]}}}
- {name: Worker, replicas: 3, restartPolicy: OnFailure, template: {spec: {containers: [{name: log, image: b},
    {name: pytorch, image: a, ports: [{name: pytorchjob-port, containerPort: 23456, protocol: TCP}]}]}}}
`,
		},
		"a TensorFlow job gets TensorFlow's words": {
			spec: `
framework: TensorFlow
roles: [{name: ps, template: {spec: {containers: [{name: tensorflow, image: a}]}}}]
`,
			want: `
framework: TensorFlow
runPolicy: {suspend: false, cleanPodPolicy: None}
tensorflow: {successPolicy: Worker0, workers: Static}
roles:
- {name: PS, replicas: 1, restartPolicy: Never, template: {spec: {containers: [
    {name: tensorflow, image: a, ports: [{name: tfjob-port, containerPort: 2222, protocol: TCP}]}]}}}
`,
		},
		"an MPI job gets no port and a launcher that is tried again": {
			spec: `
framework: MPI
roles:
- {name: launcher, template: {spec: {containers: [{name: mpi, image: a}]}}}
- {name: Worker, template: {spec: {containers: [{name: mpi, image: a}]}}}
`,
			want: `
framework: MPI
runPolicy: {suspend: false, cleanPodPolicy: None}
mpi: {slotsPerWorker: 1, implementation: OpenMPI, sshAuthMountPath: /root/.ssh, launcherCreation: WaitForWorkersReady, launcher: LauncherOnly}
roles:
- {name: Launcher, replicas: 1, restartPolicy: OnFailure, template: {spec: {containers: [{name: mpi, image: a}]}}}
- {name: Worker, replicas: 1, restartPolicy: Never, template: {spec: {containers: [{name: mpi, image: a}]}}}
`,
		},
		"what the author said is kept": {
			spec: `
framework: PyTorch
runPolicy: {suspend: true, cleanPodPolicy: All, backoffLimit: 0}
pytorch: {processesPerNode: "2"}
roles:
- {name: Worker, replicas: 0, restartPolicy: ExitCode, template: {spec: {containers: [
    {name: pytorch, image: a, ports: [{name: pytorchjob-port, containerPort: 29501, protocol: UDP}]}]}}}
`,
			want: `
framework: PyTorch
runPolicy: {suspend: true, cleanPodPolicy: All, backoffLimit: 0}
pytorch: {processesPerNode: "2"}
roles:
- {name: Worker, replicas: 0, restartPolicy: ExitCode, template: {spec: {containers: [
    {name: pytorch, image: a, ports: [{name: pytorchjob-port, containerPort: 29501, protocol: UDP}]}]}}}
`,
		},
		"the framework's port number under another name is not declared twice": {
			spec: `
framework: JAX
roles: [{name: Worker, template: {spec: {containers: [{name: jax, image: a, ports: [{name: coordinator, containerPort: 6666}]}]}}}]
`,
			want: `
framework: JAX
runPolicy: {suspend: false, cleanPodPolicy: None}
roles: [{name: Worker, replicas: 1, restartPolicy: Never, template: {spec: {containers: [
    {name: jax, image: a, ports: [{name: coordinator, containerPort: 6666, protocol: TCP}]}]}}}]
`,
		},
		"the framework's port number on a side car is not declared twice": {
			spec: `
framework: XGBoost
roles: [{name: Master, template: {spec: {containers: [{name: xgboost, image: a}, {name: proxy, image: b, ports: [{containerPort: 9999}]}]}}}]
`,
			want: `
framework: XGBoost
runPolicy: {suspend: false, cleanPodPolicy: None}
roles: [{name: Master, replicas: 1, restartPolicy: Never, template: {spec: {containers: [{name: xgboost, image: a},
    {name: proxy, image: b, ports: [{containerPort: 9999, protocol: TCP}]}]}}}]
`,
		},
		"an accelerator asked for once is asked for on both sides, in init containers too": {
			spec: `
framework: PaddlePaddle
roles: [{name: Worker, template: {spec: {
  initContainers: [{name: warm, image: a, resources: {requests: {nvidia.com/gpu: 1, cpu: 1}}}],
  containers: [{name: paddle, image: a, ports: [{name: master, containerPort: 1, protocol: TCP}], resources: {limits: {amd.com/gpu: 2, memory: 1Gi}}}]}}}]
`,
			want: `
framework: PaddlePaddle
runPolicy: {suspend: false, cleanPodPolicy: None}
roles: [{name: Worker, replicas: 1, restartPolicy: OnFailure, template: {spec: {
  initContainers: [{name: warm, image: a, resources: {requests: {nvidia.com/gpu: 1, cpu: 1}, limits: {nvidia.com/gpu: 1}}}],
  containers: [{name: paddle, image: a, ports: [{name: master, containerPort: 1, protocol: TCP}],
    resources: {requests: {amd.com/gpu: 2}, limits: {amd.com/gpu: 2, memory: 1Gi}}}]}}}]
`,
		},
		"a role that client-side apply added again in lower case is dropped": {
			spec: `
framework: MPI
runPolicy: {suspend: false, cleanPodPolicy: None}
mpi: {slotsPerWorker: 1, implementation: OpenMPI, sshAuthMountPath: /root/.ssh, launcherCreation: WaitForWorkersReady, launcher: LauncherOnly}
roles:
- {name: Launcher, replicas: 1, restartPolicy: OnFailure, template: {spec: {containers: [{name: mpi, image: a}]}}}
- {name: launcher, template: {spec: {containers: [{name: mpi, image: a}]}}}
`,
			want: `
framework: MPI
runPolicy: {suspend: false, cleanPodPolicy: None}
mpi: {slotsPerWorker: 1, implementation: OpenMPI, sshAuthMountPath: /root/.ssh, launcherCreation: WaitForWorkersReady, launcher: LauncherOnly}
roles:
- {name: Launcher, replicas: 1, restartPolicy: OnFailure, template: {spec: {containers: [{name: mpi, image: a}]}}}
`,
		},
		"two roles of one name that differ are left for validation": {
			spec: `
framework: MPI
roles:
- {name: Launcher, template: {spec: {containers: [{name: mpi, image: a}]}}}
- {name: launcher, template: {spec: {containers: [{name: mpi, image: b}]}}}
`,
			want: `
framework: MPI
runPolicy: {suspend: false, cleanPodPolicy: None}
mpi: {slotsPerWorker: 1, implementation: OpenMPI, sshAuthMountPath: /root/.ssh, launcherCreation: WaitForWorkersReady, launcher: LauncherOnly}
roles:
- {name: Launcher, replicas: 1, restartPolicy: OnFailure, template: {spec: {containers: [{name: mpi, image: a}]}}}
- {name: launcher, replicas: 1, restartPolicy: OnFailure, template: {spec: {containers: [{name: mpi, image: b}]}}}
`,
		},
		"an unknown framework is left alone": {
			spec: `{framework: Torch, roles: [{name: master, template: {}}]}`,
			want: `{framework: Torch, roles: [{name: master, template: {}}]}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := &v1.TrainingJob{Spec: specOf(t, tc.spec)}
			defaulting.DefaultTrainingJob(job)
			if diff := cmp.Diff(specOf(t, tc.want), job.Spec, equalQuantities); diff != "" {
				t.Errorf("unexpected defaults (-want +got):\n%s", diff)
			}
			once := job.DeepCopy()
			defaulting.DefaultTrainingJob(job)
			if diff := cmp.Diff(once, job, equalQuantities); diff != "" {
				t.Errorf("defaulting twice changed the job (-once +twice):\n%s", diff)
			}
		})
	}
}

var equalQuantities = cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })

func TestDefaultElastic(t *testing.T) {
	number := func(n int32) *int32 { return &n }
	tests := map[string]struct {
		replicas *int32
		elastic  v1.Elastic
		want     v1.Elastic
		wantRole int32
	}{
		"without bounds both are the number of workers": {
			replicas: number(3), elastic: v1.Elastic{},
			want: v1.Elastic{Replicas: number(3), MinReplicas: number(3), MaxReplicas: number(3)}, wantRole: 3,
		},
		"without any number there is one worker": {
			want: v1.Elastic{Replicas: number(1), MinReplicas: number(1), MaxReplicas: number(1)}, wantRole: 1,
		},
		"one bound alone is both": {
			elastic: v1.Elastic{MaxReplicas: number(8)},
			want:    v1.Elastic{Replicas: number(8), MinReplicas: number(8), MaxReplicas: number(8)}, wantRole: 8,
		},
		"a missing upper bound makes room for the workers that are there": {
			replicas: number(4), elastic: v1.Elastic{MinReplicas: number(2)},
			want: v1.Elastic{Replicas: number(4), MinReplicas: number(2), MaxReplicas: number(4)}, wantRole: 4,
		},
		"a missing lower bound makes room for the workers that are there": {
			replicas: number(4), elastic: v1.Elastic{MaxReplicas: number(8)},
			want: v1.Elastic{Replicas: number(4), MinReplicas: number(4), MaxReplicas: number(8)}, wantRole: 4,
		},
		"workers left out start at the lower bound": {
			elastic: v1.Elastic{MinReplicas: number(2), MaxReplicas: number(8)},
			want:    v1.Elastic{Replicas: number(2), MinReplicas: number(2), MaxReplicas: number(8)}, wantRole: 2,
		},
		"a manifest applied again after a scaling changes nothing": {
			elastic: v1.Elastic{Replicas: number(6), MinReplicas: number(2), MaxReplicas: number(8)},
			want:    v1.Elastic{Replicas: number(6), MinReplicas: number(2), MaxReplicas: number(8)}, wantRole: 2,
		},
		"a number outside the bounds is not clamped": {
			replicas: number(9), elastic: v1.Elastic{MinReplicas: number(2), MaxReplicas: number(8)},
			want: v1.Elastic{Replicas: number(9), MinReplicas: number(2), MaxReplicas: number(8)}, wantRole: 9,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := &v1.TrainingJob{Spec: v1.TrainingJobSpec{
				Framework: v1.FrameworkPyTorch,
				Roles:     []v1.Role{{Name: "worker", Replicas: tc.replicas}},
				Elastic:   &tc.elastic,
			}}
			defaulting.DefaultTrainingJob(job)
			if diff := cmp.Diff(&tc.want, job.Spec.Elastic); diff != "" {
				t.Errorf("unexpected elastic (-want +got):\n%s", diff)
			}
			if got := *job.Spec.Roles[0].Replicas; got != tc.wantRole {
				t.Errorf("got %d replicas of the role, want %d", got, tc.wantRole)
			}
		})
	}
}

func TestDefaultTrainingJobBearsFragments(t *testing.T) {
	port := corev1.ContainerPort{}
	for name, job := range map[string]*v1.TrainingJob{
		"nothing":         nil,
		"an empty object": {},
		"no roles":        {Spec: v1.TrainingJobSpec{Framework: v1.FrameworkPyTorch, Elastic: &v1.Elastic{}}},
		"no containers":   {Spec: v1.TrainingJobSpec{Framework: v1.FrameworkMPI, Roles: []v1.Role{{}}}},
		"empty ports": {Spec: v1.TrainingJobSpec{Framework: v1.FrameworkJAX, Roles: []v1.Role{{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "jax", Ports: []corev1.ContainerPort{port}}}}}}}}},
	} {
		t.Run(name, func(t *testing.T) { defaulting.DefaultTrainingJob(job) })
	}
}
