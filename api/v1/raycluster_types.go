package v1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
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
	// +kubebuilder:validation:XValidation:rule="has(self.managedBy) == has(oldSelf.managedBy) && (!has(self.managedBy) || self.managedBy == oldSelf.managedBy)",message="managedBy cannot change: make a new cluster instead"
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

// RayAutoscalerVersion is a generation of Ray's autoscaler.
// +kubebuilder:validation:Enum=v1;v2
type RayAutoscalerVersion string

const (
	// RayAutoscalerV1 is the autoscaler that counts what is asked for.
	RayAutoscalerV1 RayAutoscalerVersion = "v1"
	// RayAutoscalerV2 is the autoscaler that follows each Ray node.
	RayAutoscalerV2 RayAutoscalerVersion = "v2"
)

// RayUpscalingMode says how fast Ray's autoscaler adds workers.
// +kubebuilder:validation:Enum=Default;Aggressive;Conservative
type RayUpscalingMode string

// RayAutoscaler adds Ray's autoscaler to the head pod.
// +kubebuilder:validation:MinProperties=0
type RayAutoscaler struct {
	// mode is Enabled or Disabled; Disabled when left out.
	// +optional
	Mode Switch `json:"mode,omitempty"`

	// version of the autoscaler: v1 or v2; v1 when left out.
	// +optional
	Version RayAutoscalerVersion `json:"version,omitempty"`

	// upscalingMode says how fast workers are added: Conservative never has
	// more pending workers than running ones, Aggressive, which is the Default,
	// has no such bound.
	// +optional
	UpscalingMode RayUpscalingMode `json:"upscalingMode,omitempty"`

	// idleTimeoutSeconds is after how many idle seconds a worker is removed;
	// Ray's own default is 60.
	// +optional
	// +kubebuilder:validation:Minimum=0
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`

	// image of the autoscaler's container; the head's own when left out.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image *string `json:"image,omitempty"`

	// imagePullPolicy of the autoscaler's container.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// resources of the autoscaler's container; 500m of CPU and 512Mi of memory
	// when left out.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// env of the autoscaler's container.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Env []corev1.EnvVar `json:"env,omitempty"`

	// envFrom of the autoscaler's container.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// volumeMounts of the autoscaler's container.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`

	// securityContext of the autoscaler's container.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`

	// command of the autoscaler's container, in place of the generated one,
	// which is in the variable KUBERAY_GEN_AUTOSCALER_START_CMD.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=65536
	Command []string `json:"command,omitempty"`

	// args of the autoscaler's container, in place of the generated ones.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=65536
	Args []string `json:"args,omitempty"`
}

// UpgradeType says what happens to running pods when the template of their
// role changes.
// +kubebuilder:validation:Enum=None;Recreate;RollingUpdate
type UpgradeType string

const (
	// UpgradeNone keeps running pods; new ones are made by the new template.
	UpgradeNone UpgradeType = "None"
	// UpgradeRecreate deletes all pods of the cluster at once, and then makes
	// them anew.
	UpgradeRecreate UpgradeType = "Recreate"
	// UpgradeRollingUpdate replaces the pods of each group step by step, and the
	// head when its own template changed.
	UpgradeRollingUpdate UpgradeType = "RollingUpdate"
)

// UpgradeStrategy says what happens to running pods when the template of their
// role changes.
// +kubebuilder:validation:MinProperties=0
type UpgradeStrategy struct {
	// type is None, Recreate or RollingUpdate; None when left out.
	// +optional
	Type UpgradeType `json:"type,omitempty"`

	// rollingUpdate says how a RollingUpdate proceeds.
	// +optional
	RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`
}

// RollingUpdate says how pods are replaced step by step.
// +kubebuilder:validation:MinProperties=0
type RollingUpdate struct {
	// maxUnavailable is how many replicas of a group may be missing or not
	// ready at once: a number, or a percentage of the group's replicas, rounded
	// down and at least 1. 1 when left out.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// GCSBackend names what keeps the state of the global control store.
// +kubebuilder:validation:Enum=redis
type GCSBackend string

// GCSBackendRedis is a Redis server.
const GCSBackendRedis GCSBackend = "redis"

// GCSFaultTolerance keeps the state of the global control store outside the
// head.
// +kubebuilder:validation:MinProperties=0
type GCSFaultTolerance struct {
	// backend is what keeps the state: redis. It cannot change.
	// +optional
	Backend GCSBackend `json:"backend,omitempty"`

	// redisAddress is where the Redis server is, such as redis:6379 or
	// rediss://redis.example:6380.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	RedisAddress *string `json:"redisAddress,omitempty"`

	// redisUsername is the name that the Redis server knows the cluster by.
	// +optional
	RedisUsername *Credential `json:"redisUsername,omitempty"`

	// redisPassword is the password for the Redis server, by a secret.
	// +optional
	RedisPassword *Credential `json:"redisPassword,omitempty"`

	// externalStorageNamespace tells the state of this cluster from that of
	// others on the same server; the UID of the cluster when left out.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ExternalStorageNamespace *string `json:"externalStorageNamespace,omitempty"`
}

// Credential is a value, or where the value is kept.
// +kubebuilder:validation:MinProperties=0
type Credential struct {
	// value in plain text.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Value *string `json:"value,omitempty"`

	// valueFrom says where the value is kept.
	// +optional
	ValueFrom *corev1.EnvVarSource `json:"valueFrom,omitempty"`
}

// RayAuthMode says whether a Ray cluster asks who is calling.
// +kubebuilder:validation:Enum=Disabled;Token
type RayAuthMode string

const (
	// RayAuthDisabled lets everybody in who reaches the cluster.
	RayAuthDisabled RayAuthMode = "Disabled"
	// RayAuthToken lets those in who show a token.
	RayAuthToken RayAuthMode = "Token"
)

// RayTokens says which tokens a Ray cluster takes.
// +kubebuilder:validation:Enum=Shared;Kubernetes
type RayTokens string

const (
	// RayTokensShared is one token that all share, in a secret.
	RayTokensShared RayTokens = "Shared"
	// RayTokensKubernetes are tokens of Kubernetes, which the API server checks.
	RayTokensKubernetes RayTokens = "Kubernetes"
)

// RayAuth says who may use a Ray cluster.
// +kubebuilder:validation:MinProperties=0
type RayAuth struct {
	// mode is Disabled, or Token from Ray 2.52 on; Disabled when left out.
	// +optional
	Mode RayAuthMode `json:"mode,omitempty"`

	// secretName is the secret that holds the shared token, as auth_token; one
	// is made by the name of the cluster when left out.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName *string `json:"secretName,omitempty"`

	// tokens says which tokens are taken: Shared, or Kubernetes from Ray 2.55 on;
	// Shared when left out.
	// +optional
	Tokens RayTokens `json:"tokens,omitempty"`
}
