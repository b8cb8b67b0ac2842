package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// keepGang keeps how the pods of a running job are placed: each was made for
// one scheduler, one group and one topology, and stays so. The numbers can
// change, as they do when a job is scaled.
func (k *keeper) keepGang(old, spec *v1.TrainingJobSpec, path *field.Path) {
	before, after := old.Gang, spec.Gang
	if before == nil || after == nil {
		k.keep(path, before != nil, after != nil)
		return
	}
	k.keep(path.Child("scheduler"), before.Scheduler, after.Scheduler)
	k.keep(path.Child("priorityClassName"), before.PriorityClassName, after.PriorityClassName)
	k.keep(path.Child("topology"), before.Topology, after.Topology)
}
