package validation

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// leaderWords are what a framework's users call the pod that leads.
var leaderWords = map[v1.RoleName]string{
	v1.RoleMaster:   "master",
	v1.RoleChief:    "chief",
	v1.RoleLauncher: "launcher",
}

func validateRoles(spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	if len(spec.Roles) == 0 {
		return field.ErrorList{field.Required(path, "a job needs at least one role: add "+rolesOf(spec.Framework))}
	}
	var errs field.ErrorList
	seen := map[string]v1.RoleName{}
	for i := range spec.Roles {
		role, rolePath := &spec.Roles[i], path.Index(i)
		folded := strings.ToLower(string(role.Name))
		if earlier, twice := seen[folded]; twice {
			errs = append(errs, duplicateRole(rolePath, role.Name, earlier))
		} else {
			errs = append(errs, validateRoleName(spec.Framework, role.Name, rolePath.Child("name"))...)
			seen[folded] = role.Name
		}
		errs = append(errs, validateTopology(role.Topology, rolePath.Child("topology"))...)
		errs = append(errs, validateTemplate(spec, role, rolePath.Child("template"))...)
	}
	if spec.Framework.Known() {
		errs = append(errs, validateLeader(spec, path)...)
	}
	return errs
}

func duplicateRole(path *field.Path, name, earlier v1.RoleName) *field.Error {
	fault := field.Duplicate(path.Child("name"), name)
	if name == earlier {
		fault.Detail = "stands twice, and both make pods of the same names: join the two, or rename one"
		return fault
	}
	fault.Detail = fmt.Sprintf("stands twice, as names that differ only in case are one: both make pods of the same names; join the two under %s", earlier)
	return fault
}

func validateRoleName(framework v1.Framework, name v1.RoleName, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "a role needs a name: use "+rolesOf(framework))}
	}
	if !framework.Known() {
		return nil
	}
	if _, known := framework.CanonicalRole(name); known {
		return nil
	}
	fix := "use " + rolesOf(framework)
	if near := Nearest(string(name), texts(framework.Roles())); near != "" {
		fix = fmt.Sprintf("did you mean %s? The roles are %s", near, rolesOf(framework))
	}
	return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("is no role of %s: %s", framework, fix))}
}

// rolesOf lists the roles of a framework as words: Master or Worker.
func rolesOf(framework v1.Framework) string {
	names := texts(framework.Roles())
	if len(names) == 0 {
		return "one that the framework knows"
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

func texts[T ~string](values []T) []string {
	result := make([]string, len(values))
	for i, value := range values {
		result[i] = string(value)
	}
	return result
}

// validateLeader makes sure that one pod's end decides the job: that of the
// master, chief or launcher, or else of worker 0. A role of no pods is allowed
// beside it and counts as absent; alone it would be a job that has succeeded
// before it began.
func validateLeader(spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var leader *v1.Role
	workers := int64(0)
	for i := range spec.Roles {
		role, rolePath := &spec.Roles[i], path.Index(i)
		name, _ := spec.Framework.CanonicalRole(role.Name)
		if name == v1.RoleWorker {
			workers += wantedReplicas(spec, role)
		}
		if !spec.Framework.Leads(name) {
			errs = append(errs, validateFollower(spec, role, rolePath.Child("replicas"))...)
			continue
		}
		word := leaderWords[name]
		if count := wantedReplicas(spec, role); count != 1 {
			errs = append(errs, field.Invalid(rolePath.Child("replicas"), count, fmt.Sprintf(
				"must be 1: %s %s job has one %s; put further pods in role Worker", article(spec.Framework), spec.Framework, word)))
		}
		if leader != nil && leader.Name != role.Name {
			errs = append(errs, field.Invalid(rolePath.Child("name"), role.Name, fmt.Sprintf(
				"must not stand beside %s: both lead the job; keep one of them", leader.Name)))
		}
		leader = role
	}
	if leader != nil {
		return errs
	}
	switch {
	case spec.Framework == v1.FrameworkXGBoost:
		errs = append(errs, field.Required(path, "an XGBoost job needs role Master, which runs the tracker: add it with 1 replica"))
	case spec.Framework == v1.FrameworkMPI:
		errs = append(errs, field.Required(path, "an MPI job needs role Launcher, which starts the processes: add it with 1 replica"))
	case workers < 1 && spec.Elastic != nil && spec.Elastic.Replicas != nil:
		// That is said of the number itself.
	case workers < 1:
		errs = append(errs, field.Required(path, fmt.Sprintf(
			"no pod would decide when the job has succeeded: add %s with 1 replica", leadersOf(spec.Framework))))
	}
	return errs
}

// validateFollower refuses a role of no pods where upstream does: PyTorch by its
// webhook, MPI by the controller of v2beta1.
func validateFollower(spec *v1.TrainingJobSpec, role *v1.Role, path *field.Path) field.ErrorList {
	if scales(spec, role) || spec.Framework != v1.FrameworkPyTorch && spec.Framework != v1.FrameworkMPI {
		return nil
	}
	if count := wantedReplicas(spec, role); count < 1 {
		return field.ErrorList{field.Invalid(path, count, fmt.Sprintf("must be at least 1: remove role %s, or suspend the job to free its pods", role.Name))}
	}
	return nil
}

func leadersOf(framework v1.Framework) string {
	for _, role := range framework.Roles() {
		if framework.Leads(role) {
			return fmt.Sprintf("role %s, or role Worker,", role)
		}
	}
	return "role Worker"
}

func article(framework v1.Framework) string {
	switch framework {
	case v1.FrameworkMPI, v1.FrameworkXGBoost:
		return "an"
	default:
		return "a"
	}
}

func validateTopology(topology *v1.Topology, path *field.Path) field.ErrorList {
	if topology == nil {
		return nil
	}
	if (topology.Required == "") == (topology.Preferred == "") {
		return field.ErrorList{field.Invalid(path, *topology,
			"must have exactly one of required and preferred: keep the one that is meant")}
	}
	child, key := "required", topology.Required
	if key == "" {
		child, key = "preferred", topology.Preferred
	}
	if len(validation.IsQualifiedName(string(key))) > 0 {
		return field.ErrorList{field.Invalid(path.Child(child), key,
			"must be the key of a node label: write it as topology.kubernetes.io/zone")}
	}
	return nil
}
