package webhooks

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// undecodable is the fault of an object that its Go type cannot hold although
// its schema found nothing wrong. The words of the JSON library are its own
// affair and differ from build to build.
func undecodable(err error) *field.Error {
	fault, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return field.Invalid(field.NewPath("spec"), field.OmitValueType{}, err.Error())
	}
	said := "does not fit here: correct it"
	switch {
	case fault.Err != nil:
		// What the type itself says, such as a quantity.
		said = fault.Err.Error()
	case fault.GoType != nil && fault.JSONKind != 0:
		said = fmt.Sprintf("must be of type %s, not a %s", fault.GoType, kindName(fault.JSONKind))
	}
	return &field.Error{Type: field.ErrorTypeTypeInvalid, Field: fieldPath(fault.JSONPointer), BadValue: field.OmitValueType{}, Detail: said}
}

// fieldPath gives the path of what a pointer leads to, as field errors do.
func fieldPath(pointer jsontext.Pointer) string {
	var path strings.Builder
	for name := range pointer.Tokens() {
		switch _, err := strconv.Atoi(name); {
		case err == nil:
			path.WriteString("[" + name + "]")
		case strings.ContainsAny(name, "./"):
			path.WriteString("[" + name + "]")
		case path.Len() > 0:
			path.WriteString("." + name)
		default:
			path.WriteString(name)
		}
	}
	return path.String()
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindFalse, jsontext.KindTrue:
		return "boolean"
	case jsontext.KindString:
		return "string"
	case jsontext.KindNumber:
		return "number"
	case jsontext.KindBeginArray:
		return "list"
	default:
		return "object"
	}
}
