package defaulting

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// foldRoleNames writes known role names in the framework's own case, as the
// Training Operator does: master and MASTER become Master.
func foldRoleNames(spec *v1.TrainingJobSpec) {
	for i := range spec.Roles {
		if canonical, known := spec.Framework.CanonicalRole(spec.Roles[i].Name); known {
			spec.Roles[i].Name = canonical
		}
	}
}

func defaultRole(spec *v1.TrainingJobSpec, role *v1.Role) {
	setDefault(&role.Replicas, 1)
	setEmpty(&role.RestartPolicy, spec.Framework.RestartPolicy(role.Name))
	defaultTemplate(spec, &role.Template.Spec)
}

// dropTwins keeps the first of several equal roles of one name. Client-side
// apply of a manifest that says `master` adds that key again beside the stored
// `Master`; both are the same role, and the write must change nothing. Roles
// of one name that differ stay for validation to name.
func dropTwins(spec *v1.TrainingJobSpec) {
	kept := make([]v1.Role, 0, len(spec.Roles))
	for _, role := range spec.Roles {
		isTwin := func(elder v1.Role) bool {
			return elder.Name == role.Name && equality.Semantic.DeepEqual(elder, role)
		}
		if !slices.ContainsFunc(kept, isTwin) {
			kept = append(kept, role)
		}
	}
	if len(kept) < len(spec.Roles) {
		spec.Roles = kept
	}
}

// defaultElastic fills the bounds and the wanted number of workers.
//
// The Training Operator copies the one bound that is given to the other, or
// takes the replicas of Worker for both. Copying alone can leave the given
// number of workers outside; then the bound that was left out makes room for
// it, so that a default never makes a job invalid. Nothing given is changed.
//
// The replicas of the role are derived from what scaling does not write (the
// lower bound), never from elastic.replicas: applying a manifest again after a
// scaling must change nothing.
func defaultElastic(spec *v1.TrainingJobSpec) {
	elastic, worker := spec.Elastic, findRole(spec, v1.RoleWorker)
	if elastic == nil || worker == nil {
		return
	}
	wanted := elastic.Replicas
	if wanted == nil {
		wanted = worker.Replicas
	}
	switch {
	case elastic.MinReplicas == nil && elastic.MaxReplicas == nil:
		count := int32(1)
		if wanted != nil {
			count = *wanted
		}
		setDefault(&elastic.MinReplicas, count)
		setDefault(&elastic.MaxReplicas, count)
	case elastic.MaxReplicas == nil:
		count := *elastic.MinReplicas
		if wanted != nil {
			count = max(count, *wanted)
		}
		setDefault(&elastic.MaxReplicas, count)
	case elastic.MinReplicas == nil:
		count := *elastic.MaxReplicas
		if wanted != nil {
			count = min(count, *wanted)
		}
		setDefault(&elastic.MinReplicas, count)
	}
	// Every role of that name, so that a twin stays a twin.
	for i := range spec.Roles {
		if spec.Roles[i].Name == v1.RoleWorker {
			setDefault(&spec.Roles[i].Replicas, *elastic.MinReplicas)
		}
	}
	setDefault(&elastic.Replicas, *worker.Replicas)
}

func findRole(spec *v1.TrainingJobSpec, name v1.RoleName) *v1.Role {
	for i := range spec.Roles {
		if spec.Roles[i].Name == name {
			return &spec.Roles[i]
		}
	}
	return nil
}
