package training

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/test/fixtures"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// unsaid are variables of which nobody is told that they are overwritten: they
// say the same in any job, or follow from what the container asks for.
var unsaid = []string{"PYTHONUNBUFFERED", "POD_IP_DUMMY", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"}

// TestAdviceNamesWhatIsOverwritten gives every container of each
// testdata/*.input.yaml all variables that any framework sets, and compares
// those that do not reach the pods with those of which admission warns.
func TestAdviceNamesWhatIsOverwritten(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, source := range sources {
		code, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`env\.Set(?:From)?\("(\w+)"`).FindAllStringSubmatch(string(code), -1) {
			if !slices.Contains(all, match[1]) && !slices.Contains(unsaid, match[1]) {
				all = append(all, match[1])
			}
		}
	}
	if len(all) < 30 {
		t.Fatalf("the frameworks set only %v", all)
	}
	inputs, err := filepath.Glob("testdata/*.input.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".input.yaml"), func(t *testing.T) {
			job := jobWithAll(t, input, all)
			checkAdvice(t, job, all)
			if job.Spec.Framework == v1.FrameworkMPI {
				for _, implementation := range []v1.MPIImplementation{v1.MPIIntel, v1.MPIMPICH} {
					job.Spec.MPI.Implementation = implementation
					checkAdvice(t, job, all)
				}
			}
		})
	}
}

func checkAdvice(t *testing.T, job *v1.TrainingJob, all []string) {
	t.Helper()
	lost := map[string]bool{}
	for _, child := range Plan(job, plan.Observed{}, fixtures.Start).Create {
		pod, ok := child.(*corev1.Pod)
		if !ok {
			continue
		}
		for _, container := range pod.Spec.Containers {
			for _, name := range all {
				if !slices.Contains(container.Env, corev1.EnvVar{Name: name, Value: "mine"}) {
					lost[pod.Labels[v1.RoleLabel]+"/"+container.Name+"/"+name] = true
				}
			}
		}
	}
	if diff := cmp.Diff(lost, advised(t, job)); diff != "" {
		t.Errorf("advice (-lost +advised):\n%s", diff)
	}
}

func jobWithAll(t *testing.T, input string, names []string) *v1.TrainingJob {
	t.Helper()
	data, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	job := &v1.TrainingJob{}
	if err := yaml.UnmarshalStrict(data, job); err != nil {
		t.Fatal(err)
	}
	if job.Spec.MPI != nil {
		job.Spec.MPI.LauncherCreation = v1.LauncherAtStartup
	} else if job.Spec.Framework == v1.FrameworkMPI {
		job.Spec.MPI = &v1.MPI{LauncherCreation: v1.LauncherAtStartup}
	}
	job.Spec.RunPolicy = nil // One that is suspended has no pods.
	defaulting.DefaultTrainingJob(job)
	for i := range job.Spec.Roles {
		containers := job.Spec.Roles[i].Template.Spec.Containers
		for j := range containers {
			containers[j].Env = nil
			for _, name := range names {
				containers[j].Env = append(containers[j].Env, corev1.EnvVar{Name: name, Value: "mine"})
			}
		}
	}
	return job
}

// advised are the variables that admission warns of, as role/container/variable.
func advised(t *testing.T, job *v1.TrainingJob) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, line := range validation.AdviseTrainingJob(nil, job) {
		for i := range job.Spec.Roles {
			role := &job.Spec.Roles[i]
			prefix := "spec.roles[" + itoa(int32(i)) + "].template.spec.containers["
			if rest, ok := strings.CutPrefix(line.Field, prefix); ok {
				container := role.Template.Spec.Containers[rest[0]-'0'].Name
				name, _, _ := strings.Cut(line.Detail, " ")
				found[strings.ToLower(string(role.Name))+"/"+container+"/"+name] = true
			}
		}
	}
	return found
}

// A Master is a node of torchrun's beside the workers, whom the bounds count.
func TestElasticMasterIsANode(t *testing.T) {
	for master, want := range map[int32]string{0: "1:4", 1: "2:5"} {
		mods := []fixtures.JobMod{fixtures.Workers(2), fixtures.Elastic(1, 4)}
		if master > 0 {
			mods = append(mods, fixtures.Role(v1.RoleMaster, master))
		}
		for _, child := range Plan(fixtures.TrainingJob("a", mods...), plan.Observed{}, fixtures.Start).Create {
			pod, ok := child.(*corev1.Pod)
			if ok && !slices.Contains(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "PET_NNODES", Value: want}) {
				t.Errorf("%s: got %v, want PET_NNODES %s", pod.Name, pod.Spec.Containers[0].Env, want)
			}
		}
	}
}
