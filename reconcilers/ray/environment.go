package ray

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// environment is the variables of a pod's container: those that are always
// Penstock's, and those that the author may have set otherwise.
type environment struct {
	always, unlessSet pods.Environment
}

// into puts the variables into a container, before those of its author, which
// can refer to them.
func (e environment) into(container *corev1.Container) {
	missing := slices.DeleteFunc(slices.Clone(e.unlessSet), func(v corev1.EnvVar) bool { return hasVariable(container, v.Name) })
	slices.Concat(e.always, missing).Into(container)
}

func hasVariable(container *corev1.Container, name string) bool {
	return slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == name })
}

// identity tells a Ray node which one it is.
func identity() environment {
	e := environment{}
	e.always.SetFrom("RAY_CLUSTER_NAME", "metadata.labels['"+rayClusterLabel+"']")
	e.always.SetFrom("RAY_CLUSTER_NAMESPACE", "metadata.namespace")
	e.always.SetFrom("RAY_CLOUD_INSTANCE_ID", "metadata.name")
	e.always.SetFrom("RAY_NODE_TYPE_NAME", "metadata.labels['"+rayGroupLabel+"']")
	e.unlessSet.Set("RAY_USAGE_STATS_KUBERAY_IN_USE", "1")
	e.unlessSet.Set("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1")
	return e
}

func headEnvironment(cluster *v1.RayCluster, role *v1.RayRole) environment {
	e := identity()
	e.unlessSet.Set("RAY_PORT", headPort(cluster))
	e.unlessSet.Set("RAY_ADDRESS", "127.0.0.1:"+headPort(cluster))
	e.unlessSet.Set("RAY_USAGE_STATS_EXTRA_TAGS", "kuberay_crd=RayCluster")
	if autoscales(cluster) && cluster.Spec.Autoscaler.Version == v1.RayAutoscalerV2 {
		e.unlessSet.Set(autoscalerV2Variable, "1")
	}
	if toleratesFaults(cluster) {
		redisVariables(cluster, role, &e.unlessSet)
	}
	return e
}

func workerEnvironment(cluster *v1.RayCluster) environment {
	e := identity()
	address := addressVariables(cluster)
	e.always = append(e.always, address.always...)
	e.unlessSet.Set("RAY_PORT", headPort(cluster))
	e.unlessSet.Set("RAY_ADDRESS", headAddress(cluster)+":"+headPort(cluster))
	if toleratesFaults(cluster) {
		// A worker waits for the next head for as long as one may take to come.
		e.unlessSet.Set("RAY_gcs_rpc_server_reconnect_timeout_s", "600")
	}
	return e
}

// addressVariables say where the head is, for init containers, too.
func addressVariables(cluster *v1.RayCluster) environment {
	e := environment{}
	e.always.Set("FQ_RAY_IP", headAddress(cluster))
	e.always.Set("RAY_IP", headServiceName(cluster))
	return e
}

// authenticates says whether a cluster lets in only those who show a token.
func authenticates(cluster *v1.RayCluster) bool {
	return cluster.Spec.Auth != nil && cluster.Spec.Auth.Mode == v1.RayAuthToken
}

// takesKubernetesTokens says whether the tokens are those of Kubernetes.
func takesKubernetesTokens(cluster *v1.RayCluster) bool {
	return cluster.Spec.Auth.Tokens == v1.RayTokensKubernetes
}

const (
	// tokenKey is the key of the token within its secret.
	tokenKey = "auth_token"
	// tokenMount is where a Kubernetes token is, which Ray reads there.
	tokenMount = "/var/run/secrets/ray.io/serviceaccount"
)

// authenticate gives a container the token that Ray nodes show each other.
func authenticate(cluster *v1.RayCluster, pod *corev1.Pod, container *corev1.Container) {
	if !authenticates(cluster) {
		return
	}
	e := environment{}
	e.unlessSet.Set("RAY_AUTH_MODE", "token")
	if takesKubernetesTokens(cluster) {
		e.unlessSet.Set("RAY_ENABLE_K8S_TOKEN_AUTH", "true")
		if mountAt(container, tokenMount) == nil {
			pods.Mount(pod, container, tokenMount, corev1.Volume{Name: "ray-token", VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
					ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"},
				}}},
			}})
		}
	} else {
		e.unlessSet = append(e.unlessSet, corev1.EnvVar{Name: "RAY_AUTH_TOKEN", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: tokenSecretName(cluster)}, Key: tokenKey,
			},
		}})
	}
	e.into(container)
}

func tokenSecretName(cluster *v1.RayCluster) string {
	return ptr.Deref(cluster.Spec.Auth.SecretName, cluster.Name)
}
