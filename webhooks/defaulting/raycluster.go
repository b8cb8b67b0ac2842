package defaulting

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// autoscalerV2Variable was the switch of Ray's second autoscaler, on the head's
// container, before the version could be said.
const autoscalerV2Variable = "RAY_enable_autoscaler_v2"

// DefaultRayCluster writes every default of a Ray cluster that the schema of v1
// does not write.
//
// Each default can be said in v1alpha1 too, so that none of them ends up in the
// restore annotation. What is written and where it comes from (KubeRay 1.7, KR):
//
//	roles[].replicas              the head's 1; a group's smallest number     KR
//	                              or what it was, with the autoscaler         ours, InheritRayCluster
//	roles[].hosts                 1, of a group                               KR
//	roles[].scaling.minReplicas   0, of a group                               KR
//	roles[].template…protocol     TCP                                         Kubernetes, schema of v1
//	roles[].template…resources    extended resources: request = limit         Kubernetes, which does limit to request
//	roles[].template…restartPolicy  Never, with autoscaler v2                 KR
//	runPolicy.suspend             false                                       ours
//	head.ingress.mode             Disabled                                    KR
//	autoscaler.mode               Disabled                                    KR
//	autoscaler.version            v1; v2 if the head's variable says so       KR
//	upgradeStrategy.type          None                                        KR
//	gcsFaultTolerance.backend     redis                                       KR
//	auth.mode, auth.tokens        Disabled; Shared with Token                 KR
//
// Left out on purpose: scaling.maxReplicas, where absence means no bound;
// roles[].restartPolicy, as v1alpha1 says it in the template alone.
func DefaultRayCluster(cluster *v1.RayCluster) {
	if cluster == nil {
		return
	}
	spec := &cluster.Spec
	if spec.RunPolicy == nil {
		spec.RunPolicy = &v1.ServicePolicy{}
	}
	setDefault(&spec.RunPolicy.Suspend, false)
	if spec.Head != nil && spec.Head.Ingress != nil {
		setEmpty(&spec.Head.Ingress.Mode, v1.Disabled)
	}
	if spec.Autoscaler != nil {
		setEmpty(&spec.Autoscaler.Mode, v1.Disabled)
	}
	if spec.UpgradeStrategy != nil {
		setEmpty(&spec.UpgradeStrategy.Type, v1.UpgradeNone)
	}
	if spec.GCSFaultTolerance != nil {
		setEmpty(&spec.GCSFaultTolerance.Backend, v1.GCSBackendRedis)
	}
	if spec.Auth != nil {
		setEmpty(&spec.Auth.Mode, v1.RayAuthDisabled)
		if spec.Auth.Mode == v1.RayAuthToken {
			setEmpty(&spec.Auth.Tokens, v1.RayTokensShared)
		}
	}
	if spec.Autoscaler != nil && spec.Autoscaler.Mode == v1.Enabled {
		setEmpty(&spec.Autoscaler.Version, impliedAutoscaler(spec))
	}
	for i := range spec.Roles {
		defaultRayRole(spec, &spec.Roles[i])
	}
}

// InheritRayCluster takes over from a stored cluster the replicas that an update
// leaves out and Ray's autoscaler writes. Client-side apply replaces the list of
// groups by that of the manifest: without this, applying an unchanged manifest
// would delete every worker that the autoscaler asked for.
func InheritRayCluster(old, cluster *v1.RayCluster) {
	if !autoscales(&old.Spec) || !autoscales(&cluster.Spec) {
		return
	}
	for i := range cluster.Spec.Roles {
		role := &cluster.Spec.Roles[i]
		was := slices.IndexFunc(old.Spec.Roles, func(other v1.RayRole) bool { return other.Name == role.Name })
		if was >= 0 && role.Name != v1.RoleHead && role.Replicas == nil {
			role.Replicas = old.Spec.Roles[was].Replicas
		}
	}
}

func autoscales(spec *v1.RayClusterSpec) bool {
	return spec.Autoscaler != nil && spec.Autoscaler.Mode == v1.Enabled
}

func defaultRayRole(spec *v1.RayClusterSpec, role *v1.RayRole) {
	least := int32(1)
	if role.Name != v1.RoleHead {
		if role.Scaling == nil {
			role.Scaling = &v1.RayScaling{}
		}
		setDefault(&role.Scaling.MinReplicas, 0)
		setDefault(&role.Hosts, 1)
		least = max(*role.Scaling.MinReplicas, 0)
	}
	setDefault(&role.Replicas, least)
	pod := &role.Template.Spec
	defaultPod(pod)
	// The second autoscaler takes a pod for a Ray node: one that restarts in
	// place would be two of them.
	if autoscaler := spec.Autoscaler; autoscaler != nil && autoscaler.Mode == v1.Enabled &&
		autoscaler.Version == v1.RayAutoscalerV2 && role.RestartPolicy == "" && len(pod.Containers) > 0 {
		setEmpty(&pod.RestartPolicy, corev1.RestartPolicyNever)
	}
}

// impliedAutoscaler is the version that is meant where none is said.
func impliedAutoscaler(spec *v1.RayClusterSpec) v1.RayAutoscalerVersion {
	for i := range spec.Roles {
		if pod := &spec.Roles[i].Template.Spec; spec.Roles[i].Name == v1.RoleHead && len(pod.Containers) > 0 {
			if slices.ContainsFunc(pod.Containers[0].Env, turnsOnAutoscalerV2) {
				return v1.RayAutoscalerV2
			}
		}
	}
	return v1.RayAutoscalerV1
}

func turnsOnAutoscalerV2(variable corev1.EnvVar) bool {
	return variable.Name == autoscalerV2Variable && (variable.Value == "1" || strings.EqualFold(variable.Value, "true"))
}
