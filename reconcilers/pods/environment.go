package pods

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Environment is the variables that a kind sets, in order.
type Environment []corev1.EnvVar

// Set sets a variable to a value.
func (e *Environment) Set(name, value string) {
	*e = append(*e, corev1.EnvVar{Name: name, Value: value})
}

// SetFrom takes the value from a field of the pod, as the kubelet knows it.
func (e *Environment) SetFrom(name, path string) {
	*e = append(*e, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}})
}

// Into puts the variables into a container. They take the place of the user's
// variables of the same name, and come first so that the others can refer to
// them as $(NAME).
func (e Environment) Into(container *corev1.Container) {
	own := func(v corev1.EnvVar) bool {
		return slices.ContainsFunc(e, func(w corev1.EnvVar) bool { return w.Name == v.Name })
	}
	container.Env = append(slices.Clone(e), slices.DeleteFunc(slices.Clone(container.Env), own)...)
}

// IntoAll puts the variables into every container of a pod.
func (e Environment) IntoAll(pod *corev1.Pod) {
	for i := range pod.Spec.Containers {
		e.Into(&pod.Spec.Containers[i])
	}
}
