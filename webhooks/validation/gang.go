package validation

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// validateGangUpdate keeps how the pods of a running job are placed: each was
// made for one scheduler, one group and one topology, and stays so. The numbers
// can change, as they do when a job is scaled.
func validateGangUpdate(old, spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	keep := func(path *field.Path, before, after any) {
		if !equality.Semantic.DeepEqual(before, after) {
			errs = append(errs, field.Forbidden(path, whileRunning))
		}
	}
	gangPath := path.Child("gang")
	if before, after := old.Gang, spec.Gang; before == nil || after == nil {
		keep(gangPath, before != nil, after != nil)
	} else {
		keep(gangPath.Child("scheduler"), before.Scheduler, after.Scheduler)
		keep(gangPath.Child("priorityClassName"), before.PriorityClassName, after.PriorityClassName)
		keep(gangPath.Child("topology"), before.Topology, after.Topology)
	}
	for i := range spec.Roles {
		for j := range old.Roles {
			if old.Roles[j].Name == spec.Roles[i].Name {
				keep(path.Child("roles").Index(i).Child("topology"), old.Roles[j].Topology, spec.Roles[i].Topology)
				break
			}
		}
	}
	return errs
}
