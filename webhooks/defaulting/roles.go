package defaulting

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// foldRoleNames writes known role names in the framework's own case, as the
// Training Operator does: master and MASTER become Master.
// It gives the names as they were written.
func foldRoleNames(spec *v1.TrainingJobSpec) []v1.RoleName {
	written := make([]v1.RoleName, len(spec.Roles))
	for i := range spec.Roles {
		written[i] = spec.Roles[i].Name
		if canonical, known := spec.Framework.CanonicalRole(spec.Roles[i].Name); known {
			spec.Roles[i].Name = canonical
		}
	}
	return written
}

func defaultRole(spec *v1.TrainingJobSpec, role *v1.Role) {
	setDefault(&role.Replicas, 1)
	setEmpty(&role.RestartPolicy, spec.Framework.RestartPolicy(role.Name))
	defaultTemplate(spec, &role.Template.Spec)
}

// dropTwins keeps the first of several equal roles of one name. Client-side
// apply of a manifest that says `master` adds that key again beside the stored
// `Master`; both are the same role, and the write must change nothing. Roles
// of one name that differ stay for validation to name, as they were written:
// the API server would say of two of one name only that they are.
func dropTwins(spec *v1.TrainingJobSpec, written []v1.RoleName) {
	kept := make([]v1.Role, 0, len(spec.Roles))
	for i, role := range spec.Roles {
		sameName := func(elder v1.Role) bool { return elder.Name == role.Name }
		isTwin := func(elder v1.Role) bool { return sameName(elder) && equality.Semantic.DeepEqual(elder, role) }
		if slices.ContainsFunc(kept, isTwin) {
			continue
		}
		if slices.ContainsFunc(kept, sameName) {
			role.Name = written[i]
		}
		kept = append(kept, role)
	}
	spec.Roles = kept
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
