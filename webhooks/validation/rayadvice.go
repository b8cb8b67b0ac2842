package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

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
	advice := adviseRaySpec(&cluster.Spec)
	if old == nil {
		return advice
	}
	known := map[string]bool{}
	for _, line := range adviseRaySpec(&old.Spec) {
		known[line.Error()] = true
	}
	return slices.DeleteFunc(advice, func(line *field.Error) bool { return known[line.Error()] })
}

func adviseRaySpec(spec *v1.RayClusterSpec) field.ErrorList {
	var advice field.ErrorList
	path := field.NewPath("spec")
	if serviceManagedBy(spec.RunPolicy) == managedByKubeRay {
		advice = append(advice, field.Forbidden(path.Child("runPolicy", "managedBy"),
			"names KubeRay's operator, which runs no RayCluster of penstock.dev, and Penstock leaves the cluster to it: nobody will run it; make it without managedBy"))
	}
	advice = append(advice, adviseManager(serviceManagedBy(spec.RunPolicy), path.Child("runPolicy", "managedBy"))...)
	for i := range spec.Roles {
		role, rolePath := &spec.Roles[i], path.Child("roles").Index(i)
		if wanted := role.WantedReplicas(); role.Name != v1.RoleHead && role.Replicas != nil && *role.Replicas != wanted {
			advice = append(advice, field.Forbidden(rolePath.Child("replicas"), fmt.Sprintf(
				"is %d, out of the group's bounds: it has %d", *role.Replicas, wanted)))
		}
		advice = append(advice, adviseTemplateMeta(&role.Template.ObjectMeta, rolePath.Child("template", "metadata"))...)
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
