package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every Penstock kind.
const GroupName = "penstock.dev"

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

var schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme adds the types of this package to a scheme.
var AddToScheme = schemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&RayCluster{}, &RayClusterList{},
		&TrainingJob{}, &TrainingJobList{},
		&WorkloadPolicy{}, &WorkloadPolicyList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// WorkloadKinds are the kinds that people run workloads by, in alphabetical
// order: all of the group but WorkloadPolicy.
func WorkloadKinds() []schema.GroupKind {
	return []schema.GroupKind{RayClusterGroupKind, TrainingJobGroupKind}
}
