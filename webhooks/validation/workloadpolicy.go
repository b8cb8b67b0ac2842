package validation

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
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
	errs = append(errs, validateParameters(spec.Parameters, path.Child("parameters"), inParameters)...)
	for i := range spec.Overrides {
		errs = append(errs, validateOverride(spec, i, path.Child("overrides").Index(i))...)
	}
	errs = append(errs, droppedNulls(policy)...)
	for i := range spec.Exceptions {
		errs = append(errs, validateException(&spec.Match, &spec.Exceptions[i], path.Child("exceptions").Index(i))...)
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
	return append(errs, validateNamespaces(match.Exclude.Namespaces, path.Child("exclude", "namespaces"))...)
}

// validateNamespaces refuses patterns of namespaces that none can have.
func validateNamespaces(patterns []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, pattern := range patterns {
		if !isNamespacePattern(pattern) {
			errs = append(errs, field.Invalid(path.Index(i), pattern,
				"must be the name of a namespace, in which * may stand for any characters, as in team-*"))
		}
	}
	return errs
}

func isNamespacePattern(pattern string) bool {
	if !strings.Contains(pattern, "*") {
		return len(validation.IsDNS1123Label(pattern)) == 0
	}
	// What is left of a name beside * may begin and end in -, which a whole name
	// may not.
	rest := strings.ReplaceAll(pattern, "*", "")
	return rest == "" || len(validation.IsDNS1123Label("x"+rest+"x")) == 0
}

// validateObjectNames refuses patterns that no name fits: names hold no slash, and
// nothing that other languages of patterns mean something by.
func validateObjectNames(patterns []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, pattern := range patterns {
		switch {
		case strings.ContainsAny(pattern, "/%") || pattern == "." || pattern == "..":
			errs = append(errs, field.Invalid(path.Index(i), pattern, "must be the name of an object, in which * may stand for any characters: its namespace stands in namespaces"))
		case strings.ContainsAny(pattern, `?[]{}^$\`):
			errs = append(errs, field.Invalid(path.Index(i), pattern, "must be the name of an object, in which only * stands for other characters"))
		}
	}
	return errs
}

func validateSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

func validateException(match *v1.PolicyMatch, exception *v1.PolicyException, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch unplaced := len(exception.Namespaces) == 0; {
	case unplaced && slices.ContainsFunc(exception.Names, matchesAll):
		errs = append(errs, field.Required(path.Child("namespaces"),
			"an exception for every object would switch the policy off: name cluster-scoped objects, or namespaces, or set action to Audit"))
	case unplaced && len(exception.Names) > 0 && Namespaced(match):
		errs = append(errs, field.Required(path.Child("namespaces"),
			"names alone are those of cluster-scoped objects, and the policy matches none: add the namespaces that the named objects live in"))
	case !unplaced && unnamespaced(match):
		errs = append(errs, field.Forbidden(path.Child("namespaces"),
			"what the policy matches lives in no namespace, so that the exception would never count: leave namespaces out and give the names of the objects"))
	}
	errs = append(errs, validateNamespaces(exception.Namespaces, path.Child("namespaces"))...)
	errs = append(errs, validateObjectNames(exception.Names, path.Child("names"))...)
	if all := slices.IndexFunc(exception.Namespaces, matchesAll); all >= 0 && (len(exception.Names) == 0 || slices.ContainsFunc(exception.Names, matchesAll)) {
		errs = append(errs, field.Invalid(path.Child("namespaces").Index(all), exception.Namespaces[all],
			"an exception for every object would switch the policy off: name namespaces, or names of objects, or set action to Audit"))
	}
	if len(exception.Namespaces) == 0 && len(exception.Names) == 0 {
		errs = append(errs, field.Required(path.Child("namespaces"),
			"an exception for every object would switch the policy off: name namespaces, or cluster-scoped objects by names, or set action to Audit"))
	}
	return errs
}

// matchesAll reports whether a pattern stands for every name.
func matchesAll(pattern string) bool { return strings.Trim(pattern, "*") == "" }

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
