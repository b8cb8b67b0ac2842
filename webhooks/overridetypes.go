package webhooks

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// changedTypes gives advice on overrides that give a parameter another type than
// the policy does: Rego compares a text with a number without a fault, and every
// number is less than any text.
func changedTypes(spec *v1.WorkloadPolicySpec) field.ErrorList {
	parameters := parameterMembers(spec.Parameters)
	var advice field.ErrorList
	for i := range spec.Overrides {
		path := field.NewPath("spec", "overrides").Index(i).Child("parameters")
		advice = append(advice, otherTypes(parameters, parameterMembers(spec.Overrides[i].Parameters), path, field.NewPath("spec", "parameters"))...)
	}
	return advice
}

// otherTypes compares members that are in both, to all depths, as overrides are
// merged.
func otherTypes(of, in map[string]any, path, base *field.Path) field.ErrorList {
	var advice field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(in)) {
		was, there := of[name]
		is := in[name]
		if !there || was == nil || is == nil {
			continue
		}
		if typeName(was) != typeName(is) {
			advice = append(advice, field.Forbidden(path.Child(name), fmt.Sprintf("is %s where %s is %s: write %s, as the rules compare it to what they compare that to",
				typeName(is), base.Child(name), typeName(was), typeName(was))))
			continue
		}
		below, isObject := is.(map[string]any)
		if isObject {
			advice = append(advice, otherTypes(was.(map[string]any), below, path.Child(name), base.Child(name))...)
		}
	}
	return advice
}

// parameterMembers gives the members of parameters; none where they are no object, which
// is refused.
func parameterMembers(parameters *runtime.RawExtension) map[string]any {
	members := map[string]any{}
	if parameters != nil {
		_ = utiljson.Unmarshal(parameters.Raw, &members)
	}
	return members
}

func typeName(value any) string {
	switch value.(type) {
	case string:
		return "a text"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
