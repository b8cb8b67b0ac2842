package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RayClusterStatus is what a Ray cluster is.
// +kubebuilder:validation:MinProperties=1
type RayClusterStatus struct {
	// conditions of the cluster; the types are the RayCluster…Condition constants.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// phase is the state of the cluster in one word.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// observedGeneration is the generation of the spec that this status was
	// made from.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// roles count the pods of each role.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Roles []RoleStatus `json:"roles,omitempty"`

	// rolesReady says in one word how many of the wanted pods are ready: 3/4.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:MinLength=1
	RolesReady string `json:"rolesReady,omitempty"`

	// resources is what the wanted pods ask for together.
	// +optional
	Resources ResourceTotals `json:"resources,omitzero"`

	// head is where the head is.
	// +optional
	Head RayHeadStatus `json:"head,omitzero"`
}

// ResourceTotals is what the wanted pods of a workload ask for together: what
// their containers request, or else their limits.
// +kubebuilder:validation:MinProperties=1
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
// +kubebuilder:validation:MinProperties=1
type RayHeadStatus struct {
	// podName is the name of the head's pod.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	PodName string `json:"podName,omitempty"`

	// podIP is the address of the head's pod.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:MinLength=1
	PodIP string `json:"podIP,omitempty"`

	// serviceName is the name of the head's service.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:MinLength=1
	ServiceName string `json:"serviceName,omitempty"`

	// serviceIP is the address of the head's service, or that of its pod where
	// the service has none of its own.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:MinLength=1
	ServiceIP string `json:"serviceIP,omitempty"`
}

// Condition types of a RayCluster and the reasons they carry.
const (
	// RayClusterReadyCondition is True while every wanted pod of the observed
	// generation runs and is ready, and there is no other pod. Reasons for True:
	// AllPodsReady. For False: HeadNotFound, HeadNotReady, WorkersNotReady,
	// Upgrading, Suspended, and those of the Invalid condition.
	RayClusterReadyCondition = "Ready"
	// RayClusterHeadReadyCondition says whether the head's pod is ready. Reasons
	// for True: HeadReady. For False: HeadNotFound, HeadNotReady, Suspended.
	RayClusterHeadReadyCondition = "HeadReady"
	// RayClusterUpgradingCondition is True while pods of an older template are
	// being replaced. Reasons for True: TemplateChanged. For False:
	// UpgradeComplete.
	RayClusterUpgradingCondition = "Upgrading"
	// RayClusterSuspendedCondition is True while the cluster is suspended and has
	// no pods. Reasons for True: ClusterSuspended. For False: Suspending,
	// ClusterResumed.
	RayClusterSuspendedCondition = SuspendedCondition
	// RayClusterProvisionedCondition is True from when all wanted pods were ready
	// together for the first time, until the cluster is suspended. Reasons for
	// True: AllPodsReady. For False: PodsProvisioning, Suspended.
	RayClusterProvisionedCondition = "Provisioned"
	// RayClusterInvalidCondition is True while not all pods can be made from the
	// cluster. Reasons: those of InvalidCondition.
	RayClusterInvalidCondition = InvalidCondition
)

// Reasons of RayCluster conditions.
const (
	RayClusterAllPodsReadyReason    = "AllPodsReady"
	RayClusterProvisioningReason    = "PodsProvisioning"
	RayClusterHeadReadyReason       = "HeadReady"
	RayClusterHeadNotFoundReason    = "HeadNotFound"
	RayClusterHeadNotReadyReason    = "HeadNotReady"
	RayClusterWorkersNotReadyReason = "WorkersNotReady"
	RayClusterUpgradingReason       = "Upgrading"
	RayClusterTemplateChangedReason = "TemplateChanged"
	RayClusterUpgradeCompleteReason = "UpgradeComplete"
	RayClusterOutdatedReason        = "PodsOutdated"
	RayClusterSuspendingReason      = "Suspending"
	RayClusterSuspendedReason       = "ClusterSuspended"
	RayClusterDeletingReason        = "Deleting"
	RayClusterResumedReason         = "ClusterResumed"
)
