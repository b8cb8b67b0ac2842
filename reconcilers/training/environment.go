package training

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// environment is the variables that a framework sets, in order.
type environment []corev1.EnvVar

func (e *environment) set(name, value string) {
	*e = append(*e, corev1.EnvVar{Name: name, Value: value})
}

// setFrom takes the value from a field of the pod, as the kubelet knows it.
func (e *environment) setFrom(name, path string) {
	*e = append(*e, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}})
}

// into puts the variables into a container. They take the place of the user's
// variables of the same name, and come first so that the others can refer to
// them as $(NAME).
func (e environment) into(container *corev1.Container) {
	own := func(v corev1.EnvVar) bool {
		return slices.ContainsFunc(e, func(w corev1.EnvVar) bool { return w.Name == v.Name })
	}
	container.Env = append(slices.Clone(e), slices.DeleteFunc(slices.Clone(container.Env), own)...)
}

// intoAll puts the variables into every container of a pod.
func (e environment) intoAll(pod *corev1.Pod) {
	for i := range pod.Spec.Containers {
		e.into(&pod.Spec.Containers[i])
	}
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }
