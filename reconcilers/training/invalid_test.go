package training

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// TestPlanInvalidOfAnything: whatever a spec lacks, its status can be told, and
// nothing is made from it.
func TestPlanInvalidOfAnything(t *testing.T) {
	faults := map[string]func(*v1.TrainingJob){
		"nothing at all":       func(job *v1.TrainingJob) { job.Spec = v1.TrainingJobSpec{} },
		"an unknown framework": func(job *v1.TrainingJob) { job.Spec.Framework = "Torch" },
		"no containers":        func(job *v1.TrainingJob) { job.Spec.Roles[0].Template.Spec.Containers = nil },
		"an unknown role":      func(job *v1.TrainingJob) { job.Spec.Roles[0].Name = "Boss" },
		"a role twice":         func(job *v1.TrainingJob) { job.Spec.Roles = append(job.Spec.Roles, job.Spec.Roles[0]) },
		"fewer than none": func(job *v1.TrainingJob) {
			job.Spec.Roles[0].Replicas, job.Spec.Elastic = new(int32(-1)), &v1.Elastic{MinReplicas: new(int32(3)), MaxReplicas: new(int32(2))}
		},
		"a gang of nobody": func(job *v1.TrainingJob) { job.Spec.Gang = &v1.Gang{MinAvailable: new(int32(9))} },
	}
	for name, fault := range faults {
		for _, framework := range []v1.Framework{v1.FrameworkPyTorch, v1.FrameworkTensorFlow, v1.FrameworkMPI, v1.FrameworkPaddlePaddle, v1.FrameworkXGBoost, v1.FrameworkJAX} {
			for _, suspend := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", name, framework, suspend), func(t *testing.T) {
					job := fixtures.TrainingJob("a", fixtures.Workers(2))
					job.Spec.Framework = framework
					job.Spec.RunPolicy = &v1.RunPolicy{Suspend: new(suspend)}
					job.Generation = 7
					fault(job)
					pod := &corev1.Pod{}
					pod.Name, pod.Namespace, pod.UID = "a-worker-0", job.Namespace, "p"
					pod.Status.Phase = corev1.PodRunning
					result := PlanInvalid(job, plan.Observed{Children: []plan.Object{pod}}, fixtures.Start)
					if len(result.Create)+len(result.Apply)+len(result.Generate) > 0 {
						t.Errorf("makes %v %v %v", result.Create, result.Apply, result.Generate)
					}
					if result.Status.ObservedGeneration != 7 || result.Status.Phase == "" {
						t.Errorf("status %+v", result.Status)
					}
					if gone := len(result.Delete) == 1; gone != (suspend && job.Spec.RunPolicy != nil) {
						t.Errorf("deletes %v", result.Delete)
					}
				})
			}
		}
	}
}
