package training

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/gangs"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// Kind returns the registration of TrainingJob with the shared loop.
// defaulter fills in what a job leaves out; validator returns what makes it
// meaningless. They are the same that admission uses.
func Kind(defaulter func(*v1.TrainingJob), validator func(*v1.TrainingJob) field.ErrorList) plan.Kind[*v1.TrainingJob, v1.TrainingJobStatus] {
	return plan.Kind[*v1.TrainingJob, v1.TrainingJobStatus]{
		Name: "trainingjob",
		New:  func() *v1.TrainingJob { return &v1.TrainingJob{} },
		Owns: []plan.Object{
			&corev1.Pod{}, &corev1.Service{}, &autoscalingv2.HorizontalPodAutoscaler{},
			// What MPI needs; see supplies.go.
			&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
		},

		OwnsIfServed: gangs.Kinds(),
		Lean:         pods.Lean,

		Default:     defaulter,
		Validate:    validator,
		Plan:        Plan,
		PlanInvalid: PlanInvalid,

		Generators: map[string]plan.Generator{sshKeyGenerator: generateSSHKey},

		Status: func(job *v1.TrainingJob) *v1.TrainingJobStatus { return &job.Status },
		Common: func(status *v1.TrainingJobStatus) plan.Common {
			return plan.Common{
				Conditions:         &status.Conditions,
				Phase:              &status.Phase,
				ObservedGeneration: &status.ObservedGeneration,
			}
		},
		ManagedBy:  func(job *v1.TrainingJob) *string { return runPolicy(job).ManagedBy },
		Finished:   finished,
		CountsOnly: countsOnly,
	}
}
