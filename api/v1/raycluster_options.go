package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

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
