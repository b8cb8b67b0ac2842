package validation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// ValidateWorkloadPolicy returns every fault of a policy that its schema
// cannot see. Whether the Rego compiles is the policy engine's to say.
func ValidateWorkloadPolicy(policy *v1.WorkloadPolicy) field.ErrorList {
	if policy == nil {
		return nil
	}
	spec, path := &policy.Spec, field.NewPath("spec")
	errs := validateMatch(&spec.Match, path.Child("match"))
	errs = append(errs, validateMatchConditions(spec.MatchConditions, path.Child("matchConditions"))...)
	errs = append(errs, validateParameters(spec.Parameters, path.Child("parameters"))...)
	for i := range spec.Overrides {
		errs = append(errs, validateOverride(&spec.Overrides[i], path.Child("overrides").Index(i))...)
	}
	for i := range spec.Exceptions {
		errs = append(errs, validateException(&spec.Exceptions[i], path.Child("exceptions").Index(i))...)
	}
	for i, kind := range spec.Inventory {
		errs = append(errs, validateInventoryKind(kind, path.Child("inventory").Index(i))...)
	}
	if strings.TrimSpace(spec.Rego) == "" {
		errs = append(errs, field.Required(path.Child("rego"), "a policy is its rule: write a module with a set called violation"))
	}
	return errs
}

func validateMatch(match *v1.PolicyMatch, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(match.Resources) == 0 {
		errs = append(errs, field.Required(path.Child("resources"), "a policy without would judge nothing: name groups and kinds"))
	}
	for i, resources := range match.Resources {
		resourcesPath := path.Child("resources").Index(i)
		if resources.Group != "" && resources.Group != "*" && len(validation.IsDNS1123Subdomain(resources.Group)) > 0 {
			errs = append(errs, field.Invalid(resourcesPath.Child("group"), resources.Group,
				"must be an API group without a version: write penstock.dev, leave it out for the core group, or write * for all"))
		}
		if len(resources.Kinds) == 0 {
			errs = append(errs, field.Required(resourcesPath.Child("kinds"), "name at least one kind of the group"))
		}
	}
	errs = append(errs, validateSelector(match.NamespaceSelector, path.Child("namespaceSelector"))...)
	errs = append(errs, validateSelector(match.ObjectSelector, path.Child("objectSelector"))...)
	if match.Exclude == nil {
		return errs
	}
	for i, namespace := range match.Exclude.Namespaces {
		if !isNamespacePattern(namespace) {
			errs = append(errs, field.Invalid(path.Child("exclude", "namespaces").Index(i), namespace,
				"must be the name of a namespace: only its end may be left open, by one * as in team-*"))
		}
	}
	return errs
}

func isNamespacePattern(pattern string) bool {
	// The start of a name may end in -, which a whole name may not.
	if start, open := strings.CutSuffix(pattern, "*"); open {
		return start == "" || len(validation.IsDNS1123Label(start+"x")) == 0
	}
	return len(validation.IsDNS1123Label(pattern)) == 0
}

func validateSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

// validateParameters insists on an object: overrides merge into it, and a rule
// reads its fields.
func validateParameters(parameters *runtime.RawExtension, path *field.Path) field.ErrorList {
	if parameters == nil || len(parameters.Raw) == 0 {
		return nil
	}
	if !bytes.HasPrefix(bytes.TrimLeft(parameters.Raw, " \t\r\n"), []byte("{")) || !json.Valid(parameters.Raw) {
		return field.ErrorList{field.Invalid(path, string(parameters.Raw),
			"must be an object: put the value under a key that the rule reads as input.parameters.<key>")}
	}
	return nil
}

func validateOverride(override *v1.PolicyOverride, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if override.NamespaceSelector == nil {
		errs = append(errs, field.Required(path.Child("namespaceSelector"), "select the namespaces that the override is for"))
	}
	errs = append(errs, validateSelector(override.NamespaceSelector, path.Child("namespaceSelector"))...)
	errs = append(errs, validateParameters(override.Parameters, path.Child("parameters"))...)
	if override.Parameters == nil && override.Action == "" {
		errs = append(errs, field.Required(path, "an override without parameters and action changes nothing: give one of the two or remove it"))
	}
	return errs
}

func validateException(exception *v1.PolicyException, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(exception.Names) > 0 && len(exception.Namespaces) == 0 {
		errs = append(errs, field.Required(path,
			"names need namespaces: add the namespaces that the named objects live in"))
	}
	for i, namespace := range exception.Namespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			errs = append(errs, field.Invalid(path.Child("namespaces").Index(i), namespace,
				"must be the name of a namespace: an exception names each one"))
		}
	}
	if len(exception.Namespaces) == 0 && len(exception.Names) == 0 {
		errs = append(errs, field.Required(path.Child("namespaces"),
			"an exception for every object would switch the policy off: name namespaces, or set action to Audit"))
	}
	return errs
}

func validateInventoryKind(kind v1.InventoryKind, path *field.Path) field.ErrorList {
	version, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil || version.Version == "" {
		return field.ErrorList{field.Invalid(path.Child("apiVersion"), kind.APIVersion,
			fmt.Sprintf("must be group/version, or a version of the core group: write %s or v1", v1.GroupVersion))}
	}
	if kind.Kind == "" {
		return field.ErrorList{field.Required(path.Child("kind"), "name the kind that the rule reads")}
	}
	return nil
}
