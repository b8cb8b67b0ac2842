package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// longestRaySuffix is the longest name that is made of a cluster's: that of its
// serve service. KubeRay reserves the same room (controllers/ray/utils).
const longestRaySuffix = "-serve-svc"

// ValidateRayCluster returns every fault of a defaulted Ray cluster at once,
// with v1 field paths. On create old is nil.
//
// The rules are those that KubeRay 1.7 applies when it reconciles
// (controllers/ray/utils/validation.go), where nobody sees them but in an event,
// and those without which pods of one group would be taken for another's.
func ValidateRayCluster(old, cluster *v1.RayCluster) field.ErrorList {
	if cluster == nil {
		return nil
	}
	spec, path := &cluster.Spec, field.NewPath("spec")
	errs := validateRayName(cluster)
	errs = append(errs, validateRayRoles(cluster, path.Child("roles"))...)
	if spec.RunPolicy != nil {
		errs = append(errs, validateManagedBy(spec.RunPolicy.ManagedBy, path.Child("runPolicy", "managedBy"))...)
	}
	errs = append(errs, validateRayGang(spec, path.Child("gang"))...)
	errs = append(errs, validateHead(cluster.Name, spec.Head, path.Child("head"))...)
	errs = append(errs, validateAutoscaler(spec, path.Child("autoscaler"))...)
	errs = append(errs, validateUpgrade(spec.UpgradeStrategy, path.Child("upgradeStrategy"))...)
	errs = append(errs, validateFaultTolerance(cluster, path)...)
	errs = append(errs, validateRayAuth(spec, path)...)
	if old != nil {
		errs = append(errs, validateRayUpdate(&old.Spec, spec, path)...)
	}
	return errs
}

func validateRayName(cluster *v1.RayCluster) field.ErrorList {
	path, name, generated := field.NewPath("metadata", "name"), cluster.Name, 0
	if name == "" && cluster.GenerateName != "" {
		path, generated = field.NewPath("metadata", "generateName"), len(generatedSuffix)
		name = cluster.GenerateName[:min(len(cluster.GenerateName), generatedBase)] + generatedSuffix
	}
	if name == "" {
		return nil
	}
	most := validation.DNS1035LabelMaxLength - len(longestRaySuffix)
	if excess := len(name) - most; excess > 0 {
		return field.ErrorList{field.Invalid(path, name, fmt.Sprintf(
			"is %s too long: the service %s%s would have %d, and %d is the most; shorten it to %d or fewer",
			characters(excess), name, longestRaySuffix, len(name)+len(longestRaySuffix),
			validation.DNS1035LabelMaxLength, most-generated))}
	}
	if len(validation.IsDNS1035Label(name)) > 0 {
		return field.ErrorList{field.Invalid(path, name,
			"must be a DNS label, as pods and services are named after the cluster: "+
				"use lower-case letters, digits and -, beginning with a letter and ending with a letter or digit")}
	}
	return nil
}

func validateRayRoles(cluster *v1.RayCluster, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	spec := &cluster.Spec
	seen := map[string]v1.RoleName{}
	for i := range spec.Roles {
		role, rolePath := &spec.Roles[i], path.Index(i)
		folded := strings.ToLower(string(role.Name))
		earlier, twice := seen[folded]
		if isSecondHead(role.Name, twice) {
			errs = append(errs, secondHead(rolePath.Child("name"), role.Name))
			// What is said of it as of a head or a group would be of the wrong one.
			continue
		}
		switch {
		case role.Name == "":
			errs = append(errs, field.Required(rolePath.Child("name"), "a group of workers needs a name: its pods are named and found by it"))
		case twice:
			errs = append(errs, duplicateRole(rolePath, role.Name, earlier))
		}
		seen[folded] = role.Name
		if role.Name == v1.RoleHead {
			errs = append(errs, validateHeadRole(role, rolePath)...)
		} else {
			errs = append(errs, validateGroup(spec, role, rolePath)...)
		}
		errs = append(errs, validateRayNode(role, rolePath)...)
		errs = append(errs, takenContainers(spec, role, rolePath)...)
		if !startsItself(cluster, role) {
			errs = append(errs, startFaults(role, rolePath)...)
		}
	}
	if _, found := seen[strings.ToLower(string(v1.RoleHead))]; !found {
		errs = append(errs, field.Required(path, fmt.Sprintf("a cluster needs a head: add role %s", v1.RoleHead)))
	}
	return errs
}

// isSecondHead says whether a group has the name of the head, which may stand
// before it or after it.
func isSecondHead(name v1.RoleName, twice bool) bool {
	return strings.EqualFold(string(name), string(v1.RoleHead)) && (twice || name != v1.RoleHead)
}

func secondHead(path *field.Path, name v1.RoleName) *field.Error {
	fault := field.Invalid(path, name, "is the name of the head, whose pods its own would be taken for: give the group another name")
	if name == v1.RoleHead {
		// The schema says so, too, of the item.
		fault.Type = field.ErrorTypeDuplicate
	}
	return fault
}

func validateHeadRole(role *v1.RayRole, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if role.Replicas != nil && *role.Replicas != 1 {
		errs = append(errs, field.Invalid(path.Child("replicas"), *role.Replicas,
			"must be 1: a cluster has one head; put further pods in a group of workers"))
	}
	for _, only := range []struct {
		name string
		set  bool
		fix  string
	}{
		{"scaling", role.Scaling != nil, "is for groups of workers, and a cluster has one head: remove it"},
		{"hosts", role.Hosts != nil && *role.Hosts != 1, "is for groups of workers, and the head is one pod: remove it"},
		{"suspend", role.Suspend != nil && *role.Suspend, "is for groups of workers: suspend the cluster by runPolicy.suspend"},
	} {
		if only.set {
			errs = append(errs, field.Forbidden(path.Child(only.name), only.fix))
		}
	}
	return errs
}

func validateGroup(spec *v1.RayClusterSpec, role *v1.RayRole, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	automatic := spec.Autoscaler != nil && spec.Autoscaler.Mode == v1.Enabled
	if automatic && role.Suspend != nil && *role.Suspend {
		errs = append(errs, field.Forbidden(path.Child("suspend"),
			"cannot be while the autoscaler runs, which would fill the group again: set maxReplicas to 0, or disable the autoscaler"))
	}
	scaling, path := role.Scaling, path.Child("scaling")
	if scaling == nil {
		return errs
	}
	if least, most := scaling.MinReplicas, scaling.MaxReplicas; least != nil && most != nil && *most < *least {
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), *most, fmt.Sprintf(
			"must be at least minReplicas, which is %d: raise it or lower minReplicas", *least)))
	}
	return append(errs, validateForAutoscaler(spec, scaling, automatic && spec.Autoscaler.Version == v1.RayAutoscalerV2, path)...)
}

// validateForAutoscaler judges what only the second autoscaler reads.
func validateForAutoscaler(spec *v1.RayClusterSpec, scaling *v1.RayScaling, second bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if scaling.IdleTimeoutSeconds != nil && !second {
		errs = append(errs, field.Forbidden(path.Child("idleTimeoutSeconds"),
			"is for the autoscaler's version v2: enable that, or say it for all groups, as idleTimeoutSeconds of the autoscaler"))
	}
	if scaling.Priority != nil && *scaling.Priority != 0 {
		switch {
		case !second:
			errs = append(errs, field.Forbidden(path.Child("priority"), "is for the autoscaler's version v2: enable that, or remove the priority"))
		case olderThan(spec.RayVersion, 2, 56):
			errs = append(errs, field.Forbidden(path.Child("priority"), "needs Ray 2.56, and rayVersion is "+*spec.RayVersion+": raise it, or remove the priority"))
		}
	}
	return errs
}

// ownedParams are the start parameters that a role's resources take the place of.
var ownedParams = []string{"num-cpus", "num-gpus", "memory", "resources"}

func validateRayNode(role *v1.RayRole, path *field.Path) field.ErrorList {
	errs := validateTopology(role.Topology, path.Child("topology"))
	errs = append(errs, validateRayRestart(role, path)...)
	errs = append(errs, validateRayTemplate(role, path.Child("template"))...)
	node, path := role.Ray, path.Child("ray")
	if node == nil {
		return errs
	}
	if len(node.Resources) > 0 {
		for _, name := range ownedParams {
			if _, set := node.StartParams[name]; set {
				errs = append(errs, field.Forbidden(path.Child("startParams").Key(name),
					"cannot stand beside resources, which say the same: keep one of the two"))
			}
		}
	}
	if _, set := node.StartParams["labels"]; set {
		errs = append(errs, field.Forbidden(path.Child("startParams").Key("labels"),
			"is written from the labels of the group: write them there, as a map"))
	}
	for _, name := range slices.Sorted(maps.Keys(node.Labels)) {
		if len(validation.IsQualifiedName(name)) > 0 {
			errs = append(errs, field.Invalid(path.Child("labels").Key(name), name,
				"must be the key of a label: use letters, digits, -, _ and ., with a DNS name and / before them if need be"))
		}
		if len(validation.IsValidLabelValue(node.Labels[name])) > 0 {
			errs = append(errs, field.Invalid(path.Child("labels").Key(name), node.Labels[name],
				"must be the value of a label: use at most 63 letters, digits, -, _ and ., beginning and ending with a letter or digit"))
		}
	}
	return errs
}

// validateRayRestart refuses a restart policy that no pod can have, and two that
// say different things.
func validateRayRestart(role *v1.RayRole, path *field.Path) field.ErrorList {
	inTemplate := role.Template.Spec.RestartPolicy
	switch {
	case role.RestartPolicy == v1.RestartExitCode:
		return field.ErrorList{field.NotSupported(path.Child("restartPolicy"), role.RestartPolicy,
			[]v1.RestartPolicy{v1.RestartAlways, v1.RestartOnFailure, v1.RestartNever})}
	case role.RestartPolicy != "" && inTemplate != "" && string(inTemplate) != string(role.RestartPolicy):
		return field.ErrorList{field.Invalid(path.Child("template", "spec", "restartPolicy"), inTemplate, fmt.Sprintf(
			"contradicts the role's restartPolicy, which is %s: keep one of the two", role.RestartPolicy))}
	}
	return nil
}

func validateRayTemplate(role *v1.RayRole, path *field.Path) field.ErrorList {
	pod := &role.Template.Spec
	if pod.Containers == nil && apiequality.Semantic.DeepEqual(role.Template, corev1.PodTemplateSpec{}) {
		return field.ErrorList{field.Required(path, fmt.Sprintf(
			"%s says nothing of its pods: write what they are", rayRole(role.Name)))}
	}
	if len(pod.Containers) == 0 {
		return field.ErrorList{field.Required(path.Child("spec", "containers"), "a pod needs a container: add one that runs Ray")}
	}
	return ValidatePodTemplate(&role.Template, path)
}

func rayRole(name v1.RoleName) string {
	if name == v1.RoleHead {
		return "the head"
	}
	return "group " + string(name)
}

func validateRayGang(spec *v1.RayClusterSpec, path *field.Path) field.ErrorList {
	gang := spec.Gang
	if gang == nil {
		return nil
	}
	errs := validateTopology(gang.Topology, path.Child("topology"))
	errs = append(errs, validateMinResources(gang, path)...)
	if least := gang.MinAvailable; least != nil {
		if total := wantedRayPods(spec); int64(*least) > total {
			errs = append(errs, field.Invalid(path.Child("minAvailable"), *least, fmt.Sprintf(
				"must be at most %d, the number of pods of all roles: the gang would wait for ever; lower it or leave it out", total)))
		}
	}
	return errs
}

// wantedRayPods is how many pods the cluster shall have now: a suspended group
// has none.
func wantedRayPods(spec *v1.RayClusterSpec) int64 {
	total := int64(0)
	for i := range spec.Roles {
		role := &spec.Roles[i]
		if role.Suspend != nil && *role.Suspend {
			continue
		}
		count, hosts := int64(1), int64(1)
		if role.Name != v1.RoleHead {
			count = int64(role.WantedReplicas())
			if role.Hosts != nil {
				hosts = int64(*role.Hosts)
			}
		}
		total += count * hosts
	}
	return total
}

// validateRayUpdate holds what cannot change. The words equal those of the CEL
// rules in the schema, so that Distinct can fold both into one.
func validateRayUpdate(old, spec *v1.RayClusterSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if was, is := serviceManagedBy(old.RunPolicy), serviceManagedBy(spec.RunPolicy); was != is {
		errs = append(errs, field.Invalid(path.Child("runPolicy", "managedBy"), is,
			"managedBy cannot change: make a new cluster instead"))
	}
	if old.Gang != nil && spec.Gang != nil && old.Gang.QueueName != spec.Gang.QueueName {
		errs = append(errs, field.Invalid(path.Child("gang", "queueName"), spec.Gang.QueueName,
			"queueName cannot change: make a new cluster instead"))
	}
	return errs
}

func serviceManagedBy(policy *v1.ServicePolicy) string {
	if policy == nil || policy.ManagedBy == nil || *policy.ManagedBy == v1.ManagedByPenstock {
		return ""
	}
	return *policy.ManagedBy
}
