package webhooks

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

// unaskedOperations gives advice on operations that a rule looks for and the policy
// is never asked about: that turns the rule off without a word.
func unaskedOperations(spec *v1.WorkloadPolicySpec, compiled *policies.Policy) field.ErrorList {
	path, asked := field.NewPath("spec", "match", "operations"), policies.OperationsOf(&spec.Match)
	about := fmt.Sprintf("the policy is asked about %s alone", inWords(asked))
	usual := slices.Equal(slices.Sorted(slices.Values(asked)), policies.OperationsOf(&v1.PolicyMatch{}))
	if usual {
		about += ", as it is when operations are left out"
	}
	var missing []v1.PolicyOperation
	var first *policies.OperationRead
	for _, one := range compiled.OperationReads() {
		if slices.Contains(asked, one.Operation) {
			continue
		}
		if missing = append(missing, one.Operation); first == nil {
			first = &one
		}
	}
	switch {
	case first != nil:
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("the rule looks for %s (%s), and %s: write operations: [%s], or those of them that it is for",
			inWords(missing), place(first), about, listed(append(slices.Clone(asked), missing...))))}
	case usual && compiled.ReadsOldObjectAlone():
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("the rule looks at input.oldObject and never at the object, and %s: "+
			"write operations: [DELETE] if it is for deletions, [UPDATE] if it is for updates", about))}
	default:
		return nil
	}
}

func place(read *policies.OperationRead) string {
	if read.Lib > 0 {
		return fmt.Sprintf("spec.libs[%d], line %d", read.Lib-1, read.Line)
	}
	return fmt.Sprintf("spec.rego, line %d", read.Line)
}

func listed(operations []v1.PolicyOperation) string {
	names := make([]string, len(operations))
	for i, operation := range operations {
		names[i] = string(operation)
	}
	return strings.Join(names, ", ")
}

func inWords(operations []v1.PolicyOperation) string {
	text := listed(operations)
	if last := strings.LastIndex(text, ", "); last >= 0 {
		return text[:last] + " and " + text[last+2:]
	}
	return text
}
