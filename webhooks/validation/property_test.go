package validation_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/randfill"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

const rounds = 200

var allFrameworks = []v1.Framework{
	v1.FrameworkPyTorch, v1.FrameworkTensorFlow, v1.FrameworkMPI,
	v1.FrameworkPaddlePaddle, v1.FrameworkXGBoost, v1.FrameworkJAX,
}

// chance is true in one of n cases.
func chance(c randfill.Continue, n int) bool { return c.Intn(n) == 0 }

// sensible makes jobs whose author made no mistake but left out what he could.
func sensible(seed int64) *v1.TrainingJob {
	filler := randfill.NewWithSeed(seed).NilChance(0.5).NumElements(0, 2).Funcs(
		func(job *v1.TrainingJob, c randfill.Continue) {
			job.APIVersion, job.Kind = v1.GroupVersion.String(), v1.TrainingJobKind
			job.Name, job.Namespace = fmt.Sprintf("job-%d", c.Intn(1000)), "team"
			job.Spec.Framework = allFrameworks[c.Intn(len(allFrameworks))]
			job.Spec.Roles = sensibleRoles(job.Spec.Framework, c)
			sensibleExtras(&job.Spec, c)
		},
	)
	job := &v1.TrainingJob{}
	filler.Fill(job)
	return job
}

func sensibleRoles(framework v1.Framework, c randfill.Continue) []v1.Role {
	var roles []v1.Role
	led := false
	for _, name := range framework.Roles() {
		leads := framework.Leads(name)
		must := name == v1.RoleLauncher || name == v1.RoleMaster && framework == v1.FrameworkXGBoost || name == v1.RoleWorker && !led
		if leads && led || !must && chance(c, 2) {
			continue
		}
		role := v1.Role{Name: name, Template: sensibleTemplate(framework, c)}
		if !leads && chance(c, 2) {
			count := int32(1 + c.Intn(9))
			role.Replicas = &count
		}
		led = led || leads
		roles = append(roles, role)
	}
	return roles
}

func sensibleTemplate(framework v1.Framework, c randfill.Continue) corev1.PodTemplateSpec {
	main := corev1.Container{Name: framework.MainContainer(), Image: "registry.example/train:1"}
	if _, number := framework.Port(); chance(c, 3) {
		main.Ports = append(main.Ports, corev1.ContainerPort{Name: "own", ContainerPort: max(number, 1)})
	}
	gpus := corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(1+c.Intn(8)), resource.DecimalSI)}
	if chance(c, 2) {
		main.Resources.Requests = gpus
	} else if chance(c, 2) {
		main.Resources.Limits = gpus
	}
	pod := corev1.PodSpec{Containers: []corev1.Container{main}, HostNetwork: chance(c, 3)}
	if chance(c, 3) {
		pod.Containers = append([]corev1.Container{{Name: "side", Image: "b", EnvFrom: []corev1.EnvFromSource{{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}}}, pod.Containers...)
	}
	if chance(c, 3) {
		pod.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "a", IQN: "b"}}}}
		pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: pod}
}

func sensibleExtras(spec *v1.TrainingJobSpec, c randfill.Continue) {
	hasWorker := false
	for _, role := range spec.Roles {
		hasWorker = hasWorker || role.Name == v1.RoleWorker
	}
	if chance(c, 3) {
		spec.RunPolicy = &v1.RunPolicy{}
		c.Fill(&spec.RunPolicy.Suspend)
	}
	if hasWorker && chance(c, 2) && spec.Framework != v1.FrameworkXGBoost && spec.Framework != v1.FrameworkTensorFlow {
		spec.Elastic = &v1.Elastic{}
		// Bounds of 1 and 9 hold every count of workers that the roles have.
		least, most := int32(1), int32(9)
		if chance(c, 2) {
			spec.Elastic.MinReplicas = &least
		}
		if chance(c, 2) {
			spec.Elastic.MaxReplicas = &most
		}
	}
	if chance(c, 4) {
		spec.Gang = &v1.Gang{Topology: &v1.Topology{Preferred: "topology.kubernetes.io/rack"}}
	}
}

func toContent(t testing.TB, object any) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	return content
}

func TestDefaultedJobsValidate(t *testing.T) {
	schema := trainingJobSchema(t)
	for seed := range int64(rounds) {
		job := sensible(seed)
		defaulting.DefaultTrainingJob(job)
		if errs := validation.ValidateTrainingJob(nil, job); len(errs) > 0 {
			t.Fatalf("seed %d: the defaulted job is at fault: %v", seed, errs)
		}
		content := toContent(t, job)
		schema.Default(content)
		if errs := schema.Strict(content); len(errs) > 0 {
			t.Fatalf("seed %d: the defaulted job has unknown fields: %v", seed, errs)
		}
		if errs := schema.Validate(t.Context(), nil, content); len(errs) > 0 {
			t.Fatalf("seed %d: the schema refuses the defaulted job: %v", seed, errs)
		}
		if errs := validation.ValidateTrainingJob(job, job); len(errs) > 0 {
			t.Fatalf("seed %d: a write that changes nothing is refused: %v", seed, errs)
		}
	}
}

// What the two defaulters write together is a fixed point of both, in any
// order, and holds all that the API server would write when it reads v1.
func TestDefaultersAgree(t *testing.T) {
	schema := trainingJobSchema(t)
	for seed := range int64(rounds) {
		job := sensible(seed)
		defaulting.DefaultTrainingJob(job)
		stored := toContent(t, job)
		schema.Default(stored)

		read := runtime.DeepCopyJSON(stored)
		schema.Default(read)
		if diff := cmp.Diff(stored, read); diff != "" {
			t.Fatalf("seed %d: reading v1 adds defaults (-stored +read):\n%s", seed, diff)
		}
		again := &v1.TrainingJob{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored, again); err != nil {
			t.Fatal(err)
		}
		defaulting.DefaultTrainingJob(again)
		twice := toContent(t, again)
		schema.Default(twice)
		if diff := cmp.Diff(stored, twice); diff != "" {
			t.Fatalf("seed %d: defaulting a stored job changes it (-stored +again):\n%s", seed, diff)
		}

		// The schema first, as when the API server has read the object.
		other := toContent(t, sensible(seed))
		schema.Default(other)
		reordered := &v1.TrainingJob{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(other, reordered); err != nil {
			t.Fatal(err)
		}
		defaulting.DefaultTrainingJob(reordered)
		otherwise := toContent(t, reordered)
		schema.Default(otherwise)
		if diff := cmp.Diff(stored, otherwise); diff != "" {
			t.Fatalf("seed %d: the order of the defaulters matters (-typed first +schema first):\n%s", seed, diff)
		}
	}
}

// Whatever is in a stored object, defaulting ends at a fixed point, touches
// neither metadata nor status, and validation answers.
func TestAnyJobIsBorne(t *testing.T) {
	for seed := range int64(rounds) {
		job := anyJob(seed)
		original := job.DeepCopy()
		defaulting.DefaultTrainingJob(job)
		if !cmp.Equal(original.ObjectMeta, job.ObjectMeta) || !cmp.Equal(original.Status, job.Status) {
			t.Fatalf("seed %d: defaulting touched metadata or status", seed)
		}
		once := job.DeepCopy()
		defaulting.DefaultTrainingJob(job)
		if diff := cmp.Diff(toContent(t, once), toContent(t, job)); diff != "" {
			t.Fatalf("seed %d: defaulting twice differs (-once +twice):\n%s", seed, diff)
		}
		validation.ValidateTrainingJob(original, job)
	}
}

func anyJob(seed int64) *v1.TrainingJob {
	filler := randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 3).MaxDepth(14).Funcs(
		func(framework *v1.Framework, c randfill.Continue) {
			*framework = allFrameworks[c.Intn(len(allFrameworks))]
		},
		func(name *v1.RoleName, c randfill.Continue) {
			*name = []v1.RoleName{"", "master", "Master", "WORKER", "Worker", "ps", "launcher", "x"}[c.Intn(8)]
		},
		func(container *corev1.Container, c randfill.Continue) {
			c.FillNoCustom(container)
			container.Name = []string{"", "pytorch", "mpi", "jax", container.Name}[c.Intn(5)]
		},
		func(quantity *resource.Quantity, c randfill.Continue) {
			*quantity = *resource.NewQuantity(int64(c.Intn(100)), resource.DecimalSI)
		},
		func(raw *runtime.RawExtension, _ randfill.Continue) { *raw = runtime.RawExtension{} },
		func(fields *metav1.FieldsV1, _ randfill.Continue) { fields.SetRawString("{}") },
		func(status *v1.TrainingJobStatus, c randfill.Continue) { status.Phase = v1.PhaseRunning },
	)
	job := &v1.TrainingJob{}
	filler.Fill(job)
	return job
}
