package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
)

// collection is what one policy needs of the webhook configuration.
type collection struct {
	policy     *v1.WorkloadPolicy
	mapper     stored.KindMapper
	spelling   func(schema.GroupKind) string
	reach      *policies.Reach
	entry      policies.Entry
	operations []admissionregistrationv1.OperationType
	rules      []admissionregistrationv1.RuleWithOperations
	wildcards  bool
	coverage   Coverage
	err        error
}

func collect(policy *v1.WorkloadPolicy, mapper stored.KindMapper, options RulesOptions) *collection {
	c := &collection{
		policy: policy, mapper: mapper, spelling: options.Spelling, reach: options.Reach(), entry: policies.EntryOf(&policy.Spec),
		coverage: Coverage{Generation: policy.Generation},
	}
	for _, operation := range policies.OperationsOf(&policy.Spec.Match) {
		c.operations = append(c.operations, admissionregistrationv1.OperationType(operation))
	}
	for _, resources := range policy.Spec.Match.Resources {
		for _, kind := range resources.Kinds {
			c.add(schema.GroupKind{Group: resources.Group, Kind: kind}, resources.Subresources)
		}
	}
	return c
}

// add adds the rules for one kind of the policy's match.
func (c *collection) add(kind schema.GroupKind, subresources []string) {
	if len(subresources) == 0 {
		subresources = []string{""}
	}
	if subresources = c.askable(kind, subresources); len(subresources) == 0 {
		return
	}
	own := kind.Group == v1.GroupName
	if own || kind.Group == wildcard {
		// With conditions the API server must be asked to evaluate them, but for
		// deletions: our own webhooks ask about all of those.
		static := !c.entry.Conditional()
		deletions := c.asks(v1.OperationDelete) && slices.Contains(subresources, "")
		switch {
		case (static || deletions) && c.reach.Reaches(&c.policy.Spec.Match, static):
			c.coverage.Static = true
		case static:
			c.excludeSelected()
		}
		c.addUpstream(kind, subresources)
	}
	switch {
	case own && !c.entry.Conditional():
	case kind.Group == wildcard || kind.Kind == wildcard:
		c.wildcards = true
		c.excludeExempt(kind.Group)
		c.askableOf(schema.GroupResource{Group: kind.Group, Resource: wildcard}, subresources)
		c.rule(kind.Group, wildcard, wildcard, subresources)
	default:
		c.addServed(kind, subresources)
	}
}

// askable leaves the subresources that come with an operation that the policy
// judges, and notes the others.
func (c *collection) askable(kind schema.GroupKind, subresources []string) []string {
	var asked []string
	for _, name := range subresources {
		if policies.AskedOn(&c.policy.Spec.Match, kind.Group, name) {
			asked = append(asked, name)
			continue
		}
		subject := "objects of kind " + kind.String()
		if name != "" {
			subject = "subresource " + name + " of kind " + kind.String()
		}
		c.exclude(subject, policies.UnaskedOn(&c.policy.Spec.Match, kind.Group, name))
		c.coverage.Unasked = true
	}
	return asked
}

// asks reports whether the policy judges an operation.
func (c *collection) asks(operation v1.PolicyOperation) bool {
	return slices.Contains(c.operations, admissionregistrationv1.OperationType(operation))
}

// exclude notes what the policy is never asked about, once.
func (c *collection) exclude(subject, reason string) {
	if one := (v1.PolicyExclusion{Subject: subject, Reason: reason}); !slices.Contains(c.coverage.Exclusions, one) {
		c.coverage.Exclusions = append(c.coverage.Exclusions, one)
	}
}

// excludeExempt notes what a wildcard does not stand for, of a group or of all.
func (c *collection) excludeExempt(group string) {
	groups, resources := policies.ExemptGroups(), policies.ExemptResources()
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if group == wildcard || group == name {
			c.exclude("all resources of "+name, groups[name])
		}
	}
	for _, resource := range slices.SortedFunc(maps.Keys(resources), func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) }) {
		if group == wildcard || group == resource.Group {
			c.exclude("resource "+resource.String(), resources[resource])
		}
	}
}

// askableOf leaves the subresources of a resource that may be behind Penstock, and
// notes the others. All subresources of one that has such stand for the rest, by the
// condition of wildcards.
func (c *collection) askableOf(resource schema.GroupResource, subresources []string) []string {
	asked := slices.Clone(subresources)
	for one, reason := range policies.ExemptSubresources() {
		name, subresource, _ := strings.Cut(one.Resource, "/")
		of := (resource.Group == wildcard || resource.Group == one.Group) && (resource.Resource == wildcard || resource.Resource == name)
		all := slices.Contains(subresources, wildcard)
		if !of || !all && !slices.Contains(subresources, subresource) {
			continue
		}
		c.exclude("resource "+one.String(), reason)
		c.wildcards = c.wildcards || all
		asked = slices.DeleteFunc(asked, func(name string) bool { return name == subresource })
	}
	return asked
}

// excludeSelected notes that there is no namespace that the policy selects and is
// asked about.
func (c *collection) excludeSelected() {
	reason := "match.namespaceSelector and match.exclude.namespaces leave none"
	if c.reach.Reaches(&c.policy.Spec.Match, true) {
		reason = "in all that match.namespaceSelector leaves, " + policies.ReasonSystemNamespace
	}
	c.exclude("all namespaces", reason)
}

// addServed adds rules for a kind if the API server serves it. They name one
// version: the API server converts requests in others.
func (c *collection) addServed(kind schema.GroupKind, subresources []string) {
	mapping, err := c.mapper.RESTMapping(kind)
	switch {
	case meta.IsNoMatchError(err):
		c.coverage.Absent = append(c.coverage.Absent, c.absent(kind))
		return
	case err != nil:
		c.err = fmt.Errorf("failed to find the resource of %s: %w", kind, err)
		return
	}
	resource := mapping.Resource.GroupResource()
	if reason := policies.Exempt(resource); reason != "" {
		c.exclude("resource "+resource.String(), reason)
		return
	}
	if subresources = c.askableOf(resource, subresources); len(subresources) == 0 {
		return
	}
	if c.placed(mapping) && !c.reach.Reaches(&c.policy.Spec.Match, false) {
		c.excludeSelected()
		return
	}
	c.coverage.Installed = c.coverage.Installed || mayGo(mapping.GroupVersionKind)
	c.rule(resource.Group, mapping.Resource.Version, resource.Resource, subresources)
}

// placed reports whether the objects of a kind are selected by their namespace, as
// a Namespace is by itself.
func (*collection) placed(mapping *meta.RESTMapping) bool {
	return mapping.Scope != meta.RESTScopeRoot || mapping.Resource.GroupResource() == schema.GroupResource{Resource: "namespaces"}
}

// absent names a kind that is not served, with what it is called if it is
// misspelt.
func (c *collection) absent(kind schema.GroupKind) string {
	if c.spelling != nil {
		if spelt := c.spelling(kind); spelt != "" {
			return fmt.Sprintf("%s (spelt %s)", kind, spelt)
		}
	}
	return kind.String()
}

// addUpstream adds rules for the upstream kinds of a kind of ours that are
// served: those that are not are no lack, nobody installed them.
func (c *collection) addUpstream(kind schema.GroupKind, subresources []string) {
	if c.policy.Spec.UpstreamKinds != v1.UpstreamKindsJudge {
		return
	}
	for _, upstream := range conversion.UpstreamKinds() {
		own, _ := conversion.Upstream(upstream)
		if kind.Kind != wildcard && kind.Kind != own.Kind {
			continue
		}
		mapping, err := c.mapper.RESTMapping(upstream.GroupKind(), upstream.Version)
		switch {
		case meta.IsNoMatchError(err):
			c.coverage.Awaited = true
			continue
		case err != nil:
			c.err = fmt.Errorf("failed to find the resource of %s: %w", upstream.GroupKind(), err)
			return
		}
		if !c.reach.Reaches(&c.policy.Spec.Match, false) {
			c.excludeSelected()
			continue
		}
		c.coverage.Installed = true
		c.rule(upstream.Group, upstream.Version, mapping.Resource.Resource, subresources)
	}
}

func (c *collection) rule(group, version, resource string, subresources []string) {
	var resources []string
	operations := slices.Clone(c.operations)
	if group == v1.GroupName {
		// Our own webhooks ask about these, and are ignored while Penstock is down:
		// GPUs must still be freed then, and namespaces deleted.
		operations = slices.DeleteFunc(operations, func(o admissionregistrationv1.OperationType) bool {
			return o == admissionregistrationv1.OperationType(v1.OperationDelete)
		})
	}
	for _, subresource := range subresources {
		if subresource == "" {
			resources = append(resources, resource)
			continue
		}
		resources = append(resources, resource+"/"+subresource)
	}
	if len(operations) == 0 {
		return
	}
	scope := admissionregistrationv1.AllScopes
	c.rules = append(c.rules, admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources, Scope: &scope,
		},
	})
}
