package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// managedByKubeRay is what KubeRay's operator calls itself.
const managedByKubeRay = "ray.io/kuberay-operator"

// AdviseRayCluster returns what the author of a defaulted Ray cluster should know
// though it is admitted, with v1 field paths: what is written and will have no
// effect. On update it returns what old did not have; on create old is nil.
func AdviseRayCluster(old, cluster *v1.RayCluster) field.ErrorList {
	if cluster == nil {
		return nil
	}
	advice := adviseRaySpec(cluster)
	if old == nil {
		return advice
	}
	known := map[string]bool{}
	for _, line := range adviseRaySpec(old) {
		known[line.Error()] = true
	}
	advice = slices.DeleteFunc(advice, func(line *field.Error) bool { return known[line.Error()] })
	return append(advice, adviseRayChange(&old.Spec, &cluster.Spec)...)
}

// adviseRayChange tells what a change does not do to a cluster that runs.
func adviseRayChange(old, spec *v1.RayClusterSpec) field.ErrorList {
	var advice field.ErrorList
	path := field.NewPath("spec")
	if inRedis(old) && !(inRedis(spec) && keepsState(old.GCSFaultTolerance, spec.GCSFaultTolerance)) {
		advice = append(advice, field.Forbidden(path.Child("gcsFaultTolerance"),
			"leads the cluster away from the state that it has in Redis: that stays there, and nothing removes it when the cluster is deleted; remove it by hand, or make a new cluster instead"))
	}
	replaces := spec.UpgradeStrategy != nil && spec.UpgradeStrategy.Type != "" && spec.UpgradeStrategy.Type != v1.UpgradeNone
	if was, is := headPortOf(old), headPortOf(spec); was != is && !replaces {
		advice = append(advice, field.Forbidden(path.Child("roles").Index(headIndex(spec)).Child("ray", "startParams").Key("port"), fmt.Sprintf(
			"takes effect with the next pods: workers that run know the head by port %s, and lose it when it is made anew; let upgradeStrategy replace them, or delete the pods", was)))
	}
	if enablesAutoscaler(spec) && !enablesAutoscaler(old) && !replaces {
		advice = append(advice, field.Forbidden(path.Child("autoscaler", "mode"),
			"takes effect with the next head: the one that runs has no autoscaler; delete its pod, or let upgradeStrategy replace it"))
	}
	return advice
}

// headIndex is where the head is in the roles, -1 where it is not.
func headIndex(spec *v1.RayClusterSpec) int {
	return slices.IndexFunc(spec.Roles, func(role v1.RayRole) bool { return role.Name == v1.RoleHead })
}

// headPortOf is where workers find the head.
func headPortOf(spec *v1.RayClusterSpec) string {
	if i := headIndex(spec); i >= 0 && spec.Roles[i].Ray != nil && spec.Roles[i].Ray.StartParams["port"] != "" {
		return spec.Roles[i].Ray.StartParams["port"]
	}
	return "6379"
}

func enablesAutoscaler(spec *v1.RayClusterSpec) bool {
	return spec.Autoscaler != nil && spec.Autoscaler.Mode == v1.Enabled
}

func inRedis(spec *v1.RayClusterSpec) bool {
	options := spec.GCSFaultTolerance
	return options != nil && (options.Backend == "" || options.Backend == v1.GCSBackendRedis)
}

// keepsState says whether two ways to keep state in Redis lead to the same.
func keepsState(old, options *v1.GCSFaultTolerance) bool {
	return ptr.Equal(old.RedisAddress, options.RedisAddress) && ptr.Equal(old.ExternalStorageNamespace, options.ExternalStorageNamespace)
}

func adviseRaySpec(cluster *v1.RayCluster) field.ErrorList {
	var advice field.ErrorList
	spec := &cluster.Spec
	path := field.NewPath("spec")
	if serviceManagedBy(spec.RunPolicy) == managedByKubeRay {
		advice = append(advice, field.Forbidden(path.Child("runPolicy", "managedBy"),
			"names KubeRay's operator, which runs no RayCluster of penstock.dev, and Penstock leaves the cluster to it: nobody will run it; make it without managedBy"))
	}
	advice = append(advice, adviseManager(serviceManagedBy(spec.RunPolicy), path.Child("runPolicy", "managedBy"))...)
	advice = append(advice, adviseIdle(spec, path)...)
	advice = append(advice, adviseNodePorts(spec.Head, path.Child("head"))...)
	for i := range spec.Roles {
		role, rolePath := &spec.Roles[i], path.Child("roles").Index(i)
		if wanted := role.WantedReplicas(); role.Name != v1.RoleHead && role.Replicas != nil && *role.Replicas != wanted {
			advice = append(advice, field.Forbidden(rolePath.Child("replicas"), fmt.Sprintf(
				"is %d, out of the group's bounds: it has %d", *role.Replicas, wanted)))
		}
		advice = append(advice, adviseStart(cluster, role, rolePath)...)
		advice = append(advice, adviseTemplateMeta(&role.Template.ObjectMeta, rolePath.Child("template", "metadata"))...)
		advice = append(advice, advisePorts(role.Template.Spec.Containers, rolePath.Child("template", "spec", "containers"))...)
		for _, label := range slices.Sorted(maps.Keys(role.Template.Labels)) {
			if isRayLabel(label) && !(label == v1.ManagedByLabel && role.Template.Labels[label] == v1.ManagedByValue) {
				advice = append(advice, field.Forbidden(rolePath.Child("template", "metadata", "labels").Key(label),
					"is a label that Penstock sets on every pod, and this value is dropped: remove it"))
			}
		}
	}
	return advice
}

func isRayLabel(label string) bool {
	switch label {
	case "ray.io/cluster", "ray.io/group", "ray.io/node-type", "ray.io/is-ray-node", "ray.io/identifier":
		return true
	}
	return isOwnLabel(label) || strings.HasPrefix(label, v1.GroupName+"/")
}

// adviseIdle finds options that say nothing, or say it to nobody.
func adviseIdle(spec *v1.RayClusterSpec, path *field.Path) field.ErrorList {
	var advice field.ErrorList
	if auth := spec.Auth; auth != nil && auth.Mode != v1.RayAuthToken && ptr.Deref(auth.SecretName, "") != "" {
		advice = append(advice, field.Forbidden(path.Child("auth", "secretName"), "has no effect, as nobody is asked for a token: set mode to Token, or remove it"))
	}
	if options := spec.GCSFaultTolerance; options != nil {
		for _, credential := range []struct {
			name string
			set  *v1.Credential
		}{{"redisUsername", options.RedisUsername}, {"redisPassword", options.RedisPassword}} {
			if credential.set != nil && credential.set.Value == nil && credential.set.ValueFrom == nil {
				advice = append(advice, field.Forbidden(path.Child("gcsFaultTolerance", credential.name), "is empty, and Redis is asked without: name a Secret by valueFrom.secretKeyRef, or remove it"))
			}
		}
	}
	return advice
}

// adviseNodePorts finds ports that the API server does not give out, unless it
// runs with another --service-node-port-range than most do.
func adviseNodePorts(head *v1.RayHead, path *field.Path) field.ErrorList {
	if head == nil || head.Service == nil || head.Service.Spec == nil {
		return nil
	}
	const least, most = 30000, 32767
	var advice field.ErrorList
	for i, port := range head.Service.Spec.Ports {
		if port.NodePort != 0 && (port.NodePort < least || port.NodePort > most) {
			advice = append(advice, field.Forbidden(path.Child("service", "spec", "ports").Index(i).Child("nodePort"), fmt.Sprintf(
				"is out of %d to %d, which is what most API servers give out: where this one does, neither the service nor the pods are made", least, most)))
		}
	}
	return advice
}
