package webhooks

import (
	"fmt"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks/cel"
	"github.com/penstock-dev/penstock/webhooks/fields"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// likelyTypos gives advice on names in the Rego of a policy that nothing reads or
// that are not there, where another is near: rules may have what names they like,
// and those written for several kinds read what some of these lack.
func likelyTypos(spec *v1.WorkloadPolicySpec, compiled *policies.Policy) field.ErrorList {
	var advice field.ErrorList
	for _, one := range compiled.Lookalikes() {
		if one.Member == "exception" {
			one.Message = "rule exception is conftest's, and excuses nothing here: have the rules ask what it asks, or write spec.exceptions"
			advice = append(advice, one.Field())
			continue
		}
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
	for _, one := range compiled.ObjectTexts() {
		advice = append(advice, one.Field())
	}
	for _, one := range compiled.UnknownObjectReads(misspelt(matchedKinds(spec))) {
		one.Message = fmt.Sprintf("objects of the kinds that the policy matches have no %s: write %s.%s", one.Path(), one.Parent, one.Known[0])
		advice = append(advice, one.Field())
	}
	return advice
}

// otherMembers are the names that other engines give to the members of a violation.
var otherMembers = map[string]string{"message": "msg", "path": "field"}

// unknownInConditions gives advice on names in match conditions that objects of the
// policy's kinds do not have, where another is near: such a condition holds for
// none, and the policy is asked about nothing.
func unknownInConditions(spec *v1.WorkloadPolicySpec) field.ErrorList {
	var advice field.ErrorList
	find := misspelt(conditionKinds(spec))
	for i, condition := range spec.MatchConditions {
		for _, one := range cel.Unknown(condition.Expression, find) {
			advice = append(advice, field.Forbidden(field.NewPath("spec", "matchConditions").Index(i).Child("expression"),
				fmt.Sprintf("objects of the kinds that the policy matches have no %s: write %s", one.Text, one.Instead(one.Known[0]))))
		}
	}
	return advice
}

// misspelt gives what finds the first step of a path that objects of none of some
// kinds have, and that is near to one that they have; all tells that it is known
// what all of them look like.
func misspelt(kinds []schema.GroupVersionKind, all bool) func(path []string) (step int, meant []string, unknown bool) {
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
// it is known what all of them look like. Where it names scale, a Scale is one of
// them: that of most kinds is judged on what is scaled, and of the others as it is.
func matchedKinds(spec *v1.WorkloadPolicySpec) (kinds []schema.GroupVersionKind, all bool) {
	for _, resources := range spec.Match.Resources {
		if slices.ContainsFunc(resources.Subresources, func(name string) bool { return !ofTheKind[name] }) {
			return nil, false
		}
		if slices.Contains(resources.Subresources, "scale") {
			kinds = append(kinds, autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
		}
		for _, kind := range resources.Kinds {
			versions := versionsOf(resources.Group, kind)
			if len(versions) == 0 {
				return nil, false
			}
			kinds = append(kinds, versions...)
		}
	}
	return kinds, true
}

// conditionKinds is matchedKinds for match conditions, which see upstream objects
// as what they are.
func conditionKinds(spec *v1.WorkloadPolicySpec) (kinds []schema.GroupVersionKind, all bool) {
	if spec.UpstreamKinds == v1.UpstreamKindsJudge {
		return nil, false
	}
	return matchedKinds(spec)
}

// versionsOf lists the versions of a kind of ours or of Kubernetes, as far as they
// are shown to policies; none of other kinds.
func versionsOf(group, kind string) []schema.GroupVersionKind {
	if group == v1.GroupName && kind != "*" {
		return []schema.GroupVersionKind{v1.GroupVersion.WithKind(kind)}
	}
	var found []schema.GroupVersionKind
	for _, version := range clientgoscheme.Scheme.VersionsForGroupKind(schema.GroupKind{Group: group, Kind: kind}) {
		found = append(found, version.WithKind(kind))
	}
	return found
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
