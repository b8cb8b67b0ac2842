package conversion

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
)

// RayClusterSpecToHub sets dst, which is empty but for room in its list of
// roles, to the normal form of src. The two share what they point to. What v1 cannot say of src is left out: Convert
// is what keeps it.
func RayClusterSpecToHub(src *v1alpha1.RayClusterSpec, dst *v1.RayClusterSpec) {
	dst.RayVersion = src.RayVersion
	dst.Roles = rayRolesToHub(src, dst.Roles)
	if src.Suspend != nil || src.ManagedBy != nil {
		dst.RunPolicy = &v1.ServicePolicy{Suspend: src.Suspend, ManagedBy: src.ManagedBy}
	}
	rayHeadToHub(src, dst)
	rayAutoscalerToHub(src, dst)
	if strategy := src.UpgradeStrategy; strategy != nil {
		dst.UpgradeStrategy = &v1.UpgradeStrategy{Type: v1.UpgradeType(strategy.Type)}
		if rolling := strategy.RollingUpdate; rolling != nil {
			dst.UpgradeStrategy.RollingUpdate = &v1.RollingUpdate{MaxUnavailable: rolling.MaxUnavailable}
		}
	}
	if options := src.GCSFaultToleranceOptions; options != nil {
		dst.GCSFaultTolerance = &v1.GCSFaultTolerance{
			Backend:                  v1.GCSBackend(options.Backend),
			RedisAddress:             options.RedisAddress,
			RedisUsername:            (*v1.Credential)(options.RedisUsername),
			RedisPassword:            (*v1.Credential)(options.RedisPassword),
			ExternalStorageNamespace: options.ExternalStorageNamespace,
		}
	}
	rayAuthToHub(src.AuthOptions, dst)
}

// rayRolesToHub lists the head first, which has one pod in every version, and
// the groups after it in their order.
func rayRolesToHub(src *v1alpha1.RayClusterSpec, room []v1.RayRole) []v1.RayRole {
	if src.HeadGroupSpec == nil && src.WorkerGroupSpecs == nil {
		return nil
	}
	roles := withRoom(room, 1+len(src.WorkerGroupSpecs))
	if head := src.HeadGroupSpec; head != nil {
		one := int32(1)
		role := grown(&roles)
		role.Name, role.Replicas, role.Template = v1.RoleHead, &one, head.Template
		role.Ray = rayNodeToHub(head.RayStartParams, head.Resources, head.Labels)
	}
	for i := range src.WorkerGroupSpecs {
		group, role := &src.WorkerGroupSpecs[i], grown(&roles)
		role.Name, role.Replicas, role.Template = v1.RoleName(group.GroupName), group.Replicas, group.Template
		role.Scaling, role.Hosts, role.Suspend = rayScalingToHub(group), group.NumOfHosts, group.Suspend
		role.Ray = rayNodeToHub(group.RayStartParams, group.Resources, group.Labels)
	}
	return roles
}

// withRoom gives an empty list, never nil, with room for n items: that of a spec
// that is used again, if it has as much.
func withRoom[T any](list []T, n int) []T {
	if list != nil && cap(list) >= n {
		return list[:0]
	}
	return make([]T, 0, n)
}

// grown adds an empty item to a list that has room for it, and gives it to be
// filled in place: roles hold templates by value, which appending would copy.
func grown[T any](list *[]T) *T {
	*list = (*list)[:len(*list)+1]
	return &(*list)[len(*list)-1]
}

func rayScalingToHub(group *v1alpha1.WorkerGroupSpec) *v1.RayScaling {
	scaling := &v1.RayScaling{
		Scaling:            v1.Scaling{MinReplicas: group.MinReplicas, MaxReplicas: group.MaxReplicas},
		IdleTimeoutSeconds: group.IdleTimeoutSeconds,
		Priority:           group.Priority,
	}
	if group.ScaleStrategy != nil {
		scaling.WorkersToDelete = group.ScaleStrategy.WorkersToDelete
	}
	if scaling.Scaling == (v1.Scaling{}) && scaling.WorkersToDelete == nil &&
		scaling.IdleTimeoutSeconds == nil && scaling.Priority == nil {
		return nil
	}
	return scaling
}

func rayNodeToHub(startParams, resources, labels map[string]string) *v1.RayNode {
	if startParams == nil && resources == nil && labels == nil {
		return nil
	}
	return &v1.RayNode{StartParams: startParams, Resources: resources, Labels: labels}
}

func rayHeadToHub(src *v1alpha1.RayClusterSpec, dst *v1.RayClusterSpec) {
	head := v1.RayHead{ServiceAnnotations: src.HeadServiceAnnotations}
	if group := src.HeadGroupSpec; group != nil {
		head.ServiceType = group.ServiceType
		head.Service = headServiceToHub(group.HeadService)
		head.Ingress = ingressToHub(group.EnableIngress, group.IngressOptions)
	}
	if head.ServiceAnnotations != nil || head.ServiceType != nil || head.Service != nil || head.Ingress != nil {
		dst.Head = &head
	}
}

func headServiceToHub(src *v1alpha1.HeadService) *v1.ServiceTemplate {
	if src == nil {
		return nil
	}
	return &v1.ServiceTemplate{Metadata: (*v1.TemplateMeta)(src.Metadata), Spec: src.Spec}
}

func ingressToHub(enable *bool, options *v1alpha1.IngressOptions) *v1.RayIngress {
	if enable == nil && options == nil {
		return nil
	}
	dst := &v1.RayIngress{Mode: switchOf(enable)}
	if options != nil {
		dst.Host, dst.Path, dst.PathType, dst.TLS = options.Host, options.Path, options.PathType, options.TLS
	}
	return dst
}

func rayAutoscalerToHub(src *v1alpha1.RayClusterSpec, dst *v1.RayClusterSpec) {
	options := src.AutoscalerOptions
	if src.EnableInTreeAutoscaling == nil && options == nil {
		return
	}
	dst.Autoscaler = &v1.RayAutoscaler{}
	if options != nil {
		*dst.Autoscaler = v1.RayAutoscaler{
			Version:            v1.RayAutoscalerVersion(options.Version),
			UpscalingMode:      v1.RayUpscalingMode(options.UpscalingMode),
			IdleTimeoutSeconds: options.IdleTimeoutSeconds,
			Image:              options.Image,
			ImagePullPolicy:    options.ImagePullPolicy,
			Resources:          options.Resources,
			Env:                options.Env,
			EnvFrom:            options.EnvFrom,
			VolumeMounts:       options.VolumeMounts,
			SecurityContext:    options.SecurityContext,
			Command:            options.Command,
			Args:               options.Args,
		}
	}
	dst.Autoscaler.Mode = switchOf(src.EnableInTreeAutoscaling)
}

func rayAuthToHub(src *v1alpha1.AuthOptions, dst *v1.RayClusterSpec) {
	if src == nil {
		return
	}
	dst.Auth = &v1.RayAuth{SecretName: src.SecretName}
	switch src.Mode {
	case "":
	case "disabled":
		dst.Auth.Mode = v1.RayAuthDisabled
	case "token":
		dst.Auth.Mode = v1.RayAuthToken
	default: // What no schema admits keeps its words.
		dst.Auth.Mode = v1.RayAuthMode(src.Mode)
	}
	if src.EnableK8sTokenAuth != nil {
		dst.Auth.Tokens = v1.RayTokensShared
		if *src.EnableK8sTokenAuth {
			dst.Auth.Tokens = v1.RayTokensKubernetes
		}
	}
}

// RayClusterSpecFromHub sets dst, which is empty but for room in its list of
// groups, to the upstream shape of src. The two share what they point to. What v1alpha1 cannot say of src is left
// out: Convert is what keeps it.
func RayClusterSpecFromHub(src *v1.RayClusterSpec, dst *v1alpha1.RayClusterSpec) {
	dst.RayVersion = src.RayVersion
	rayRolesFromHub(src.Roles, dst)
	if policy := src.RunPolicy; policy != nil {
		dst.Suspend, dst.ManagedBy = policy.Suspend, policy.ManagedBy
	}
	rayHeadFromHub(src.Head, dst)
	rayAutoscalerFromHub(src.Autoscaler, dst)
	if strategy := src.UpgradeStrategy; strategy != nil {
		dst.UpgradeStrategy = &v1alpha1.RayClusterUpgradeStrategy{Type: string(strategy.Type)}
		if rolling := strategy.RollingUpdate; rolling != nil {
			dst.UpgradeStrategy.RollingUpdate = &v1alpha1.RollingUpdate{MaxUnavailable: rolling.MaxUnavailable}
		}
	}
	if tolerance := src.GCSFaultTolerance; tolerance != nil {
		dst.GCSFaultToleranceOptions = &v1alpha1.GCSFaultToleranceOptions{
			Backend:                  string(tolerance.Backend),
			RedisAddress:             tolerance.RedisAddress,
			RedisUsername:            (*v1alpha1.RedisCredential)(tolerance.RedisUsername),
			RedisPassword:            (*v1alpha1.RedisCredential)(tolerance.RedisPassword),
			ExternalStorageNamespace: tolerance.ExternalStorageNamespace,
		}
	}
	rayAuthFromHub(src.Auth, dst)
}

func rayRolesFromHub(roles []v1.RayRole, dst *v1alpha1.RayClusterSpec) {
	room := dst.WorkerGroupSpecs
	dst.WorkerGroupSpecs = nil
	for i := range roles {
		role := &roles[i]
		var node v1.RayNode
		if role.Ray != nil {
			node = *role.Ray
		}
		// A second role of the head's name is a group, which validation refuses.
		if role.Name == v1.RoleHead && dst.HeadGroupSpec == nil {
			dst.HeadGroupSpec = &v1alpha1.HeadGroupSpec{
				Template:       role.Template,
				RayStartParams: node.StartParams,
				Resources:      node.Resources,
				Labels:         node.Labels,
			}
			continue
		}
		if dst.WorkerGroupSpecs == nil {
			dst.WorkerGroupSpecs = withRoom(room, len(roles)-i)
		}
		group := grown(&dst.WorkerGroupSpecs)
		group.GroupName, group.Replicas, group.Template = string(role.Name), role.Replicas, role.Template
		group.NumOfHosts, group.Suspend = role.Hosts, role.Suspend
		group.RayStartParams, group.Resources, group.Labels = node.StartParams, node.Resources, node.Labels
		if scaling := role.Scaling; scaling != nil {
			group.MinReplicas, group.MaxReplicas = scaling.MinReplicas, scaling.MaxReplicas
			group.IdleTimeoutSeconds, group.Priority = scaling.IdleTimeoutSeconds, scaling.Priority
			if scaling.WorkersToDelete != nil {
				group.ScaleStrategy = &v1alpha1.ScaleStrategy{WorkersToDelete: scaling.WorkersToDelete}
			}
		}
	}
}

// rayHeadFromHub leaves out how a head is reached where there is no head: then
// v1alpha1 has no place for it.
func rayHeadFromHub(src *v1.RayHead, dst *v1alpha1.RayClusterSpec) {
	if src == nil {
		return
	}
	dst.HeadServiceAnnotations = src.ServiceAnnotations
	group := dst.HeadGroupSpec
	if group == nil {
		return
	}
	group.ServiceType = src.ServiceType
	if service := src.Service; service != nil {
		group.HeadService = &v1alpha1.HeadService{
			Metadata: (*v1alpha1.HeadServiceMeta)(service.Metadata),
			Spec:     service.Spec,
		}
	}
	if ingress := src.Ingress; ingress != nil {
		group.EnableIngress = boolOf(ingress.Mode)
		options := v1alpha1.IngressOptions{Host: ingress.Host, Path: ingress.Path, PathType: ingress.PathType, TLS: ingress.TLS}
		if options.Host != nil || options.Path != nil || options.PathType != "" || options.TLS != nil || group.EnableIngress == nil {
			group.IngressOptions = &options
		}
	}
}

func rayAutoscalerFromHub(src *v1.RayAutoscaler, dst *v1alpha1.RayClusterSpec) {
	if src == nil {
		return
	}
	dst.EnableInTreeAutoscaling = boolOf(src.Mode)
	if dst.EnableInTreeAutoscaling != nil && !saysMoreThanMode(src) {
		return
	}
	dst.AutoscalerOptions = &v1alpha1.AutoscalerOptions{
		Version:            string(src.Version),
		Resources:          src.Resources,
		Image:              src.Image,
		ImagePullPolicy:    src.ImagePullPolicy,
		SecurityContext:    src.SecurityContext,
		IdleTimeoutSeconds: src.IdleTimeoutSeconds,
		UpscalingMode:      string(src.UpscalingMode),
		Env:                src.Env,
		EnvFrom:            src.EnvFrom,
		VolumeMounts:       src.VolumeMounts,
		Command:            src.Command,
		Args:               src.Args,
	}
}

func saysMoreThanMode(src *v1.RayAutoscaler) bool {
	return src.Version != "" || src.UpscalingMode != "" || src.IdleTimeoutSeconds != nil ||
		src.Image != nil || src.ImagePullPolicy != corev1.PullPolicy("") || src.Resources != nil || src.Env != nil ||
		src.EnvFrom != nil || src.VolumeMounts != nil || src.SecurityContext != nil ||
		src.Command != nil || src.Args != nil
}

func rayAuthFromHub(src *v1.RayAuth, dst *v1alpha1.RayClusterSpec) {
	if src == nil {
		return
	}
	dst.AuthOptions = &v1alpha1.AuthOptions{SecretName: src.SecretName}
	switch src.Mode {
	case v1.RayAuthDisabled:
		dst.AuthOptions.Mode = "disabled"
	case v1.RayAuthToken:
		dst.AuthOptions.Mode = "token"
	default:
		dst.AuthOptions.Mode = string(src.Mode)
	}
	if src.Tokens != "" {
		kubernetes := src.Tokens == v1.RayTokensKubernetes
		dst.AuthOptions.EnableK8sTokenAuth = &kubernetes
	}
}

// switchOf and boolOf turn v1alpha1's switches, which may be left out, into
// v1's, and back.
func switchOf(on *bool) v1.Switch {
	switch {
	case on == nil:
		return ""
	case *on:
		return v1.Enabled
	default:
		return v1.Disabled
	}
}

func boolOf(mode v1.Switch) *bool {
	if mode == "" {
		return nil
	}
	on := mode == v1.Enabled
	return &on
}
