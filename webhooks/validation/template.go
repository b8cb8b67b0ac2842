package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// validateTemplate finds the faults that would keep the role's pods from being
// made or from being the job's pods.
func validateTemplate(spec *v1.TrainingJobSpec, role *v1.Role, path *field.Path) field.ErrorList {
	pod := &role.Template.Spec
	containersPath := path.Child("spec", "containers")
	if pod.Containers == nil && apiequality.Semantic.DeepEqual(role.Template, corev1.PodTemplateSpec{}) {
		return field.ErrorList{field.Required(path, fmt.Sprintf(
			"role %s says nothing of its pods: write what they are, or remove the role", role.Name))}
	}
	if len(pod.Containers) == 0 {
		return field.ErrorList{field.Required(containersPath, containerFix(spec.Framework))}
	}
	errs := validateFrameworkContainer(spec.Framework, pod.Containers, containersPath)
	return append(errs, ValidatePodTemplate(&role.Template, path)...)
}

func containerFix(framework v1.Framework) string {
	if name := framework.MainContainer(); name != "" {
		return fmt.Sprintf("a pod needs a container: add one called %s", name)
	}
	return "a pod needs a container: add one"
}

// validateFrameworkContainer finds the container by name at any place: a side
// car may stand first. MPI takes any container when none is called mpi.
func validateFrameworkContainer(framework v1.Framework, containers []corev1.Container, path *field.Path) field.ErrorList {
	want := framework.MainContainer()
	if want == "" || framework == v1.FrameworkMPI {
		return nil
	}
	for i := range containers {
		if containers[i].Name == want {
			return nil
		}
	}
	return field.ErrorList{field.Invalid(path.Index(0).Child("name"), containers[0].Name, fmt.Sprintf(
		"must be %s in one container: port, environment and exit code hang on that name; rename the container that trains", want))}
}
