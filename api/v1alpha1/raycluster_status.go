package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RayClusterStatus is what a Ray cluster is. It has the shape of v1; see there
// for the meaning of the fields.
type RayClusterStatus struct {
	// conditions of the cluster.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// phase is the state of the cluster in one word.
	// +optional
	Phase string `json:"phase,omitempty"`

	// observedGeneration is the generation of the spec that this status was
	// made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// roles count the pods of each role.
	// +optional
	// +listType=map
	// +listMapKey=name
	Roles []RoleStatus `json:"roles,omitempty"`

	// rolesReady says in one word how many of the wanted pods are ready.
	// +optional
	RolesReady string `json:"rolesReady,omitempty"`

	// resources is what the wanted pods ask for together.
	// +optional
	Resources *ResourceTotals `json:"resources,omitempty"`

	// head is where the head is.
	// +optional
	Head *RayHeadStatus `json:"head,omitempty"`
}

// ResourceTotals is what the wanted pods of a workload ask for together.
type ResourceTotals struct {
	// cpu in cores.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// memory in bytes.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// gpu is the number of GPUs and of slices of GPUs.
	// +optional
	GPU *resource.Quantity `json:"gpu,omitempty"`

	// tpu is the number of TPU chips.
	// +optional
	TPU *resource.Quantity `json:"tpu,omitempty"`
}

// RayHeadStatus is where the head of a Ray cluster is.
type RayHeadStatus struct {
	// podName is the name of the head's pod.
	// +optional
	PodName string `json:"podName,omitempty"`

	// podIP is the address of the head's pod.
	// +optional
	PodIP string `json:"podIP,omitempty"`

	// serviceName is the name of the head's service.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// serviceIP is the address of the head's service, or that of its pod.
	// +optional
	ServiceIP string `json:"serviceIP,omitempty"`
}
