package ray

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// written is what the author of a cluster wrote of a role's pods, and nothing
// that was generated or filled in: a new Penstock must not restart anything.
// Replicas and their bounds are not in it, as the autoscaler writes them;
// neither are tolerations and scheduling gates, as Kueue does.
type written struct {
	Labels        map[string]string    `json:"labels,omitempty"`
	Annotations   map[string]string    `json:"annotations,omitempty"`
	Spec          corev1.PodSpec       `json:"spec"`
	RestartPolicy corev1.RestartPolicy `json:"restartPolicy,omitempty"`
	Ray           v1.RayNode           `json:"ray"`
	RayVersion    string               `json:"rayVersion,omitempty"`
	Auth          *v1.RayAuth          `json:"auth,omitempty"`

	// What only the head's pod depends on.
	Autoscaler *v1.RayAutoscaler     `json:"autoscaler,omitempty"`
	Redis      *v1.GCSFaultTolerance `json:"redis,omitempty"`

	// What only the pods of workers depend on.
	Address  string `json:"address,omitempty"`
	Outlives bool   `json:"outlives,omitempty"`
}

// templateHash tells pods of one template from those of another.
func templateHash(cluster *v1.RayCluster, role *v1.RayRole) string {
	w := written{
		Labels: role.Template.Labels, Annotations: role.Template.Annotations,
		Spec:          withoutDefaults(&role.Template.Spec),
		RestartPolicy: podRestartPolicy(cluster, role),
		Ray:           ptr.Deref(role.Ray, v1.RayNode{}),
		RayVersion:    ptr.Deref(cluster.Spec.RayVersion, ""),
	}
	if authenticates(cluster) {
		w.Auth = cluster.Spec.Auth.DeepCopy()
		clearDefault(&w.Auth.Tokens, v1.RayTokensShared)
	}
	if role.Name == v1.RoleHead {
		if autoscales(cluster) {
			w.Autoscaler = cluster.Spec.Autoscaler.DeepCopy()
			clearDefault(&w.Autoscaler.Version, v1.RayAutoscalerV1)
		}
		if w.Redis = cluster.Spec.GCSFaultTolerance.DeepCopy(); w.Redis != nil {
			clearDefault(&w.Redis.Backend, v1.GCSBackendRedis)
		}
	} else {
		w.Address, w.Outlives = headAddress(cluster)+":"+headPort(cluster), toleratesFaults(cluster)
	}
	// Every part of it can be encoded.
	text, _ := json.Marshal(w)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:10]
}

// withoutDefaults returns a spec without what defaulting may have filled in.
func withoutDefaults(spec *corev1.PodSpec) corev1.PodSpec {
	bare := *spec
	bare.Tolerations, bare.SchedulingGates, bare.RestartPolicy = nil, nil, ""
	bare.Containers = bareContainers(bare.Containers)
	bare.InitContainers = bareContainers(bare.InitContainers)
	return bare
}

// bareContainers leaves out that ports are of TCP, and requests that are equal
// to limits.
func bareContainers(containers []corev1.Container) []corev1.Container {
	containers = slices.Clone(containers)
	for i := range containers {
		container := &containers[i]
		container.Ports = slices.Clone(container.Ports)
		for j := range container.Ports {
			clearDefault(&container.Ports[j].Protocol, corev1.ProtocolTCP)
		}
		container.Resources.Requests = maps.Clone(container.Resources.Requests)
		maps.DeleteFunc(container.Resources.Requests, func(name corev1.ResourceName, request resource.Quantity) bool {
			limit, ok := container.Resources.Limits[name]
			return ok && limit.Equal(request)
		})
	}
	return containers
}

func clearDefault[T ~string](field *T, value T) {
	if *field == value {
		*field = ""
	}
}

// podRestartPolicy is what the kubelet shall do: what the role says, or else its
// template. Version v2 of the autoscaler takes each start of Ray for a new node,
// so nothing may be restarted in place.
func podRestartPolicy(cluster *v1.RayCluster, role *v1.RayRole) corev1.RestartPolicy {
	switch {
	case role.RestartPolicy != "":
		return corev1.RestartPolicy(role.RestartPolicy)
	case role.Template.Spec.RestartPolicy != "":
		return role.Template.Spec.RestartPolicy
	case autoscales(cluster) && cluster.Spec.Autoscaler.Version == v1.RayAutoscalerV2:
		return corev1.RestartPolicyNever
	default:
		return corev1.RestartPolicyAlways
	}
}
