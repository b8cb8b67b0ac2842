// Package v1alpha1 holds the Penstock kinds in the shape that people already
// write for the upstream projects: a TrainingJob has the spec fields of the
// Kubeflow Training Operator's jobs.
//
// The field names and their meaning are upstream's; docs say where Penstock
// decides otherwise. The package imports nothing but apimachinery and the
// Kubernetes API types, and never api/v1: how the two relate is known to the
// conversion package alone.
//
// +kubebuilder:object:generate=true
// +groupName=penstock.dev
package v1alpha1
