package validation

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

func validateHead(cluster string, head *v1.RayHead, path *field.Path) field.ErrorList {
	if head == nil {
		return nil
	}
	f := &findings{errs: validateHeadName(cluster, head, path.Child("service", "metadata", "name"))}
	f.headService(head, path)
	if head.Ingress != nil {
		f.ingress(head.Ingress, path.Child("ingress"))
	}
	return f.errs
}

func validateHeadName(cluster string, head *v1.RayHead, path *field.Path) field.ErrorList {
	if head.Service == nil || head.Service.Metadata == nil || head.Service.Metadata.Name == nil {
		return nil
	}
	name := *head.Service.Metadata.Name
	if name != "" && len(validation.IsDNS1035Label(name)) > 0 {
		return field.ErrorList{field.Invalid(path, name,
			"must be a DNS label: use at most 63 lower-case letters, digits and -, beginning with a letter")}
	}
	// The cluster's other services have these names.
	if cluster != "" && (name == cluster+"-serve-svc" || name == cluster+"-headless") {
		return field.ErrorList{field.Invalid(path, name,
			"is the name of another service of this cluster: use another, or leave it out")}
	}
	return nil
}

// autoscalerCommandVariable holds the command that the autoscaler's container
// would run; Penstock sets it.
const autoscalerCommandVariable = "KUBERAY_GEN_AUTOSCALER_START_CMD"

func validateAutoscaler(spec *v1.RayClusterSpec, path *field.Path) field.ErrorList {
	autoscaler := spec.Autoscaler
	if autoscaler == nil {
		return validateOldSwitch(spec)
	}
	var errs field.ErrorList
	for i, variable := range autoscaler.Env {
		if variable.Name == autoscalerCommandVariable {
			errs = append(errs, field.Forbidden(path.Child("env").Index(i).Child("name"),
				"is set by Penstock to the generated command: remove it, and write command and args to run another"))
		}
	}
	errs = append(errs, validateAutoscalerContainer(spec, path)...)
	return append(errs, validateOldSwitch(spec)...)
}

// validateAutoscalerContainer judges the container as one of the head's pod,
// whose volumes it may mount.
func validateAutoscalerContainer(spec *v1.RayClusterSpec, path *field.Path) field.ErrorList {
	autoscaler, pod := spec.Autoscaler, &corev1.PodSpec{}
	for i := range spec.Roles {
		if spec.Roles[i].Name == v1.RoleHead {
			pod = &spec.Roles[i].Template.Spec
		}
	}
	container := &corev1.Container{
		Name: "autoscaler", Image: "the head's", ImagePullPolicy: autoscaler.ImagePullPolicy,
		Env: autoscaler.Env, EnvFrom: autoscaler.EnvFrom, VolumeMounts: autoscaler.VolumeMounts, SecurityContext: autoscaler.SecurityContext,
	}
	if autoscaler.Image != nil && *autoscaler.Image != "" {
		container.Image = *autoscaler.Image
	}
	if autoscaler.Resources != nil {
		container.Resources = *autoscaler.Resources
	}
	judge := &containerJudge{findings: &findings{}, pod: pod, volumes: map[string]*corev1.Volume{}, seen: map[string]bool{}}
	for i := range pod.Volumes {
		judge.volumes[pod.Volumes[i].Name] = &pod.Volumes[i]
	}
	judge.judge(container, path)
	return judge.errs
}

// validateOldSwitch refuses the variable by which version v2 was once turned on,
// where it contradicts what is said now.
func validateOldSwitch(spec *v1.RayClusterSpec) field.ErrorList {
	return eachHeadVariable(spec, func(variable corev1.EnvVar, path *field.Path) *field.Error {
		on := variable.Value == "1" || strings.EqualFold(variable.Value, "true")
		switch {
		case variable.Name != "RAY_enable_autoscaler_v2" || !on || spec.Autoscaler != nil && spec.Autoscaler.Version == v1.RayAutoscalerV2:
			return nil
		case !enablesAutoscaler(spec):
			return field.Forbidden(path, "turns on an autoscaler that is not enabled: enable it, or remove the variable")
		}
		return field.Forbidden(path, fmt.Sprintf(
			"contradicts the autoscaler's version, which is %s: remove the variable, and say the version that is meant", spec.Autoscaler.Version))
	})
}

// eachHeadVariable asks of each variable of the head's Ray container what is
// wrong with it.
func eachHeadVariable(spec *v1.RayClusterSpec, fault func(corev1.EnvVar, *field.Path) *field.Error) field.ErrorList {
	var errs field.ErrorList
	for i := range spec.Roles {
		pod := &spec.Roles[i].Template.Spec
		if spec.Roles[i].Name != v1.RoleHead || len(pod.Containers) == 0 {
			continue
		}
		path := field.NewPath("spec", "roles").Index(i).Child("template", "spec", "containers").Index(0).Child("env")
		for j, variable := range pod.Containers[0].Env {
			if err := fault(variable, path.Index(j)); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

func validateUpgrade(strategy *v1.UpgradeStrategy, path *field.Path) field.ErrorList {
	if strategy == nil || strategy.RollingUpdate == nil {
		return nil
	}
	path = path.Child("rollingUpdate")
	if strategy.Type != v1.UpgradeRollingUpdate {
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("is for type RollingUpdate, and type is %s: remove it or change type", strategy.Type))}
	}
	most := strategy.RollingUpdate.MaxUnavailable
	if most == nil {
		return nil
	}
	share, percent := strings.CutSuffix(most.StrVal, "%")
	count, err := strconv.Atoi(share)
	if most.Type == intstr.Int {
		count, percent, err = most.IntValue(), true, nil
	}
	if err != nil || !percent || count < 1 || most.Type == intstr.String && count > 100 {
		return field.ErrorList{field.Invalid(path.Child("maxUnavailable"), most.String(),
			"must be a number from 1, or a percentage up to 100%: say how many replicas of a group may be missing at once")}
	}
	return nil
}

const (
	// faultToleranceAnnotation is the older way to turn fault tolerance on.
	faultToleranceAnnotation = "ray.io/ft-enabled"
	// storageNamespaceAnnotation is the older place of externalStorageNamespace.
	storageNamespaceAnnotation = "ray.io/external-storage-namespace"
)

func validateFaultTolerance(cluster *v1.RayCluster, path *field.Path) field.ErrorList {
	spec, annotations := &cluster.Spec, field.NewPath("metadata", "annotations")
	tolerance := spec.GCSFaultTolerance
	if tolerance == nil {
		if cluster.Annotations[faultToleranceAnnotation] == "true" {
			return nil
		}
		return eachHeadVariable(spec, func(variable corev1.EnvVar, path *field.Path) *field.Error {
			if variable.Name != "RAY_REDIS_ADDRESS" {
				return nil
			}
			return field.Forbidden(path, "turns on fault tolerance behind the operator's back, and nothing is cleaned up: write gcsFaultTolerance (gcsFaultToleranceOptions in v1alpha1) instead")
		})
	}
	path = path.Child("gcsFaultTolerance")
	var errs field.ErrorList
	if tolerance.RedisAddress == nil || *tolerance.RedisAddress == "" {
		errs = append(errs, field.Required(path.Child("redisAddress"), "the state is kept in Redis: say where it is, such as redis:6379"))
	}
	if password := tolerance.RedisPassword; password != nil && password.Value != nil && *password.Value != "" {
		fault := field.Forbidden(path.Child("redisPassword", "value"),
			"is a password in plain text, for everybody to read who may read the cluster: put it into a Secret, and name that by valueFrom.secretKeyRef")
		errs = append(errs, fault)
	}
	for _, name := range []string{faultToleranceAnnotation, storageNamespaceAnnotation} {
		if value, set := cluster.Annotations[name]; set {
			errs = append(errs, field.Invalid(annotations.Key(name), value,
				"is the older form of gcsFaultTolerance (gcsFaultToleranceOptions in v1alpha1) and cannot stand beside it: remove it"))
		}
	}
	errs = append(errs, validateRedisParams(spec)...)
	return append(errs, eachHeadVariable(spec, func(variable corev1.EnvVar, path *field.Path) *field.Error {
		switch variable.Name {
		case "RAY_REDIS_ADDRESS", "REDIS_PASSWORD", "REDIS_USERNAME":
			return field.Forbidden(path, variable.Name+" is set by Penstock from gcsFaultTolerance (gcsFaultToleranceOptions in v1alpha1): remove it, and write it there")
		}
		return nil
	})...)
}

func validateRedisParams(spec *v1.RayClusterSpec) field.ErrorList {
	var errs field.ErrorList
	for i := range spec.Roles {
		node := spec.Roles[i].Ray
		if node == nil || spec.Roles[i].Name != v1.RoleHead {
			continue
		}
		params := field.NewPath("spec", "roles").Index(i).Child("ray", "startParams")
		for _, name := range []string{"redis-password", "redis-username"} {
			if _, set := node.StartParams[name]; set {
				errs = append(errs, field.Forbidden(params.Key(name), "is said by gcsFaultTolerance (gcsFaultToleranceOptions in v1alpha1): remove it, and write it there"))
			}
		}
	}
	return errs
}

func validateRayAuth(spec *v1.RayClusterSpec, path *field.Path) field.ErrorList {
	auth := spec.Auth
	if auth == nil {
		return nil
	}
	versionPath, path := path.Child("rayVersion"), path.Child("auth")
	if auth.Mode != v1.RayAuthToken {
		var errs field.ErrorList
		if auth.Tokens == v1.RayTokensKubernetes {
			errs = append(errs, field.Forbidden(path.Child("tokens"), "means something with mode Token only: set that, or remove it"))
		}
		return errs
	}
	var errs field.ErrorList
	minor, why := 52, "tokens need Ray 2.52"
	if auth.Tokens == v1.RayTokensKubernetes {
		minor, why = 55, "tokens of Kubernetes need Ray 2.55"
		if auth.SecretName != nil && *auth.SecretName != "" {
			errs = append(errs, field.Forbidden(path.Child("secretName"), "is for a shared token, and tokens are Kubernetes': remove it, or set tokens to Shared"))
		}
	}
	switch _, _, ok := rayVersion(spec.RayVersion); {
	case spec.RayVersion == nil || *spec.RayVersion == "":
		errs = append(errs, field.Required(versionPath, why+": say which version is in the image"))
	case !ok:
		errs = append(errs, field.Invalid(versionPath, *spec.RayVersion, "must be a version of Ray such as 2.52.0, as "+why+": write the one in the image"))
	case olderThan(spec.RayVersion, 2, minor):
		errs = append(errs, field.Invalid(versionPath, *spec.RayVersion, "is too old, as "+why+": use a newer image, or set auth.mode to Disabled (authOptions.mode: disabled in v1alpha1)"))
	}
	return errs
}

// rayVersion reads the first two numbers of a version of Ray.
func rayVersion(version *string) (major, minor int, ok bool) {
	if version == nil {
		return 0, 0, false
	}
	parts := strings.SplitN(strings.TrimPrefix(*version, "v"), ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(parts[1])
	return major, minor, err == nil
}

// olderThan reports whether a version of Ray is known to be older.
func olderThan(version *string, major, minor int) bool {
	haveMajor, haveMinor, ok := rayVersion(version)
	return ok && (haveMajor < major || haveMajor == major && haveMinor < minor)
}
