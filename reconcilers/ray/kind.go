package ray

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/gangs"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// Kind returns the registration of RayCluster with the shared loop.
// defaulter fills in what a cluster leaves out; validator returns what makes it
// meaningless. They are the same that admission uses.
func Kind(defaulter func(*v1.RayCluster), validator func(*v1.RayCluster) field.ErrorList) plan.Kind[*v1.RayCluster, v1.RayClusterStatus] {
	return plan.Kind[*v1.RayCluster, v1.RayClusterStatus]{
		Name: "raycluster",
		New:  func() *v1.RayCluster { return &v1.RayCluster{} },
		Owns: []plan.Object{
			&corev1.Pod{}, &corev1.Service{}, &corev1.Secret{}, &networkingv1.Ingress{}, &batchv1.Job{},
			&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
		},

		OwnsIfServed: gangs.Kinds(),
		Finalizer:    v1.RedisCleanupFinalizer,
		Lean:         pods.Lean,

		Default:     defaulter,
		Validate:    validator,
		Plan:        Plan,
		PlanInvalid: PlanInvalid,

		Generators: map[string]plan.Generator{tokenGenerator: generateToken},

		Status: func(cluster *v1.RayCluster) *v1.RayClusterStatus { return &cluster.Status },
		Common: func(status *v1.RayClusterStatus) plan.Common {
			return plan.Common{
				Conditions:         &status.Conditions,
				Phase:              &status.Phase,
				ObservedGeneration: &status.ObservedGeneration,
			}
		},
		ManagedBy: func(cluster *v1.RayCluster) *string {
			return ptr.Deref(cluster.Spec.RunPolicy, v1.ServicePolicy{}).ManagedBy
		},
		// A cluster has no end of its own.
		Finished:   func(*v1.RayClusterStatus) bool { return false },
		CountsOnly: countsOnly,
	}
}
