package validation

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What the API server says of values that a schema does not allow. Some faults
// come without a field, and name it in their text.
var (
	tooSmall   = regexp.MustCompile(`in body should be greater than or equal to (\S+)$`)
	tooLarge   = regexp.MustCompile(`in body should be less than or equal to (\S+)$`)
	wrongType  = regexp.MustCompile(`in body must be of type ([a-z,]+): "([a-z]+)"$`)
	wrongRange = regexp.MustCompile(`^(\S+) in body must be of type (int32|int64)|with format (int32|int64) in (\S+)$`)
	composite  = regexp.MustCompile(`must validate (at least one|one and only one|all the) schema`)
	supported  = regexp.MustCompile(`"([^"]*)"`)
)

// Explain adds to the faults of a schema's values what to write instead, and
// puts them at the field that they are about. Faults that come from elsewhere
// stay as they are.
func Explain(errs field.ErrorList) field.ErrorList {
	var explained field.ErrorList
	mistyped := map[string]bool{}
	for _, err := range errs {
		if wrongType.MatchString(err.Detail) {
			// Of one that may be of several types it is said again for each.
			if mistyped[err.Field] {
				continue
			}
			mistyped[err.Field] = true
		}
		if err.Type == field.ErrorTypeInvalid && isNoField(err.Field) && composite.MatchString(err.Detail) {
			// Another fault says of the same value what is wrong.
			continue
		}
		explained = append(explained, explain(err))
	}
	if len(explained) == 0 {
		return errs
	}
	return explained
}

func isNoField(path string) bool { return path == "" || path == "<nil>" }

func explain(err *field.Error) *field.Error {
	said := *err
	switch {
	case err.Type == field.ErrorTypeRequired && err.Detail == "":
		said.Detail = "must be there: write it"
		if strings.HasSuffix(err.Field, ".template") {
			said.Detail = "the pods are made of it: write their template, with the containers in its spec"
		}
	case err.Type == field.ErrorTypeNotSupported && strings.HasPrefix(err.Detail, "supported values: "):
		var allowed []string
		for _, word := range supported.FindAllStringSubmatch(err.Detail, -1) {
			if word[1] != "" {
				allowed = append(allowed, word[1])
			}
		}
		value, _ := err.BadValue.(string)
		said.Detail = choice(value, allowed)
	case tooSmall.MatchString(err.Detail):
		said.Detail = "must be at least " + tooSmall.FindStringSubmatch(err.Detail)[1] + ": raise it, or leave the field out"
	case tooLarge.MatchString(err.Detail):
		said.Detail = "must be at most " + tooLarge.FindStringSubmatch(err.Detail)[1] + ": lower it, or leave the field out"
	case wrongRange.MatchString(err.Detail):
		found := wrongRange.FindStringSubmatch(err.Detail)
		if path := found[1] + found[4]; isNoField(err.Field) && path != "" {
			said.Field = path
		}
		said.BadValue = field.OmitValueType{}
		said.Detail = "is too large or too small a number: write one of " + strings.TrimPrefix(found[2]+found[3], "int") + " bits, or leave the field out"
	case wrongType.MatchString(err.Detail):
		found := wrongType.FindStringSubmatch(err.Detail)
		said.BadValue = field.OmitValueType{}
		said.Detail = "must be of type " + strings.ReplaceAll(found[1], ",", " or ") + ", and is of type " + found[2] + ": " + typeFix(found[1])
	}
	return &said
}

func typeFix(want string) string {
	switch {
	case strings.Contains(want, "string"):
		return "put it in quotes"
	case want == "integer", want == "number":
		return "write a number, without quotes"
	case want == "boolean":
		return "write true or false, without quotes"
	case want == "array":
		return "write a list"
	default:
		return "write the fields that it has"
	}
}
