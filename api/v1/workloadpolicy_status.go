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

	// audit is what the policy says of the objects that are stored. Absent until
	// all of them have been judged once, and where nothing is audited.
	// +optional
	Audit PolicyAudit `json:"audit,omitzero"`
}

// PolicyAudit is what a policy says of stored objects, which are judged when they
// or the policy change and when an exception ends. Counts are of objects.
type PolicyAudit struct {
	// observedGeneration is the generation of the spec that judged.
	// +required
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// judged is how many objects the rule was evaluated for.
	// +required
	// +kubebuilder:validation:Minimum=0
	Judged *int32 `json:"judged,omitempty"`

	// violations are how many of them break the policy.
	// +required
	Violations PolicyAuditViolations `json:"violations,omitzero"`

	// summary is the total of violations for people to read: where it does not say
	// all, what is not judged stands behind it, as in 0 (12 not judged).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Summary string `json:"summary,omitempty"`

	// excepted is how many break the policy and pass by an exception.
	// +required
	// +kubebuilder:validation:Minimum=0
	Excepted *int32 `json:"excepted,omitempty"`

	// errors is how many objects the rule could not be evaluated for.
	// +required
	// +kubebuilder:validation:Minimum=0
	Errors *int32 `json:"errors,omitempty"`

	// notEvaluated is how many objects do not tell what the policy asks, such as
	// who made the request.
	// +required
	// +kubebuilder:validation:Minimum=0
	NotEvaluated *int32 `json:"notEvaluated,omitempty"`

	// message says why objects are among errors and notEvaluated.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// samples are some of the objects that break the policy, those that would be
	// refused first, then in the order of kind, namespace and name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Samples []PolicyAuditSample `json:"samples,omitempty"`

	// unseen are matched kinds whose objects are not looked at.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Unseen []PolicyExclusion `json:"unseen,omitempty"`
}

// PolicyAuditViolations counts objects by what would become of them if they were
// written now.
type PolicyAuditViolations struct {
	// total of all that break the policy.
	// +required
	// +kubebuilder:validation:Minimum=0
	Total *int32 `json:"total,omitempty"`

	// deny is how many would be refused.
	// +required
	// +kubebuilder:validation:Minimum=0
	Deny *int32 `json:"deny,omitempty"`

	// warn is how many would be warned about.
	// +required
	// +kubebuilder:validation:Minimum=0
	Warn *int32 `json:"warn,omitempty"`

	// audit is how many would only be recorded.
	// +required
	// +kubebuilder:validation:Minimum=0
	Audit *int32 `json:"audit,omitempty"`
}

// PolicyAuditSample is an object that breaks a policy.
type PolicyAuditSample struct {
	// action is what would become of the object: Deny, Warn or Audit.
	// +required
	Action PolicyAction `json:"action,omitempty"`

	// kind of the object, with its group: Deployment.apps.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Kind string `json:"kind,omitempty"`

	// namespace of the object, empty for cluster-scoped ones.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// field that is wrong, empty where the rule names none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Field string `json:"field,omitempty"`

	// message says what is wrong, cut where it is long.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
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

	// WorkloadPolicyAuditedCondition is True when status.audit is of the spec in
	// force and of all stored objects; it is absent where nothing is audited.
	// Reasons for True: Audited. For False: Incomplete, where objects could not be
	// judged or kinds are not looked at; NothingStored, of a policy that judges
	// neither creations nor updates. For Unknown: Auditing.
	WorkloadPolicyAuditedCondition = "Audited"

	WorkloadPolicyAuditedReason         = "Audited"
	WorkloadPolicyAuditIncompleteReason = "Incomplete"
	WorkloadPolicyNothingStoredReason   = "NothingStored"
	WorkloadPolicyAuditingReason        = "Auditing"
)
