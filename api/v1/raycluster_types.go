package v1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RayClusterKind is the kind of RayCluster.
const RayClusterKind = "RayCluster"

// RayClusterGroupKind is the group and kind of RayCluster.
var RayClusterGroupKind = schema.GroupKind{Group: GroupName, Kind: RayClusterKind}

// RoleHead is the name of the one role of a RayCluster that leads: the pod that
// runs the global control store. Every other role is a group of workers, under
// a name of its author's.
const RoleHead RoleName = "Head"

// RayCluster runs a Ray cluster: a head, and groups of workers that join it.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=raycl,categories=penstock
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.rolesReady`
// +kubebuilder:printcolumn:name="CPUs",type=string,JSONPath=`.status.resources.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.resources.memory`
// +kubebuilder:printcolumn:name="GPUs",type=string,JSONPath=`.status.resources.gpu`
// +kubebuilder:printcolumn:name="TPUs",type=string,JSONPath=`.status.resources.tpu`,priority=1
// +kubebuilder:printcolumn:name="Head",type=string,JSONPath=`.status.head.serviceName`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RayCluster struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the cluster shall be.
	// +required
	Spec RayClusterSpec `json:"spec,omitzero"`

	// status is what the cluster is.
	// +optional
	Status RayClusterStatus `json:"status,omitzero"`
}

// RayClusterList is a list of Ray clusters.
//
// +kubebuilder:object:root=true
type RayClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the Ray clusters.
	Items []RayCluster `json:"items"`
}

// RayClusterSpec is what a Ray cluster shall be.
type RayClusterSpec struct {
	// rayVersion is the version of Ray in the images, such as 2.52.0. Probes,
	// authentication and the autoscaler follow it. When left out, probes are
	// those that every version answers.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	RayVersion *string `json:"rayVersion,omitempty"`

	// roles are the head, by the name Head, and the groups of workers, each by
	// a name of its own.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Roles []RayRole `json:"roles,omitempty"`

	// runPolicy says whether the cluster runs, and who sees to it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.managedBy) == has(oldSelf.managedBy) && (!has(self.managedBy) || self.managedBy == oldSelf.managedBy)",fieldPath=".managedBy",message="managedBy cannot change: make a new cluster instead"
	RunPolicy *ServicePolicy `json:"runPolicy,omitempty"`

	// gang asks that the cluster's pods are scheduled all together or not at
	// all; with an autoscaler, those of the smallest size.
	// +optional
	Gang *Gang `json:"gang,omitempty"`

	// head says how the head is reached.
	// +optional
	Head *RayHead `json:"head,omitempty"`

	// autoscaler adds Ray's autoscaler to the head pod, which sets the replicas
	// of the groups.
	// +optional
	Autoscaler *RayAutoscaler `json:"autoscaler,omitempty"`

	// upgradeStrategy says what happens to running pods when the template of
	// their role changes.
	// +optional
	UpgradeStrategy *UpgradeStrategy `json:"upgradeStrategy,omitempty"`

	// gcsFaultTolerance keeps the state of the head outside of it, so that the
	// cluster outlives its head.
	// +optional
	GCSFaultTolerance *GCSFaultTolerance `json:"gcsFaultTolerance,omitempty"`

	// auth says who may use the cluster.
	// +optional
	Auth *RayAuth `json:"auth,omitempty"`
}

// RayRole is the head or a group of workers. Its replicas are kept within its
// scaling; a group whose replicas are left out has its smallest number.
type RayRole struct {
	Role `json:",inline"`

	// scaling bounds the replicas of a group.
	// +optional
	Scaling *RayScaling `json:"scaling,omitempty"`

	// hosts is the number of pods that make up one replica, as for accelerators
	// that span several hosts; such pods come and go together. 1 when left out.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Hosts *int32 `json:"hosts,omitempty"`

	// suspend stops a group: its pods are deleted. False when left out.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// ray is what the role's pods tell Ray of themselves.
	// +optional
	Ray *RayNode `json:"ray,omitempty"`
}

// WantedReplicas is the number of replicas of a group, kept within its bounds;
// where none is said it is the smallest. KubeRay clamps in the same way.
func (r *RayRole) WantedReplicas() int32 {
	count := int32(0)
	if r.Replicas != nil {
		count = *r.Replicas
	}
	if r.Scaling != nil && r.Scaling.MaxReplicas != nil {
		count = min(count, *r.Scaling.MaxReplicas)
	}
	if r.Scaling != nil && r.Scaling.MinReplicas != nil {
		count = max(count, *r.Scaling.MinReplicas)
	}
	return max(count, 0)
}

// Scaling bounds the replicas of a role.
// +kubebuilder:validation:MinProperties=0
type Scaling struct {
	// minReplicas is the smallest number of replicas; 0 when left out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the largest number of replicas; unbounded when left out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
}

// RayScaling bounds the replicas of a group of Ray workers.
// +kubebuilder:validation:MinProperties=0
type RayScaling struct {
	Scaling `json:",inline"`

	// workersToDelete are the names of pods that go first when the group
	// shrinks; the autoscaler writes them. Names of pods that are not of this
	// group mean nothing.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MaxLength=253
	WorkersToDelete []string `json:"workersToDelete,omitempty"`

	// idleTimeoutSeconds is after how many idle seconds the autoscaler, from
	// its version v2 on, removes a worker of this group.
	// +optional
	// +kubebuilder:validation:Minimum=0
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`

	// priority of the group among those that the autoscaler, from its version
	// v2 on, may grow; the highest goes first. 0 when left out.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
}

// RayNode is what pods tell Ray of themselves.
// +kubebuilder:validation:MinProperties=0
type RayNode struct {
	// startParams are flags of `ray start` without their dashes. What is left
	// out follows from the limits of the first container.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	StartParams map[string]string `json:"startParams,omitempty"`

	// resources are amounts that Ray counts in place of those that follow from
	// the limits of the first container: CPU, GPU, memory, or names of Ray's own.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	Resources map[string]string `json:"resources,omitempty"`

	// labels of the Ray node, which the pods carry, too.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	Labels map[string]string `json:"labels,omitempty"`
}

// RayHead says how the head is reached.
// +kubebuilder:validation:MinProperties=0
type RayHead struct {
	// serviceType is the type of the head's service: ClusterIP, NodePort or
	// LoadBalancer. When left out it is ClusterIP, without an address of its
	// own: its name leads to the pod.
	// +optional
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer;""
	ServiceType *string `json:"serviceType,omitempty"`

	// service is what the head's service shall be besides; its name can be
	// chosen here.
	// +optional
	Service *ServiceTemplate `json:"service,omitempty"`

	// serviceAnnotations are annotations of the head's service.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	ServiceAnnotations map[string]string `json:"serviceAnnotations,omitempty"`

	// ingress leads from outside to the dashboard.
	// +optional
	Ingress *RayIngress `json:"ingress,omitempty"`
}

// ServiceTemplate is a Service that Penstock makes, but for what it has to
// decide itself.
// +kubebuilder:validation:MinProperties=0
type ServiceTemplate struct {
	// metadata of the service: name, labels and annotations.
	// +optional
	Metadata *TemplateMeta `json:"metadata,omitempty"`

	// spec of the service.
	// +optional
	Spec *corev1.ServiceSpec `json:"spec,omitempty"`
}

// TemplateMeta is the part of an object's metadata that its author may choose.
// +kubebuilder:validation:MinProperties=0
type TemplateMeta struct {
	// name of the object; generated when left out.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name *string `json:"name,omitempty"`

	// labels of the object.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the object.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Switch turns a part of a workload on or off.
// +kubebuilder:validation:Enum=Enabled;Disabled
type Switch string

const (
	// Enabled means that the part is made.
	Enabled Switch = "Enabled"
	// Disabled means that the part is not made, whatever else is said of it.
	Disabled Switch = "Disabled"
)

// RayIngress leads from outside to the dashboard.
// +kubebuilder:validation:MinProperties=0
type RayIngress struct {
	// mode is Enabled or Disabled; Disabled when left out.
	// +optional
	Mode Switch `json:"mode,omitempty"`

	// host of the URL; any when left out.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Host *string `json:"host,omitempty"`

	// path of the URL; / when left out.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path *string `json:"path,omitempty"`

	// pathType says how path is matched: Prefix, Exact or
	// ImplementationSpecific; Prefix when left out.
	// +optional
	// +kubebuilder:validation:Enum=Prefix;Exact;ImplementationSpecific
	PathType networkingv1.PathType `json:"pathType,omitempty"`

	// tls lists the hosts that are served with certificates, and their secrets.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	TLS []networkingv1.IngressTLS `json:"tls,omitempty"`
}
