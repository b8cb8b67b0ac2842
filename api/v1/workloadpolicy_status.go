package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadPolicyStatus says whether a policy is in force.
// +kubebuilder:validation:MinProperties=1
type WorkloadPolicyStatus struct {
	// conditions of the policy; the types are the WorkloadPolicy…Condition constants.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status was
	// made from.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// enforcedGeneration is the generation that requests are judged by. It lags
	// behind when the newest one does not compile.
	// +optional
	// +kubebuilder:validation:Minimum=1
	EnforcedGeneration int64 `json:"enforcedGeneration,omitempty"`

	// exclusions are what the policy is never asked about although it matches:
	// what the cluster or Penstock itself needs in order to start.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Exclusions []PolicyExclusion `json:"exclusions,omitempty"`
}

// PolicyExclusion is what a policy is never asked about although it matches.
type PolicyExclusion struct {
	// subject that is excluded, such as a resource or a namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Subject string `json:"subject,omitempty"`

	// reason why it is.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// Condition types and reasons of a WorkloadPolicy.
const (
	// WorkloadPolicyCompiledCondition is True when the newest spec compiled.
	// Reasons for True: Compiled. For False: CompileFailed, InvalidSpec.
	WorkloadPolicyCompiledCondition = "Compiled"

	WorkloadPolicyCompiledReason      = "Compiled"
	WorkloadPolicyCompileFailedReason = "CompileFailed"
	WorkloadPolicyInvalidSpecReason   = "InvalidSpec"

	// WorkloadPolicyEnforcedCondition is True when the API server asks Penstock
	// about the kinds that the policy names; for kinds outside penstock.dev only
	// after a probe request came through. Reasons for True: Enforced. For
	// False: NotCompiled, KindsNotServed, Excluded, ConfigurationFailed. For
	// Unknown: Pending.
	WorkloadPolicyEnforcedCondition = "Enforced"

	WorkloadPolicyEnforcedReason            = "Enforced"
	WorkloadPolicyNotCompiledReason         = "NotCompiled"
	WorkloadPolicyKindsNotServedReason      = "KindsNotServed"
	WorkloadPolicyExcludedReason            = "Excluded"
	WorkloadPolicyConfigurationFailedReason = "ConfigurationFailed"
	WorkloadPolicyPendingReason             = "Pending"

	// WorkloadPolicyInventorySyncedCondition is there for policies that name an
	// inventory, and True when all objects of its kinds are there to be read;
	// otherwise requests are answered by the failure policy. Reasons for True:
	// Synced. For False: Syncing, KindNotServed, Forbidden, Failed.
	WorkloadPolicyInventorySyncedCondition = "InventorySynced"

	WorkloadPolicyInventorySyncedReason    = "Synced"
	WorkloadPolicyInventorySyncingReason   = "Syncing"
	WorkloadPolicyKindNotServedReason      = "KindNotServed"
	WorkloadPolicyInventoryForbiddenReason = "Forbidden"
	WorkloadPolicyInventoryFailedReason    = "Failed"
)
