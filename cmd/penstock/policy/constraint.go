package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
)

// constraint is what is read of a constraint.
type constraint struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		EnforcementAction        string          `json:"enforcementAction"`
		ScopedEnforcementActions []scopedAction  `json:"scopedEnforcementActions"`
		Match                    constraintMatch `json:"match"`
		Parameters               json.RawMessage `json:"parameters"`
	} `json:"spec"`
}

type scopedAction struct {
	Action            string `json:"action"`
	EnforcementPoints []struct {
		Name string `json:"name"`
	} `json:"enforcementPoints"`
}

type constraintMatch struct {
	Kinds []struct {
		APIGroups []string `json:"apiGroups"`
		Kinds     []string `json:"kinds"`
	} `json:"kinds"`
	Scope              string                `json:"scope"`
	Namespaces         []string              `json:"namespaces"`
	ExcludedNamespaces []string              `json:"excludedNamespaces"`
	LabelSelector      *metav1.LabelSelector `json:"labelSelector"`
	NamespaceSelector  *metav1.LabelSelector `json:"namespaceSelector"`
	Name               string                `json:"name"`
	Source             string                `json:"source"`
}

// readConstraint is strict about spec.match: what is not known there would
// make the policy match more or less than the constraint did.
func readConstraint(raw []byte) (*constraint, error) {
	var c constraint
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	var parts struct {
		Spec struct {
			Match json.RawMessage `json:"match"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, err
	}
	if len(parts.Spec.Match) > 0 {
		decoder := json.NewDecoder(strings.NewReader(string(parts.Spec.Match)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&constraintMatch{}); err != nil {
			return nil, fmt.Errorf("spec.match: %w", err)
		}
	}
	return &c, nil
}

// policy makes the WorkloadPolicy of a constraint and its template. dropped are
// the paths of its parameters that are null.
func (c *constraint) policy(t *template) (p *penstockv1.WorkloadPolicy, dropped []string, err error) {
	parameters, err := withDefaults(c.Spec.Parameters, t.parameters)
	if err != nil {
		return nil, nil, err
	}
	parameters, dropped, err = withoutNulls(parameters)
	if err != nil {
		return nil, nil, err
	}
	p = &penstockv1.WorkloadPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: penstockv1.GroupVersion.String(), Kind: penstockv1.WorkloadPolicyKind},
		ObjectMeta: metav1.ObjectMeta{Name: c.Metadata.Name},
	}
	p.Spec.Description = cut(strings.Join(strings.Fields(t.description), " "), 1024)
	p.Spec.Rego, p.Spec.Libs = t.rego, t.libs
	p.Spec.Match.Resources = c.Spec.Match.resources()
	p.Spec.Match.Operations = t.operations
	if len(parameters) > 0 {
		p.Spec.Parameters = &runtime.RawExtension{Raw: parameters}
	}
	if p.Spec.Action, err = c.action(); err != nil {
		return nil, nil, err
	}
	return p, dropped, c.Spec.Match.narrow(&p.Spec)
}

func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-3], "") + "…"
}

// resources are the kinds of a match, all when it names none. Pods are judged
// by the subresources that change them, too, as Gatekeeper's webhook is asked.
func (m *constraintMatch) resources() []penstockv1.PolicyResources {
	changes := []string{"ephemeralcontainers", "resize"}
	if len(m.Kinds) == 0 {
		return []penstockv1.PolicyResources{{Group: "*", Kinds: []string{"*"}}, {Kinds: []string{"Pod"}, Subresources: changes}}
	}
	var all []penstockv1.PolicyResources
	add := func(group string, kinds, subresources []string) {
		one := penstockv1.PolicyResources{Group: group, Kinds: kinds, Subresources: subresources}
		if len(kinds) > 0 && !slices.ContainsFunc(all, func(other penstockv1.PolicyResources) bool {
			return other.Group == group && slices.Equal(other.Kinds, kinds)
		}) {
			all = append(all, one)
		}
	}
	for _, named := range m.Kinds {
		groups, kinds := named.APIGroups, slices.Clone(named.Kinds)
		if len(groups) == 0 {
			groups = []string{"*"}
		}
		if len(kinds) == 0 {
			kinds = []string{"*"}
		}
		for _, group := range groups {
			others := kinds
			switch pods := slices.Contains(kinds, "Pod"); {
			case group == "" && pods:
				others = slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == "Pod" })
				add(group, []string{"Pod"}, append([]string{""}, changes...))
			case (group == "" || group == "*") && (pods || slices.Contains(kinds, "*")):
				add("", []string{"Pod"}, changes)
			}
			add(group, others, nil)
		}
	}
	return all
}

// strictest are enforcement actions, the strictest last.
var strictest = []string{"dryrun", "warn", "deny"}

// action is what the constraint does when it is asked at admission.
func (c *constraint) action() (penstockv1.PolicyAction, error) {
	action := c.Spec.EnforcementAction
	if action == "scoped" {
		// Gatekeeper takes all of them, of which the strictest is felt.
		action = ""
		for _, scoped := range c.Spec.ScopedEnforcementActions {
			for _, point := range scoped.EnforcementPoints {
				if (point.Name == "*" || point.Name == "validation.gatekeeper.sh") && slices.Index(strictest, action) < slices.Index(strictest, scoped.Action) {
					action = scoped.Action
				}
			}
		}
		if action == "" {
			return "", errors.New("spec.scopedEnforcementActions has nothing for validation.gatekeeper.sh, which is all that can be imported")
		}
	}
	switch action {
	case "", "deny":
		return penstockv1.ActionDeny, nil
	case "warn":
		return penstockv1.ActionWarn, nil
	case "dryrun":
		return penstockv1.ActionAudit, nil
	}
	return "", fmt.Errorf("spec.enforcementAction %q is not known: deny, warn, dryrun and scoped are", action)
}

// narrow adds all that a match says besides kinds.
func (m *constraintMatch) narrow(spec *penstockv1.WorkloadPolicySpec) error {
	spec.Match.ObjectSelector = m.LabelSelector
	spec.Match.NamespaceSelector = m.NamespaceSelector
	if len(m.Namespaces) > 0 {
		if pattern, found := firstPattern(m.Namespaces); found {
			return fmt.Errorf("spec.match.namespaces: %q is a pattern, and a policy selects namespaces by name or label: name them, or give them a label", pattern)
		}
		selector := &metav1.LabelSelector{}
		if m.NamespaceSelector != nil {
			selector = m.NamespaceSelector.DeepCopy()
		}
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: m.Namespaces,
		})
		spec.Match.NamespaceSelector = selector
	}
	if len(m.ExcludedNamespaces) > 0 {
		spec.Match.Exclude = &penstockv1.PolicyExclude{Namespaces: m.ExcludedNamespaces}
	}
	if m.Source == "Generated" {
		return errors.New("spec.match.source Generated selects what Gatekeeper expands, which has no counterpart: judge the pods themselves")
	}
	return m.condition(spec)
}

// condition adds in CEL what a policy's own match cannot say.
func (m *constraintMatch) condition(spec *penstockv1.WorkloadPolicySpec) error {
	const namespace = `has((request.operation == "DELETE" ? oldObject : object).metadata.namespace)`
	condition := func(name, expression string) {
		spec.MatchConditions = append(spec.MatchConditions, admissionregistrationv1.MatchCondition{Name: name, Expression: expression})
	}
	switch {
	case m.Scope == "Cluster":
		condition("cluster", "!"+namespace)
	case m.Scope != "" && m.Scope != "*" && m.Scope != "Namespaced":
		return fmt.Errorf("spec.match.scope %q is not known", m.Scope)
	case m.Scope == "Namespaced":
		condition("namespaced", namespace)
	}
	prefix, isPrefix := strings.CutSuffix(m.Name, "*")
	switch {
	case m.Name == "":
	case strings.Contains(prefix, "*"):
		return fmt.Errorf("spec.match.name: %q: a policy knows * at the end only", m.Name)
	case isPrefix:
		// What a name is made from counts where there is none yet, as of the pods of
		// a ReplicaSet.
		condition("name", fmt.Sprintf("object.metadata.?name.orValue(object.metadata.?generateName.orValue('')).startsWith(%q)", prefix))
	default:
		condition("name", fmt.Sprintf("object.metadata.?name.orValue('') == %q", m.Name))
	}
	return nil
}

func firstPattern(names []string) (string, bool) {
	i := slices.IndexFunc(names, func(name string) bool { return strings.Contains(name, "*") })
	if i < 0 {
		return "", false
	}
	return names[i], true
}
