// Package v1 holds the normal form of every Penstock kind: the hub that all
// other versions convert to, and the version that is stored.
//
// Every workload is a list of roles under a run policy, whatever framework
// runs in it, so that defaulting, validation, policies and reconcilers see one
// shape. The package imports nothing but apimachinery and the Kubernetes API
// types; it must never import another room of the project.
//
// +kubebuilder:object:generate=true
// +groupName=penstock.dev
package v1
