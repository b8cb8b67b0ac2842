package webhooks

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// outOfReach gives advice on kinds and namespaces of a policy that it is never
// asked about; reach may be nil.
func outOfReach(spec *v1.WorkloadPolicySpec, reach *policies.Reach) field.ErrorList {
	path := field.NewPath("spec", "match")
	var advice field.ErrorList
	own := false
	for i, resources := range spec.Match.Resources {
		for j, kind := range resources.Kinds {
			own = own || resources.Group == v1.GroupName || resources.Group == "*"
			resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: resources.Group, Kind: kind})
			if reason := policies.Exempt(resource.GroupResource()); reason != "" && kind != v1.WorkloadPolicyKind {
				advice = append(advice, field.Forbidden(path.Child("resources").Index(i).Child("kinds").Index(j),
					fmt.Sprintf("%s is never judged, by no policy: %s: leave it out", kind, reason)))
				continue
			}
			for k, name := range resources.Subresources {
				if reason := policies.ExemptSubresource(resource.GroupResource(), name); reason != "" && kind != v1.WorkloadPolicyKind {
					advice = append(advice, field.Forbidden(path.Child("resources").Index(i).Child("subresources").Index(k),
						fmt.Sprintf("subresource %s of %s is never judged, by no policy: %s: leave it out", name, kind, reason)))
				}
			}
		}
	}
	if reach == nil {
		reach = &policies.Reach{}
	}
	everywhere := own && !policies.EntryOf(spec).Conditional()
	if !validation.Namespaced(&spec.Match) || reach.Reaches(&spec.Match, everywhere) {
		return advice
	}
	why := "match.namespaceSelector and match.exclude.namespaces leave no namespace"
	if reach.Reaches(&spec.Match, true) {
		why = "in all namespaces that match.namespaceSelector and match.exclude.namespaces leave, " + policies.ReasonSystemNamespace + ", and no policy is asked there"
	}
	return append(advice, field.Forbidden(path, "the policy is never asked about anything: "+why+": select others"))
}

// holdsUpNamespaces gives advice on a policy that may keep namespaces from being
// deleted.
func holdsUpNamespaces(spec *v1.WorkloadPolicySpec, compiled *policies.Policy) field.ErrorList {
	denies := spec.Action == v1.ActionDeny || slices.ContainsFunc(spec.Overrides, func(one v1.PolicyOverride) bool { return one.Action == v1.ActionDeny })
	if !denies || !slices.Contains(policies.OperationsOf(&spec.Match), v1.OperationDelete) || len(spec.MatchConditions) > 0 {
		return nil
	}
	// Its author may have thought of who deletes.
	if exclude := spec.Match.Exclude; compiled.ReadsUser() || exclude != nil && len(exclude.Users)+len(exclude.Groups) > 0 {
		return nil
	}
	for _, resources := range spec.Match.Resources {
		itself := len(resources.Subresources) == 0 || slices.Contains(resources.Subresources, "")
		if itself && slices.ContainsFunc(resources.Kinds, func(kind string) bool {
			return !validation.ClusterScoped(schema.GroupKind{Group: resources.Group, Kind: kind})
		}) {
			return field.ErrorList{field.Forbidden(field.NewPath("spec", "match", "operations"),
				"a namespace is deleted by deleting what is in it, and stays Terminating as long as the policy refuses that: unless it is to, "+
					`leave out who does it: match.exclude.users: ["system:serviceaccount:kube-system:namespace-controller"]`)}
		}
	}
	return nil
}

// overExceptions gives advice on exceptions that have ended.
func overExceptions(spec *v1.WorkloadPolicySpec, now time.Time) field.ErrorList {
	var advice field.ErrorList
	for i, exception := range spec.Exceptions {
		if !exception.Until.IsZero() && !exception.Until.After(now) {
			advice = append(advice, field.Forbidden(field.NewPath("spec", "exceptions").Index(i).Child("until"),
				fmt.Sprintf("is over since %s, so that the exception lets nothing pass: write a later time, or remove it", exception.Until.UTC().Format(time.RFC3339))))
		}
	}
	return advice
}
