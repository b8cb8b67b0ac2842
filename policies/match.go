package policies

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// matcher decides which requests a policy judges.
type matcher struct {
	keys               []indexKey
	namespaceSelector  labels.Selector
	objectSelector     labels.Selector
	excludedNamespaces []string
	excludedUsers      []string
	excludedGroups     []string
}

// newMatcher compiles match. An invalid selector counts as one that selects
// everything, so that a broken policy still answers by its failure policy.
func newMatcher(match v1.PolicyMatch, path *field.Path) (matcher, field.ErrorList) {
	var m matcher
	var faults, more field.ErrorList
	m.keys, faults = indexKeys(match, path)
	m.namespaceSelector, more = selector(match.NamespaceSelector, path.Child("namespaceSelector"))
	faults = append(faults, more...)
	m.objectSelector, more = selector(match.ObjectSelector, path.Child("objectSelector"))
	faults = append(faults, more...)
	if exclude := match.Exclude; exclude != nil {
		m.excludedNamespaces = exclude.Namespaces
		m.excludedUsers = exclude.Users
		m.excludedGroups = exclude.Groups
	}
	return m, faults
}

// excludes reports whether the request is one that the policy leaves alone. An
// unknown user is in no list.
func (m *matcher) excludes(request *Request) bool {
	if request.Namespace != "" && matchesOneOf(m.excludedNamespaces, request.Namespace) {
		return true
	}
	if !request.UserKnown {
		return false
	}
	return matchesOneOf(m.excludedUsers, request.User.Username) ||
		slices.ContainsFunc(request.User.Groups, func(group string) bool { return matchesOneOf(m.excludedGroups, group) })
}

// excludesUsers reports whether excludes depends on the user.
func (m *matcher) excludesUsers() bool { return len(m.excludedUsers)+len(m.excludedGroups) > 0 }

// selector compiles a label selector; nil selects everything, which is what
// leaving it out means in a WorkloadPolicy.
func selector(from *metav1.LabelSelector, path *field.Path) (labels.Selector, field.ErrorList) {
	if from == nil {
		return labels.Everything(), nil
	}
	faults := validation.ValidateLabelSelector(from, validation.LabelSelectorValidationOptions{}, path)
	if len(faults) > 0 {
		return labels.Everything(), faults
	}
	compiled, err := metav1.LabelSelectorAsSelector(from)
	if err != nil {
		return labels.Everything(), field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return compiled, nil
}

// leftOutBy reports whether a namespace is not selected, whatever its other labels
// are.
func (p *Policy) leftOutBy(known labels.Set) bool {
	requirements, _ := p.matcher.namespaceSelector.Requirements()
	return slices.ContainsFunc(requirements, func(one labels.Requirement) bool { return known.Has(one.Key()) && !one.Matches(known) })
}

// settledBy reports whether no selector of a policy, nor of its overrides, looks at
// the other labels of a namespace.
func (p *Policy) settledBy(known labels.Set) bool {
	if looksBeyond(p.matcher.namespaceSelector, known) {
		return false
	}
	return !slices.ContainsFunc(p.settings.overrides, func(one override) bool { return looksBeyond(one.selector, known) })
}

// looksBeyond reports whether a selector looks at other labels than those.
func looksBeyond(selector labels.Selector, known labels.Set) bool {
	requirements, _ := selector.Requirements()
	return slices.ContainsFunc(requirements, func(one labels.Requirement) bool { return !known.Has(one.Key()) })
}
