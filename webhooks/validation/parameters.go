package validation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// inParameters says what to write instead of a null in the parameters of a policy.
func inParameters(string) string { return "leave it out, or give it a value" }

// inOverride says what to write instead of a null at a path in the parameters of
// an override.
func inOverride(index int) func(string) string {
	return func(name string) string {
		return fmt.Sprintf("to remove the parameter there, write overrides[%d].unset: [%q]", index, name)
	}
}

// validateParameters insists on an object: overrides merge into it, and a rule
// reads its fields. In it nothing may be null; instead gives what to write.
func validateParameters(parameters *runtime.RawExtension, path *field.Path, instead func(name string) string) field.ErrorList {
	if parameters == nil || len(parameters.Raw) == 0 {
		return nil
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(parameters.Raw, &object); err != nil || object == nil {
		return field.ErrorList{field.Invalid(path, string(parameters.Raw),
			"must be an object: put the value under a key that the rule reads as input.parameters.<key>")}
	}
	var errs field.ErrorList
	for _, name := range nullsIn(object, "") {
		errs = append(errs, field.Invalid(field.NewPath(below(path.String(), name)), nil,
			"client-side kubectl apply and kubectl edit drop what is null before Penstock sees it: "+instead(name)))
	}
	return errs
}

// nullsIn lists the paths of what is null in a value, sorted.
func nullsIn(value any, at string) []string {
	var found []string
	switch value := value.(type) {
	case nil:
		return []string{at}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			found = append(found, nullsIn(value[key], memberAt(at, key))...)
		}
	case []any:
		for i, item := range value {
			found = append(found, nullsIn(item, fmt.Sprintf("%s[%d]", at, i))...)
		}
	}
	return found
}

// below is the path of what is at a path in something.
func below(parent, path string) string {
	if strings.HasPrefix(path, "[") {
		return parent + path
	}
	return parent + "." + path
}

// memberAt is the path of a member: in brackets where its name is not plain.
func memberAt(parent, key string) string {
	switch {
	case strings.ContainsAny(key, ".[] $\"'*{}()") || key == "":
		return parent + "[" + key + "]"
	case parent == "":
		return key
	default:
		return parent + "." + key
	}
}

func validateOverride(spec *v1.WorkloadPolicySpec, index int, path *field.Path) field.ErrorList {
	override := &spec.Overrides[index]
	var errs field.ErrorList
	if override.NamespaceSelector == nil {
		errs = append(errs, field.Required(path.Child("namespaceSelector"), "select the namespaces that the override is for"))
	}
	errs = append(errs, validateSelector(override.NamespaceSelector, path.Child("namespaceSelector"))...)
	errs = append(errs, validateUnset(spec, index, path.Child("unset"))...)
	errs = append(errs, validateParameters(override.Parameters, path.Child("parameters"), inOverride(index))...)
	if override.Parameters == nil && len(override.Unset) == 0 && override.Action == "" {
		errs = append(errs, field.Required(path, "an override without parameters, unset and action changes nothing: give one of these or remove it"))
	}
	return errs
}

// validateUnset refuses names of parameters that neither the policy nor an
// override before has: a misspelt one would leave in force what it was to remove.
func validateUnset(spec *v1.WorkloadPolicySpec, index int, path *field.Path) field.ErrorList {
	override := &spec.Overrides[index]
	if len(override.Unset) == 0 {
		return nil
	}
	var set []map[string]any
	add := func(parameters *runtime.RawExtension) {
		object := map[string]any{}
		// What is no object is refused where it stands.
		if parameters != nil && utiljson.Unmarshal(parameters.Raw, &object) == nil {
			set = append(set, object)
		}
	}
	add(spec.Parameters)
	for i := range index {
		add(spec.Overrides[i].Parameters)
	}
	var errs field.ErrorList
	for i, name := range override.Unset {
		if slices.ContainsFunc(set, func(object map[string]any) bool { _, found := Lookup(object, name); return found }) {
			continue
		}
		var names []string
		for _, object := range set {
			names = append(names, membersIn(object, "")...)
		}
		fix := "the policy has no parameters"
		if meant := Nearest(name, names); meant != "" {
			fix = "write " + meant
		} else if len(names) > 0 {
			slices.Sort(names)
			fix = "there are " + strings.Join(slices.Compact(names), ", ")
		}
		errs = append(errs, field.Invalid(path.Index(i), name, "is a parameter of neither the policy nor an override before: "+fix))
	}
	return errs
}

// maxMembers bounds the names that are told or compared.
const maxMembers = 256

// membersIn lists the paths of members of an object, of all depths.
func membersIn(object map[string]any, at string) []string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		path := memberAt(at, key)
		found = append(found, path)
		if below, ok := object[key].(map[string]any); ok {
			found = append(found, membersIn(below, path)...)
		}
		if len(found) >= maxMembers {
			break
		}
	}
	return found
}

// droppedNulls finds what client-side kubectl apply has dropped: what is null in
// the file that was applied, of which kubectl keeps a copy, and is not in the
// policy. An update that leaves the copy alone is tolerated.
func droppedNulls(policy *v1.WorkloadPolicy) field.ErrorList {
	var applied struct {
		Spec struct {
			Parameters any `json:"parameters"`
			Overrides  []struct {
				Parameters any `json:"parameters"`
			} `json:"overrides"`
		} `json:"spec"`
	}
	// Who writes something else there has not applied it.
	if json.Unmarshal([]byte(policy.Annotations[corev1.LastAppliedConfigAnnotation]), &applied) != nil {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(corev1.LastAppliedConfigAnnotation)
	var errs field.ErrorList
	add := func(written any, parameters *runtime.RawExtension, at string, instead func(string) string) {
		object, _ := written.(map[string]any)
		still := map[string]any{}
		if parameters != nil {
			// What is no object is refused where it stands.
			_ = utiljson.Unmarshal(parameters.Raw, &still)
		}
		for _, name := range nullsIn(object, "") {
			if value, found := Lookup(still, name); found && value == nil {
				continue // It is refused where it stands.
			}
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("kubectl apply has dropped the null that was written at %s: %s", below(at, name), instead(name))))
		}
	}
	add(applied.Spec.Parameters, policy.Spec.Parameters, "spec.parameters", inParameters)
	for i, override := range applied.Spec.Overrides {
		var parameters *runtime.RawExtension
		if i < len(policy.Spec.Overrides) {
			parameters = policy.Spec.Overrides[i].Parameters
		}
		add(override.Parameters, parameters, fmt.Sprintf("spec.overrides[%d].parameters", i), inOverride(i))
	}
	return errs
}
