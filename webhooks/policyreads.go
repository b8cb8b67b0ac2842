package webhooks

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// usualMembers are what most objects have at their top, ours and the upstream
// kinds among them.
var usualMembers = []string{"apiVersion", "kind", "metadata", "spec", "status"}

// otherInputs are the names that other engines give to what a rule sees.
var otherInputs = map[string]string{"request": "review", "constraint": "parameters", "params": "parameters", "old": "oldObject", "userInfo": "user"}

// unknownReads gives faults where rules read what the input never has, and
// advice where it most likely has not: an object of a kind that is not known here
// may have a member of the name at its top.
func unknownReads(spec *v1.WorkloadPolicySpec, compiled *policies.Policy) (faults, advice field.ErrorList) {
	tops, all := topMembers(spec)
	for _, read := range compiled.UnknownReads() {
		if read.Top() && slices.Contains(tops, read.Member) {
			continue
		}
		if !strings.HasPrefix(read.Parent, "input") {
			read.Message = fmt.Sprintf("%s is never there: %s", read.Path(), insteadOf(read))
			faults = append(faults, read.Field())
			continue
		}
		meant := validation.Nearest(read.Member, read.Known)
		if read.Top() && otherInputs[read.Member] != "" {
			meant = otherInputs[read.Member]
		}
		fix := fmt.Sprintf("there are %s", strings.Join(read.Known, ", "))
		if read.Top() {
			fix += ", and at the top the members of the object"
			if meant == "" {
				meant = validation.Nearest(read.Member, tops)
			}
		}
		if meant != "" {
			fix = fmt.Sprintf("write %s.%s", read.Parent, meant)
		}
		switch {
		case !read.Top() || all:
			read.Message = fmt.Sprintf("%s is never there: %s", read.Path(), fix)
			faults = append(faults, read.Field())
		case meant != "":
			read.Message = fmt.Sprintf("%s is there only if the object has a member %s: otherwise %s", read.Path(), read.Member, fix)
			advice = append(advice, read.Field())
		}
	}
	return faults, advice
}

// topMembers lists what the objects that a policy judges may have at their top,
// and whether that is all: kinds of others may have any.
func topMembers(spec *v1.WorkloadPolicySpec) (names []string, all bool) {
	found, all := map[string]bool{}, true
	for _, name := range usualMembers {
		found[name] = true
	}
	for _, resources := range spec.Match.Resources {
		for _, kind := range resources.Kinds {
			of, known := membersOf(schema.GroupKind{Group: resources.Group, Kind: kind})
			// What a subresource is written by may be of another kind.
			all = all && known && !slices.ContainsFunc(resources.Subresources, func(name string) bool { return !ofTheKind[name] })
			for _, name := range of {
				found[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), all
}

// ofTheKind are the subresources that are written by the object itself, and the
// Scale, which has the usual members.
var ofTheKind = map[string]bool{"": true, "status": true, "scale": true, "resize": true, "ephemeralcontainers": true, "approval": true, "finalize": true}

// membersOf lists the members at the top of the objects of a kind of ours, of an
// upstream kind or of one of Kubernetes, in any version.
func membersOf(kind schema.GroupKind) (names []string, known bool) {
	if kind.Group == v1.GroupName || slices.ContainsFunc(conversion.UpstreamKinds(), func(one schema.GroupVersionKind) bool { return one.GroupKind() == kind }) {
		return usualMembers, true
	}
	for _, version := range clientgoscheme.Scheme.VersionsForGroupKind(kind) {
		object, err := clientgoscheme.Scheme.New(version.WithKind(kind.Kind))
		if err != nil {
			continue
		}
		known = true
		for member := range reflect.TypeOf(object).Elem().Fields() {
			if name, _, _ := strings.Cut(member.Tag.Get("json"), ","); name != "" {
				names = append(names, name)
			}
		}
	}
	return names, known
}

// unreadParameters gives advice on parameters that no rule reads, where the Rego
// tells which it does.
func unreadParameters(compiled *policies.Policy) field.ErrorList {
	read, known := compiled.ParameterReads()
	if !known {
		return nil
	}
	what := "the rules read no parameters"
	if len(read) > 0 {
		what = "rules read: " + strings.Join(read, ", ")
	}
	var advice field.ErrorList
	for _, at := range compiled.ParameterKeys() {
		if !slices.Contains(read, at.Key) {
			advice = append(advice, field.Forbidden(at.Path, fmt.Sprintf("is read by no rule (%s)", what)))
		}
	}
	return advice
}
