package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RayCluster runs a Ray cluster. Its spec takes the fields of KubeRay's
// RayCluster.
//
// +kubebuilder:object:root=true
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
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the cluster shall be.
	// +required
	Spec RayClusterSpec `json:"spec,omitzero"`

	// status is what the cluster is, in the shape of v1.
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
	// rayVersion is the version of Ray in the images.
	// +optional
	RayVersion *string `json:"rayVersion,omitempty"`

	// headGroupSpec is the head.
	// +required
	HeadGroupSpec *HeadGroupSpec `json:"headGroupSpec,omitempty"`

	// workerGroupSpecs are the groups of workers.
	// +optional
	// +kubebuilder:validation:MaxItems=63
	WorkerGroupSpecs []WorkerGroupSpec `json:"workerGroupSpecs,omitempty"`

	// enableInTreeAutoscaling adds Ray's autoscaler to the head pod.
	// +optional
	EnableInTreeAutoscaling *bool `json:"enableInTreeAutoscaling,omitempty"`

	// autoscalerOptions say how the autoscaler runs.
	// +optional
	AutoscalerOptions *AutoscalerOptions `json:"autoscalerOptions,omitempty"`

	// suspend stops the cluster: its pods are deleted.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// managedBy names the controller that reconciles the cluster.
	// +optional
	ManagedBy *string `json:"managedBy,omitempty"`

	// upgradeStrategy says what happens to running pods when the template of
	// their group changes.
	// +optional
	UpgradeStrategy *RayClusterUpgradeStrategy `json:"upgradeStrategy,omitempty"`

	// gcsFaultToleranceOptions keep the state of the head outside of it.
	// +optional
	GCSFaultToleranceOptions *GCSFaultToleranceOptions `json:"gcsFaultToleranceOptions,omitempty"`

	// headServiceAnnotations are annotations of the head's service.
	// +optional
	HeadServiceAnnotations map[string]string `json:"headServiceAnnotations,omitempty"`

	// authOptions say who may use the cluster.
	// +optional
	AuthOptions *AuthOptions `json:"authOptions,omitempty"`
}

// HeadGroupSpec is the head of a cluster.
type HeadGroupSpec struct {
	// template of the head's pod. Its first container runs Ray.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Template corev1.PodTemplateSpec `json:"template,omitzero"`

	// rayStartParams are flags of `ray start` without their dashes.
	// +optional
	RayStartParams map[string]string `json:"rayStartParams,omitempty"`

	// serviceType is the type of the head's service.
	// +optional
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer;""
	ServiceType *string `json:"serviceType,omitempty"`

	// headService is what the head's service shall be besides.
	// +optional
	HeadService *HeadService `json:"headService,omitempty"`

	// enableIngress makes an ingress for the dashboard.
	// +optional
	EnableIngress *bool `json:"enableIngress,omitempty"`

	// ingressOptions say how the ingress is reached.
	// +optional
	IngressOptions *IngressOptions `json:"ingressOptions,omitempty"`

	// resources are amounts that Ray counts in place of the container's limits.
	// +optional
	Resources map[string]string `json:"resources,omitempty"`

	// labels of the Ray node.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// HeadService is a Service.
type HeadService struct {
	// apiVersion of a Service, which says nothing here.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// kind of a Service, which says nothing here.
	// +optional
	Kind string `json:"kind,omitempty"`

	// metadata of the service: name, labels and annotations.
	// +optional
	Metadata *HeadServiceMeta `json:"metadata,omitempty"`

	// spec of the service.
	// +optional
	Spec *corev1.ServiceSpec `json:"spec,omitempty"`
}

// HeadServiceMeta is the metadata of the head's service.
type HeadServiceMeta struct {
	// name of the service.
	// +optional
	Name *string `json:"name,omitempty"`

	// labels of the service.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the service.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// IngressOptions say how the ingress is reached.
type IngressOptions struct {
	// host of the URL.
	// +optional
	Host *string `json:"host,omitempty"`

	// path of the URL.
	// +optional
	Path *string `json:"path,omitempty"`

	// pathType says how path is matched.
	// +optional
	// +kubebuilder:validation:Enum=Prefix;Exact;ImplementationSpecific
	PathType networkingv1.PathType `json:"pathType,omitempty"`

	// tls lists the hosts that are served with certificates.
	// +optional
	TLS []networkingv1.IngressTLS `json:"tls,omitempty"`
}

// WorkerGroupSpec is a group of equal workers.
type WorkerGroupSpec struct {
	// groupName names the group.
	// +required
	GroupName string `json:"groupName,omitempty"`

	// replicas is the number of replicas, kept within minReplicas and
	// maxReplicas.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// minReplicas is the smallest number of replicas.
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the largest number of replicas.
	// +optional
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// numOfHosts is the number of pods that make up one replica.
	// +optional
	NumOfHosts *int32 `json:"numOfHosts,omitempty"`

	// suspend stops the group.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// idleTimeoutSeconds is after how many idle seconds the autoscaler removes a
	// worker of this group.
	// +optional
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`

	// priority of the group among those that the autoscaler may grow.
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// scaleStrategy says which pods go first.
	// +optional
	ScaleStrategy *ScaleStrategy `json:"scaleStrategy,omitempty"`

	// template of the group's pods. Its first container runs Ray.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Template corev1.PodTemplateSpec `json:"template,omitzero"`

	// rayStartParams are flags of `ray start` without their dashes.
	// +optional
	RayStartParams map[string]string `json:"rayStartParams,omitempty"`

	// resources are amounts that Ray counts in place of the container's limits.
	// +optional
	Resources map[string]string `json:"resources,omitempty"`

	// labels of the Ray nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// ScaleStrategy says which pods go first.
type ScaleStrategy struct {
	// workersToDelete are the names of pods that go first.
	// +optional
	WorkersToDelete []string `json:"workersToDelete,omitempty"`
}

// AutoscalerOptions say how Ray's autoscaler runs.
type AutoscalerOptions struct {
	// version of the autoscaler.
	// +optional
	// +kubebuilder:validation:Enum=v1;v2
	Version string `json:"version,omitempty"`

	// resources of the autoscaler's container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// image of the autoscaler's container.
	// +optional
	Image *string `json:"image,omitempty"`

	// imagePullPolicy of the autoscaler's container.
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// securityContext of the autoscaler's container.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`

	// idleTimeoutSeconds is after how many idle seconds a worker is removed.
	// +optional
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`

	// upscalingMode says how fast workers are added.
	// +optional
	// +kubebuilder:validation:Enum=Default;Aggressive;Conservative
	UpscalingMode string `json:"upscalingMode,omitempty"`

	// env of the autoscaler's container.
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// envFrom of the autoscaler's container.
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// volumeMounts of the autoscaler's container.
	// +optional
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`

	// command of the autoscaler's container.
	// +optional
	Command []string `json:"command,omitempty"`

	// args of the autoscaler's container.
	// +optional
	Args []string `json:"args,omitempty"`
}

// RayClusterUpgradeStrategy says what happens to running pods when the template
// of their group changes.
type RayClusterUpgradeStrategy struct {
	// type is Recreate or None, as KubeRay's, or RollingUpdate.
	// +optional
	// +kubebuilder:validation:Enum=Recreate;None;RollingUpdate
	Type string `json:"type,omitempty"`

	// rollingUpdate says how a RollingUpdate proceeds.
	// +optional
	RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`
}

// RollingUpdate says how pods are replaced step by step.
type RollingUpdate struct {
	// maxUnavailable is how many replicas of a group may be missing at once.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// GCSFaultToleranceOptions keep the state of the head outside of it.
type GCSFaultToleranceOptions struct {
	// backend is what keeps the state: redis.
	// +optional
	// +kubebuilder:validation:Enum=redis
	Backend string `json:"backend,omitempty"`

	// redisAddress is where the Redis server is.
	// +optional
	RedisAddress *string `json:"redisAddress,omitempty"`

	// redisUsername is the name that the Redis server knows the cluster by.
	// +optional
	RedisUsername *RedisCredential `json:"redisUsername,omitempty"`

	// redisPassword is the password for the Redis server.
	// +optional
	RedisPassword *RedisCredential `json:"redisPassword,omitempty"`

	// externalStorageNamespace tells the state of this cluster from that of
	// others.
	// +optional
	ExternalStorageNamespace *string `json:"externalStorageNamespace,omitempty"`
}

// RedisCredential is a value, or where the value is kept.
type RedisCredential struct {
	// value in plain text.
	// +optional
	Value *string `json:"value,omitempty"`

	// valueFrom says where the value is kept.
	// +optional
	ValueFrom *corev1.EnvVarSource `json:"valueFrom,omitempty"`
}

// AuthOptions say who may use the cluster.
type AuthOptions struct {
	// mode is disabled or token.
	// +optional
	// +kubebuilder:validation:Enum=disabled;token
	Mode string `json:"mode,omitempty"`

	// secretName is the secret that holds the token, as auth_token.
	// +optional
	SecretName *string `json:"secretName,omitempty"`

	// enableK8sTokenAuth takes tokens of Kubernetes.
	// +optional
	EnableK8sTokenAuth *bool `json:"enableK8sTokenAuth,omitempty"`
}
