package v1

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WorkloadPolicyKind is the kind of WorkloadPolicy.
const WorkloadPolicyKind = "WorkloadPolicy"

// WorkloadPolicyGroupKind is the group and kind of WorkloadPolicy.
var WorkloadPolicyGroupKind = schema.GroupKind{Group: GroupName, Kind: WorkloadPolicyKind}

// WorkloadPolicy is a rule of the organisation, written in Rego, that judges
// workloads before they are stored.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=wlp,categories=penstock
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.spec.action`
// +kubebuilder:printcolumn:name="Compiled",type=string,JSONPath=`.status.conditions[?(@.type=="Compiled")].status`
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].status`
// +kubebuilder:printcolumn:name="Violations",type=string,JSONPath=`.status.audit.summary`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WorkloadPolicy struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the rule.
	// +required
	Spec WorkloadPolicySpec `json:"spec,omitzero"`

	// status says whether the rule compiled and is in force.
	// +optional
	Status WorkloadPolicyStatus `json:"status,omitzero"`
}

// WorkloadPolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type WorkloadPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the policies.
	Items []WorkloadPolicy `json:"items"`
}

// PolicyAction says what a violation does to a request.
// +kubebuilder:validation:Enum=Deny;Warn;Audit
type PolicyAction string

const (
	// ActionDeny refuses the request.
	ActionDeny PolicyAction = "Deny"
	// ActionWarn admits the request and warns its author.
	ActionWarn PolicyAction = "Warn"
	// ActionAudit admits the request and only records the violation.
	ActionAudit PolicyAction = "Audit"
)

// PolicyFailurePolicy says what it means for a request when a policy cannot be evaluated.
// +kubebuilder:validation:Enum=Fail;Ignore
type PolicyFailurePolicy string

const (
	// FailurePolicyFail refuses the request.
	FailurePolicyFail PolicyFailurePolicy = "Fail"
	// FailurePolicyIgnore admits the request with a warning.
	FailurePolicyIgnore PolicyFailurePolicy = "Ignore"
)

// UpstreamKinds says whether a policy judges the upstream kinds of the kinds it matches.
// +kubebuilder:validation:Enum=Judge;Ignore
type UpstreamKinds string

const (
	// UpstreamKindsJudge converts the upstream kinds and judges them by the same rule.
	UpstreamKindsJudge UpstreamKinds = "Judge"
	// UpstreamKindsIgnore leaves the upstream kinds alone.
	UpstreamKindsIgnore UpstreamKinds = "Ignore"
)

// PolicyOperation is a kind of request that a policy judges.
// +kubebuilder:validation:Enum=CREATE;UPDATE;DELETE;CONNECT
type PolicyOperation string

const (
	// OperationCreate is the making of an object.
	OperationCreate PolicyOperation = "CREATE"
	// OperationUpdate is the change of an object.
	OperationUpdate PolicyOperation = "UPDATE"
	// OperationDelete is the removal of an object.
	OperationDelete PolicyOperation = "DELETE"
	// OperationConnect is a connection to an object, such as exec.
	OperationConnect PolicyOperation = "CONNECT"
)

// WorkloadPolicySpec is a rule and where it holds.
type WorkloadPolicySpec struct {
	// description says in a sentence what the policy asks and why.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:MinLength=1
	Description string `json:"description,omitempty"`

	// match says which requests the policy judges.
	// +required
	Match PolicyMatch `json:"match,omitzero"`

	// matchConditions are CEL expressions that the API server evaluates before
	// it asks Penstock; all must hold.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	MatchConditions []admissionregistrationv1.MatchCondition `json:"matchConditions,omitempty"`

	// upstreamKinds says whether the policy also judges the upstream kinds of
	// the kinds it matches, such as a PyTorchJob for TrainingJob: Judge or
	// Ignore. Ignore when left out.
	// +optional
	UpstreamKinds UpstreamKinds `json:"upstreamKinds,omitempty"`

	// action says what a violation does: Deny, Warn or Audit. Deny when left out.
	// +optional
	Action PolicyAction `json:"action,omitempty"`

	// failurePolicy says what an error, a missed deadline or missing inventory
	// means for the request: Fail or Ignore. Fail when left out.
	// +optional
	FailurePolicy PolicyFailurePolicy `json:"failurePolicy,omitempty"`

	// parameters is any JSON object; the rule reads it as input.parameters.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`

	// overrides change parameters or action in some namespaces. They are taken
	// in order; later ones win.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Overrides []PolicyOverride `json:"overrides,omitempty"`

	// exceptions name objects that the policy lets pass for a time.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Exceptions []PolicyException `json:"exceptions,omitempty"`

	// inventory names the kinds of cluster objects that the rule reads as
	// data.inventory.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Inventory []InventoryKind `json:"inventory,omitempty"`

	// rego is the module of the rule. Each element of its set `violation` is one
	// fault: an object with msg and, if known, field and fix.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=131072
	Rego string `json:"rego,omitempty"`

	// libs are more modules for the rule to use, each in a package below lib:
	// the rule imports package lib.images as data.lib.images. They are the
	// policy's own; what other policies have under the same name is not seen.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=65536
	Libs []string `json:"libs,omitempty"`
}

// PolicyMatch says which requests a policy judges.
type PolicyMatch struct {
	// resources that the policy judges; a request matches when one of them does.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Resources []PolicyResources `json:"resources,omitempty"`

	// operations that the policy judges: CREATE, UPDATE, DELETE or CONNECT.
	// CREATE and UPDATE when left out. With DELETE the rule sees the old object
	// as the object. The subresources exec, attach, portforward and proxy come
	// with CONNECT alone.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Operations []PolicyOperation `json:"operations,omitempty"`

	// namespaceSelector selects by the labels of the request's namespace;
	// cluster-scoped objects always match. All when left out.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// objectSelector selects by the labels of the object or of the old object; of a
	// subresource that has another kind, as exec, eviction and most scale have, by
	// those of the stored object that it belongs to. All when left out.
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`

	// exclude names requests that the policy does not judge although they match.
	// +optional
	Exclude *PolicyExclude `json:"exclude,omitempty"`
}

// PolicyResources names kinds of objects.
type PolicyResources struct {
	// group of the kinds; the empty string is the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// kinds in the group, as the API server spells them: Deployment; * for all.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Kinds []string `json:"kinds,omitempty"`

	// subresources of the kinds, such as scale. Only the objects themselves
	// when left out; the empty string names the object itself beside others.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	Subresources []string `json:"subresources,omitempty"`
}

// PolicyExclude names requests that a policy does not judge.
// +kubebuilder:validation:MinProperties=1
type PolicyExclude struct {
	// namespaces by name, in which each * stands for any characters.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`

	// users by name; * as in namespaces.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Users []string `json:"users,omitempty"`

	// groups that the author of a request belongs to; * as in namespaces.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Groups []string `json:"groups,omitempty"`
}

// PolicyOverride changes parameters or action of a policy in some namespaces.
type PolicyOverride struct {
	// namespaceSelector selects the namespaces by their labels.
	// +required
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// unset names parameters of the policy, or of the overrides before, that are
	// not there in these namespaces: maxGPUs, or the member frameworks.MPI; a
	// member whose name holds a dot in brackets, limits[nvidia.com/gpu].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Unset []string `json:"unset,omitempty"`

	// parameters are merged over those of the policy, less what is unset: members
	// one by one, lists as a whole. None is null; unset removes.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`

	// action that takes the place of the policy's.
	// +optional
	Action PolicyAction `json:"action,omitempty"`
}

// PolicyException lets objects pass for a time.
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.namespaces)",message="an exception for every object would switch the policy off: name namespaces, or cluster-scoped objects by names"
type PolicyException struct {
	// namespaces by name, in which each * stands for any characters. All objects
	// in them are excepted unless names is given. Leave it out for objects that
	// live in no namespace, and give their names.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`

	// names of objects in those namespaces, or, without namespaces, of
	// cluster-scoped objects; * as in namespaces.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`

	// until is the instant from which the exception no longer counts.
	// +required
	Until metav1.Time `json:"until,omitzero"`

	// reason why the exception was made.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// InventoryKind names a kind of cluster objects that a rule reads.
type InventoryKind struct {
	// apiVersion of the kind.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`

	// kind of the objects.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
}
