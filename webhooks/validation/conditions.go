package validation

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Match conditions are evaluated by the API server. Here they are compiled by its
// own code, so that a fault is found when the policy is written.

// MaxMatchConditions is how many a policy may have: one less than the API
// server takes, which leaves room for a condition of our own.
const MaxMatchConditions = 63

// ReservedConditionPrefix begins the names of the conditions that Penstock adds.
const ReservedConditionPrefix = "penstock-"

// withAuthorizer is what the API server declares for match conditions.
var withAuthorizer = cel.OptionalVariableDeclarations{HasAuthorizer: true}

var conditionCompiler = sync.OnceValue(func() cel.Compiler {
	return cel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// validateMatchConditions says what the API server would not take of the match
// conditions of a webhook; it would refuse the configuration for all policies
// at once.
func validateMatchConditions(conditions []admissionregistrationv1.MatchCondition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(conditions) > MaxMatchConditions {
		errs = append(errs, field.TooMany(path, len(conditions), MaxMatchConditions))
	}
	for i := range conditions {
		if err := validateConditionName(conditions[:i+1], path.Index(i).Child("name")); err != nil {
			errs = append(errs, err)
		}
		expression, at := conditions[i].Expression, path.Index(i).Child("expression")
		if strings.TrimSpace(expression) == "" {
			errs = append(errs, field.Required(at, "write a CEL expression over object, oldObject, request and authorizer, or remove the condition"))
			continue
		}
		if names := CELNames(expression); slices.Contains(names, "namespaceObject") {
			errs = append(errs, field.Invalid(at, expression,
				"namespaceObject is not there in the match conditions of webhooks, and would fail every request: select by match.namespaceSelector"))
			continue
		}
		compiled := conditionCompiler().CompileCELExpression((*matchconditions.MatchCondition)(&conditions[i]), withAuthorizer, environment.NewExpressions)
		if compiled.Error != nil {
			errs = append(errs, field.Invalid(at, expression, inBool(compiled.Error.Detail)))
		}
	}
	return errs
}

// validateConditionName checks the name of the last of some conditions.
func validateConditionName(conditions []admissionregistrationv1.MatchCondition, path *field.Path) *field.Error {
	last := len(conditions) - 1
	name := conditions[last].Name
	switch {
	case len(utilvalidation.IsQualifiedName(name)) > 0:
		return field.Invalid(path, name,
			"must be a qualified name: use letters, digits, -, _ and ., with a domain and / before it if need be")
	case strings.HasPrefix(name, ReservedConditionPrefix):
		return field.Invalid(path, name, "names that begin with "+ReservedConditionPrefix+" are Penstock's: choose another")
	case slices.ContainsFunc(conditions[:last], func(other admissionregistrationv1.MatchCondition) bool { return other.Name == name }):
		duplicate := field.Duplicate(path, name)
		duplicate.Detail = "must be unique in the policy: rename one of them"
		return duplicate
	}
	return nil
}

// inBool adds what to write to what CEL says of an expression whose type it does
// not know.
func inBool(detail string) string {
	if strings.Contains(detail, "must evaluate to bool") && strings.Contains(detail, "dyn") {
		return detail + ", as the types of the object's fields are not known: compare it, as in (…) == true"
	}
	return detail
}

var (
	celText = regexp.MustCompile(`(?s)r?("""(?:\\.|[^\\])*?"""|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')`)
	celName = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// CELNames lists the names in an expression, of variables and of members, but for
// what is in texts and comments. A name behind object or oldObject is one of
// theirs.
func CELNames(expression string) []string {
	code := celText.ReplaceAllString(expression, "''")
	code = regexp.MustCompile(`//[^\n]*`).ReplaceAllString(code, "")
	code = regexp.MustCompile(`\b(object|oldObject)\s*(\.\s*\??\s*\w+)+`).ReplaceAllString(code, "$1")
	return celName.FindAllString(code, -1)
}
