package policies

import (
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CompileError holds everything that is wrong with a policy.
type CompileError struct {
	// Policy is the name of the WorkloadPolicy.
	Policy string
	// Spec are the faults outside spec.rego.
	Spec field.ErrorList
	// Rego are the faults in spec.rego and spec.libs, in the order of their places.
	Rego []RegoFault
}

// RegoFault is a fault at a place in the text of spec.rego or of one of spec.libs.
type RegoFault struct {
	// File is that of tests, and empty in a policy.
	File string
	// Lib counts spec.libs from 1; 0 is spec.rego.
	Lib int
	// Line and Column count from 1.
	Line   int
	Column int
	// Code is OPA's, such as rego_parse_error.
	Code    string
	Message string
}

// Module is the name of the module of Modules that the fault is in.
func (f RegoFault) Module() string {
	switch {
	case f.File != "":
		return f.File
	case f.Lib > 0:
		return libName(f.Lib - 1)
	default:
		return moduleName
	}
}

// path is the field that holds the text.
func (f RegoFault) path() *field.Path {
	if f.Lib > 0 {
		return field.NewPath("spec", "libs").Index(f.Lib - 1)
	}
	return field.NewPath("spec", "rego")
}

// String is the fault as its users see it: line:column: code: message.
func (f RegoFault) String() string {
	return fmt.Sprintf("%d:%d: %s: %s", f.Line, f.Column, f.Code, f.Message)
}

// Field is the fault as one of the field that holds the text.
func (f RegoFault) Field() *field.Error {
	return field.Invalid(f.path(), field.OmitValueType{}, f.String())
}

// Error lists all faults, one a line.
func (e *CompileError) Error() string {
	var lines []string
	for _, fault := range e.Spec {
		lines = append(lines, fault.Error())
	}
	for _, fault := range e.Rego {
		lines = append(lines, fault.path().String()+": "+fault.String())
	}
	return strings.Join(lines, "\n")
}

// ErrorList returns all faults as field errors, for a refusal of the policy.
func (e *CompileError) ErrorList() field.ErrorList {
	list := append(field.ErrorList(nil), e.Spec...)
	for _, fault := range e.Rego {
		list = append(list, fault.Field())
	}
	return list
}

// RegoFaults makes faults of what OPA's parser and compiler return, in the order
// of their places.
func RegoFaults(err error) []RegoFault { return sortFaults(regoFaults(err)) }

// regoFaults makes faults of what OPA's parser and compiler return.
func regoFaults(err error) []RegoFault {
	errs, ok := errors.AsType[ast.Errors](err)
	if !ok {
		one, ok := errors.AsType[*ast.Error](err)
		if !ok {
			return []RegoFault{{Line: 1, Column: 1, Code: ast.ParseErr, Message: err.Error()}}
		}
		errs = ast.Errors{one}
	}
	faults := make([]RegoFault, 0, len(errs))
	for _, one := range errs {
		fault := RegoFault{Line: 1, Column: 1, Code: one.Code, Message: explainBuiltin(one.Message)}
		if one.Location != nil && one.Location.Row > 0 {
			fault.Line, fault.Column = one.Location.Row, max(one.Location.Col, 1)
			fault.Lib = LibOf(one.Location.File)
			if fault.Lib == 0 && one.Location.File != moduleName {
				fault.File = one.Location.File
			}
		}
		faults = append(faults, fault)
	}
	return faults
}

// explainBuiltin says of a builtin that is not on the allow-list what OPA can
// only call undefined.
func explainBuiltin(message string) string {
	name, ok := strings.CutPrefix(message, "undefined function ")
	if !ok {
		return message
	}
	if _, exists := ast.BuiltinMap[name]; !exists {
		return message
	}
	return fmt.Sprintf("builtin %s is not allowed in a policy", name)
}
