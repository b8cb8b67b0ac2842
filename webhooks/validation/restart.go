package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// validateRestart refuses a gang whose members would be restarted for having
// done their work.
func validateRestart(spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	if restartScope(spec) != v1.RestartGang {
		return nil
	}
	var errs field.ErrorList
	for i := range spec.Roles {
		if spec.Roles[i].RestartPolicy == v1.RestartAlways {
			errs = append(errs, field.Invalid(path.Index(i).Child("restartPolicy"), v1.RestartAlways,
				"must not be Always where runPolicy.restart is Gang: a pod that has succeeded would restart all others; write OnFailure"))
		}
	}
	return errs
}

// keepRestart keeps how the pods of a running job are restarted: the kubelet
// was told when they were made, and would go on as before.
func (k *keeper) keepRestart(old, spec *v1.TrainingJobSpec, path *field.Path) {
	k.keep(path.Child("runPolicy", "restart"), restartScope(old), restartScope(spec))
}

// restartScope takes what is left out for what it means.
func restartScope(spec *v1.TrainingJobSpec) v1.RestartScope {
	if spec.RunPolicy == nil || spec.RunPolicy.Restart == "" {
		return v1.RestartPod
	}
	return spec.RunPolicy.Restart
}
