package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// merged unites rules that differ in their resources only, and sorts what is
// left: the same policies give the same configuration in whatever order.
func merged(rules []admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	byRest := map[string]*admissionregistrationv1.RuleWithOperations{}
	for _, rule := range rules {
		rule.Operations = slices.Sorted(slices.Values(rule.Operations))
		rest := fmt.Sprint(rule.APIGroups, rule.APIVersions, rule.Operations)
		if found := byRest[rest]; found != nil {
			found.Resources = append(found.Resources, rule.Resources...)
			continue
		}
		rule.Resources = slices.Clone(rule.Resources)
		byRest[rest] = &rule
	}
	var united []admissionregistrationv1.RuleWithOperations
	for _, rest := range slices.Sorted(maps.Keys(byRest)) {
		rule := byRest[rest]
		rule.Resources = reduced(rule.Resources)
		united = append(united, *rule)
	}
	return united
}

// reduced leaves out of the resources of a rule those that others of them stand for,
// and sorts the rest. The API server refuses a rule that names deployments/scale
// beside deployments/* or */scale, deployments beside *, or anything beside */*: one
// policy would keep all others from coming into force.
func reduced(resources []string) []string {
	kept := slices.Compact(slices.Sorted(slices.Values(resources)))
	return slices.DeleteFunc(slices.Clone(kept), func(resource string) bool {
		return slices.ContainsFunc(kept, func(other string) bool { return other != resource && standsFor(other, resource) })
	})
}

// standsFor reports whether whatever a resource of a rule matches is matched by
// another one as well. As subresource, * matches the objects themselves too.
func standsFor(resource, other string) bool {
	kind, subresource, _ := strings.Cut(resource, "/")
	otherKind, otherSubresource, _ := strings.Cut(other, "/")
	return (kind == wildcard || kind == otherKind) && (subresource == wildcard || subresource == otherSubresource)
}
