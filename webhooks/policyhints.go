package webhooks

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks/fields"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// likelyTypos gives advice on names in the Rego of a policy that nothing reads or
// that are not there, where another is near: rules may have what names they like,
// and those written for several kinds read what some of these lack.
func likelyTypos(spec *v1.WorkloadPolicySpec, compiled *policies.Policy) field.ErrorList {
	var advice field.ErrorList
	for _, one := range compiled.Lookalikes() {
		if meant := validation.Nearest(one.Member, one.Known); meant != "" {
			one.Message = fmt.Sprintf("rule %s is a set that nothing reads and that is not asked for: call it %s", one.Member, meant)
			advice = append(advice, one.Field())
		}
	}
	for _, one := range compiled.OddMembers() {
		meant := validation.Nearest(one.Member, one.Known)
		if other := otherMembers[one.Member]; slices.Contains(one.Known, other) {
			meant = other
		}
		if meant != "" {
			one.Message = fmt.Sprintf("nothing reads the member %s of a violation: write %s", one.Member, meant)
			advice = append(advice, one.Field())
		}
	}
	for _, one := range compiled.UnknownObjectReads(misspelt(spec)) {
		one.Message = fmt.Sprintf("objects of the kinds that the policy matches have no %s: write %s.%s", one.Path(), one.Parent, one.Known[0])
		advice = append(advice, one.Field())
	}
	return advice
}

// otherMembers are the names that other engines give to the members of a violation.
var otherMembers = map[string]string{"message": "msg", "path": "field"}

// misspelt gives what finds the first step of a path that objects of none of the
// kinds of a policy have, and that is near to one that they have.
func misspelt(spec *v1.WorkloadPolicySpec) func(path []string) (step int, meant []string, unknown bool) {
	kinds, all := matchedKinds(spec)
	return func(path []string) (int, []string, bool) {
		if !all {
			// Whatever the kind is, its objects have these.
			if meant := validation.Misspelling(path[0], usualMembers); meant != "" && meant != path[0] && len(path[0]) > 3 {
				return 0, []string{meant}, true
			}
			return 0, nil, false
		}
		step, instead, found := fields.Misspelt(kinds, path)
		if !found {
			return 0, nil, false
		}
		meant := validation.Misspelling(path[step], instead)
		return step, []string{meant}, meant != ""
	}
}

// matchedKinds lists the kinds that a policy matches, in all versions, and whether
// it is known what all of them look like.
func matchedKinds(spec *v1.WorkloadPolicySpec) (kinds []schema.GroupVersionKind, all bool) {
	for _, resources := range spec.Match.Resources {
		if slices.ContainsFunc(resources.Subresources, func(name string) bool { return !ofTheKind[name] || name == "scale" }) {
			return nil, false
		}
		for _, kind := range resources.Kinds {
			if resources.Group == v1.GroupName && kind != "*" {
				kinds = append(kinds, v1.GroupVersion.WithKind(kind))
				continue
			}
			versions := clientgoscheme.Scheme.VersionsForGroupKind(schema.GroupKind{Group: resources.Group, Kind: kind})
			if len(versions) == 0 {
				return nil, false
			}
			for _, version := range versions {
				kinds = append(kinds, version.WithKind(kind))
			}
		}
	}
	return kinds, true
}

// insteadOf says what may be meant by what is not there below data: a name there,
// or a part of the input, or a module that was left out.
func insteadOf(read policies.UnknownRead) string {
	switch {
	case read.Parent == "data" && slices.Contains(inputNames, read.Member):
		return "write input." + read.Member
	case read.Parent == "data.inventory":
		return "write data.inventory.cluster[apiVersion][kind][name], or data.inventory.namespace[namespace][apiVersion][kind][name]"
	case read.Parent == "data" && read.Member == "lib":
		return "give the text of its package in spec.libs"
	}
	if meant := validation.Nearest(read.Member, read.Known); meant != "" {
		return fmt.Sprintf("write %s.%s", read.Parent, meant)
	}
	if meant := validation.Nearest(read.Member, inputNames); meant != "" && read.Parent == "data" {
		return "write input." + meant
	}
	fix := "there are " + strings.Join(read.Known, ", ")
	if strings.HasPrefix(read.Parent+".", "data.lib.") {
		fix += ", and what spec.libs adds"
	}
	return fix
}

// inputNames are the parts of the input.
var inputNames = []string{"object", "oldObject", "operation", "user", "namespace", "parameters", "review"}
