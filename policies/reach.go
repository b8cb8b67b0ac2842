package policies

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// A Reach says what of a cluster Penstock is asked about at all, whatever
// policies match. Requests, previews, the audit, offline checks and the status of
// policies go by it.
type Reach struct {
	// Unasked are the namespaces in which what the cluster needs to start runs.
	Unasked []string
}

// never are the resources that are never behind Penstock: what nodes and the
// control plane need in order to start, and what lets people in to mend things.
// Review kinds and webhook configurations are never by their group.
var never = map[schema.GroupResource]string{
	{Group: "", Resource: "nodes"}:                                                   "nodes must be able to join while Penstock is down",
	{Group: "coordination.k8s.io", Resource: "leases"}:                               "nodes and controllers renew them all the time",
	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}:           "nodes ask for their certificates by them",
	{Group: v1.GroupName, Resource: "workloadpolicies"}:                              "a policy must be mended even where a policy is wrong",
	{Group: "apiregistration.k8s.io", Resource: "apiservices"}:                       "the API server itself writes them",
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"}:                 "the API server itself writes them",
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "prioritylevelconfigurations"}: "the API server itself writes them",
}

// neverGroups are the groups of which no resource is behind Penstock.
var neverGroups = map[string]string{
	"authentication.k8s.io":        "nobody could log in while Penstock is down",
	"authorization.k8s.io":         "nobody could be authorized while Penstock is down",
	"admissionregistration.k8s.io": "they are the way out when a webhook is wrong",
}

// neverSubresources are those of resources that may be behind Penstock, of which
// what is written is of a group that is never.
var neverSubresources = map[schema.GroupResource]string{
	{Group: "", Resource: "serviceaccounts/token"}: "nodes ask for the tokens of pods by it, without which none starts",
}

// Exempt returns why a resource is never behind Penstock, empty if it may be.
func Exempt(resource schema.GroupResource) string {
	return cmp.Or(neverGroups[resource.Group], never[resource])
}

// ExemptSubresource is Exempt of a subresource, of the objects themselves where that
// is empty.
func ExemptSubresource(resource schema.GroupResource, subresource string) string {
	return cmp.Or(Exempt(resource), neverSubresources[schema.GroupResource{Group: resource.Group, Resource: resource.Resource + "/" + subresource}])
}

// ExemptSubresources lists, with the reasons, the subresources, as resource/name, that
// alone of their resource are never behind Penstock.
func ExemptSubresources() map[schema.GroupResource]string { return maps.Clone(neverSubresources) }

// ExemptGroups and ExemptResources list, with the reasons, what is never behind
// Penstock: whole groups, and single resources.
func ExemptGroups() map[string]string { return maps.Clone(neverGroups) }

// ExemptResources is described with ExemptGroups.
func ExemptResources() map[schema.GroupResource]string { return maps.Clone(never) }

// Reasons why something is never asked about.
const (
	// ReasonSystemNamespace is that of Unasked.
	ReasonSystemNamespace = "what the cluster needs to start runs there"
)

// Bars returns why the API server never asks a policy about a request, empty if
// it may. Penstock's own kinds are asked about everywhere, by webhooks of their
// own; but those know no match conditions, so that policies with conditions are
// asked as about all other kinds.
func (r *Reach) Bars(entry Entry, resource schema.GroupResource, namespace string) string {
	if reason := Exempt(resource); reason != "" {
		return reason
	}
	own := resource.Group == v1.GroupName
	switch {
	case own && !entry.Conditional():
		return ""
	case namespace != "" && slices.Contains(r.Unasked, namespace):
		return ReasonSystemNamespace
	default:
		return ""
	}
}

// bars is Bars of a request. Nil bars nothing.
func (r *Reach) bars(policy *Policy, request *Request) bool {
	if r == nil {
		return false
	}
	resource := schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}
	return r.Bars(policy.entry, resource, request.Namespace) != "" || ExemptSubresource(resource, request.SubResource) != "" || neverGroups[request.Kind.Group] != ""
}

// Reaches reports whether there can be a namespace that a policy selects, does not
// exclude, and is asked about: everywhere tells that it is in all of them, as of
// Penstock's own kinds. An invalid selector selects everything.
func (r *Reach) Reaches(match *v1.PolicyMatch, everywhere bool) bool {
	var excluded []string
	if match.Exclude != nil {
		excluded = match.Exclude.Namespaces
	}
	compiled, _ := selector(match.NamespaceSelector, nil)
	requirements, _ := compiled.Requirements()
	byKey := map[string][]labels.Requirement{corev1.LabelMetadataName: nil}
	for _, one := range requirements {
		byKey[one.Key()] = append(byKey[one.Key()], one)
	}
	for key, of := range byKey {
		possible := slices.ContainsFunc(candidates(of), func(value string) bool {
			if key == corev1.LabelMetadataName && (value == absent || matchesOneOf(excluded, value) || !everywhere && slices.Contains(r.Unasked, value)) {
				return false
			}
			set := labels.Set{key: value}
			if value == absent {
				set = nil
			}
			return !slices.ContainsFunc(of, func(one labels.Requirement) bool { return !one.Matches(set) })
		})
		if !possible {
			return false
		}
	}
	return true
}

// Values of a label that no requirement names: that it is not there, and any other.
const (
	absent = "\x00absent"
	other  = "\x00other"
)

// candidates are the values of a label that requirements tell apart.
func candidates(requirements []labels.Requirement) []string {
	values := []string{absent, other}
	for _, one := range requirements {
		switch one.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			values = append(values, one.ValuesUnsorted()...)
		}
	}
	return values
}
