package webhooks

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// unaskedOperations gives advice on operations that a rule looks for and the policy
// is never asked about: that turns the rule off without a word.
func unaskedOperations(spec *v1.WorkloadPolicySpec, compiled *policies.Policy) field.ErrorList {
	path, asked := field.NewPath("spec", "match", "operations"), policies.OperationsOf(&spec.Match)
	about := fmt.Sprintf("the policy is asked about %s alone", inWords(asked))
	usual := slices.Equal(slices.Sorted(slices.Values(asked)), policies.OperationsOf(&v1.PolicyMatch{}))
	never := !slices.Contains(asked, v1.OperationUpdate) && !slices.Contains(asked, v1.OperationDelete)
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
	case (usual || never) && compiled.ReadsOldObjectAlone():
		if never {
			about += ", with which there is none"
		}
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("the rule looks at input.oldObject and never at the object, and %s: "+
			"write operations: [DELETE] if it is for deletions, [UPDATE] if it is for updates", about))}
	default:
		return nil
	}
}

// unaskedSubresources gives advice on subresources that come with none of the
// operations that a policy is asked about, and on connections to none.
func unaskedSubresources(spec *v1.WorkloadPolicySpec) field.ErrorList {
	var advice field.ErrorList
	match, path := &spec.Match, field.NewPath("spec", "match")
	asked := policies.OperationsOf(match)
	for i, resources := range match.Resources {
		for j, name := range resources.Subresources {
			if _, last, slash := strings.Cut(name, "/"); slash {
				advice = append(advice, field.Forbidden(path.Child("resources").Index(i).Child("subresources").Index(j),
					fmt.Sprintf("no subresource is called %s: name it without the resource: write %q", name, last)))
				continue
			}
			if policies.AskedOn(match, resources.Group, name) {
				continue
			}
			comes, _ := policies.OperationsOn(resources.Group, name)
			fix := "leave it out"
			if len(comes) > 0 && name != "" {
				fix = fmt.Sprintf("write operations: [%s]", listed(comes))
				if others := slices.ContainsFunc(resources.Subresources, func(other string) bool { return policies.AskedOn(match, resources.Group, other) }); others || len(match.Resources) > 1 {
					fix = fmt.Sprintf("write operations: [%s]", listed(append(slices.Clone(asked), comes...)))
				}
			}
			what := "the objects themselves are"
			if name != "" {
				what = fmt.Sprintf("subresource %s is", name)
			}
			advice = append(advice, field.Forbidden(path.Child("resources").Index(i).Child("subresources").Index(j),
				fmt.Sprintf("%s never judged: %s: %s", what, policies.UnaskedOn(match, resources.Group, name), fix)))
		}
	}
	if slices.Contains(asked, v1.OperationConnect) && !policies.Connects(match) {
		advice = append(advice, field.Forbidden(path.Child("operations"),
			"connections come by subresources, of which the policy names none: name them, as in subresources: [exec, attach, portforward, proxy], or leave CONNECT out"))
	}
	return advice
}

// oddOperations gives advice on texts that a rule compares the operation to and that
// are none: such a comparison holds for no request.
func oddOperations(compiled *policies.Policy) field.ErrorList {
	var advice field.ErrorList
	all := []string{string(v1.OperationCreate), string(v1.OperationUpdate), string(v1.OperationDelete), string(v1.OperationConnect)}
	for _, one := range compiled.OddOperations() {
		fix := "there are " + strings.Join(all, ", ")
		if meant := validation.Nearest(strings.ToUpper(string(one.Operation)), all); meant != "" {
			fix = fmt.Sprintf("write %q", meant)
		}
		path := field.NewPath("spec", "rego")
		if one.Lib > 0 {
			path = field.NewPath("spec", "libs").Index(one.Lib - 1)
		}
		advice = append(advice, field.Forbidden(path, fmt.Sprintf("line %d: the operation is never %q: %s", one.Line, one.Operation, fix)))
	}
	return advice
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
