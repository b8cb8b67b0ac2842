package policies

import (
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// maxOverrides is the API's bound; a set of overrides is then a word of bits.
const maxOverrides = 64

// maxCachedCombinations bounds the merged parameters kept for each policy.
// Namespaces rarely differ in more than a few ways.
const maxCachedCombinations = 256

// settings are the parameters and the action of a policy, and what its
// overrides make of them in some namespaces.
type settings struct {
	action     v1.PolicyAction
	parameters ast.Value
	overrides  []override

	cache  sync.Map // uint64, the set of overrides: *ast.Term, the merged parameters
	cached atomic.Int32
}

type override struct {
	selector labels.Selector
	action   v1.PolicyAction
	// unset are the paths of parameters that are removed before parameters are
	// merged.
	unset      [][]fieldStep
	parameters ast.Value // nil when the override has none
}

func newSettings(spec *v1.WorkloadPolicySpec, path *field.Path) (*settings, field.ErrorList) {
	s := &settings{action: spec.Action}
	var faults field.ErrorList
	if s.action == "" {
		s.action = v1.ActionDeny
	}
	faults = append(faults, validateAction(s.action, path.Child("action"))...)
	parameters, more := parameterObject(spec.Parameters, path.Child("parameters"))
	faults = append(faults, more...)
	s.parameters = parameters
	if s.parameters == nil {
		s.parameters = ast.NewObject()
	}
	path = path.Child("overrides")
	if len(spec.Overrides) > maxOverrides {
		return s, append(faults, field.TooMany(path, len(spec.Overrides), maxOverrides))
	}
	for i := range spec.Overrides {
		one, more := newOverride(&spec.Overrides[i], path.Index(i))
		faults = append(faults, more...)
		s.overrides = append(s.overrides, one)
	}
	return s, faults
}

func newOverride(from *v1.PolicyOverride, path *field.Path) (override, field.ErrorList) {
	var faults, more field.ErrorList
	one := override{action: from.Action}
	if from.NamespaceSelector == nil {
		faults = append(faults, field.Required(path.Child("namespaceSelector"), "select the namespaces that the override is for"))
	}
	one.selector, more = selector(from.NamespaceSelector, path.Child("namespaceSelector"))
	faults = append(faults, more...)
	for i, name := range from.Unset {
		steps, ok := splitPath(name)
		if !ok {
			faults = append(faults, field.Invalid(path.Child("unset").Index(i), name,
				"must be the name of a parameter, or of members with dots between them: what else a name holds goes in brackets, as in limits[nvidia.com/gpu]"))
			continue
		}
		one.unset = append(one.unset, steps)
	}
	one.parameters, more = parameterObject(from.Parameters, path.Child("parameters"))
	faults = append(faults, more...)
	if from.Action != "" {
		faults = append(faults, validateAction(from.Action, path.Child("action"))...)
	}
	return one, faults
}

func validateAction(action v1.PolicyAction, path *field.Path) field.ErrorList {
	switch action {
	case v1.ActionDeny, v1.ActionWarn, v1.ActionAudit:
		return nil
	}
	return field.ErrorList{field.NotSupported(path, action, []v1.PolicyAction{v1.ActionDeny, v1.ActionWarn, v1.ActionAudit})}
}

// parameterObject parses parameters, which must be a JSON object; nil when
// there are none.
func parameterObject(raw *runtime.RawExtension, path *field.Path) (ast.Value, field.ErrorList) {
	if raw == nil || isAbsent(raw.Raw) {
		return nil, nil
	}
	value, err := ParseJSON(raw.Raw)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	if _, ok := value.(ast.Object); !ok {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be an object")}
	}
	return value, nil
}

// in returns the action and the parameters for a namespace with these labels.
func (s *settings) in(namespace labels.Set) (v1.PolicyAction, *ast.Term) {
	action := s.action
	var set uint64
	for i, one := range s.overrides {
		if !one.selector.Matches(namespace) {
			continue
		}
		set |= 1 << i
		if one.action != "" {
			action = one.action
		}
	}
	return action, s.merged(set)
}

// merged returns the parameters under a set of overrides.
func (s *settings) merged(set uint64) *ast.Term {
	if cached, ok := s.cache.Load(set); ok {
		return cached.(*ast.Term)
	}
	value := s.parameters
	for i, one := range s.overrides {
		if set&(1<<i) == 0 {
			continue
		}
		for _, steps := range one.unset {
			value = without(value, steps)
		}
		if one.parameters != nil {
			value = mergePatch(value, one.parameters)
		}
	}
	sortKeys(value)
	term := ast.NewTerm(value)
	if s.cached.Add(1) <= maxCachedCombinations {
		s.cache.Store(set, term)
	}
	return term
}

// without returns a value without the member at a path, and changes nothing. A
// member that is not there is none to remove. A name that holds dots may stand
// without brackets, as in valueAt.
func without(value ast.Value, steps []fieldStep) ast.Value {
	object, ok := value.(ast.Object)
	if !ok {
		return value
	}
	for taken := 1; ; taken++ {
		key := joined(steps[:taken])
		member := object.Get(ast.StringTerm(key))
		if member != nil && (taken == len(steps) || valueAtSteps(member.Value, steps[taken:]) != nil) {
			return withMember(object, key, member.Value, steps[taken:])
		}
		if taken == len(steps) || steps[taken-1].bracketed || steps[taken].bracketed {
			return value
		}
	}
}

// withMember returns an object with one member less, or with one that lacks what
// is at a path in it.
func withMember(object ast.Object, key string, member ast.Value, below []fieldStep) ast.Value {
	kept := ast.NewObjectWithCapacity(object.Len())
	object.Foreach(func(name, value *ast.Term) {
		switch {
		case name.Value.Compare(ast.String(key)) != 0:
			kept.Insert(name, value)
		case len(below) > 0:
			kept.Insert(name, ast.NewTerm(without(member, below)))
		}
	})
	return kept
}

// mergePatch applies a JSON merge patch (RFC 7386) and changes neither argument.
func mergePatch(target, patch ast.Value) ast.Value {
	changes, ok := patch.(ast.Object)
	if !ok {
		return patch
	}
	members := map[ast.Value]*ast.Term{}
	if object, ok := target.(ast.Object); ok {
		object.Foreach(func(key, value *ast.Term) { members[key.Value] = value })
	}
	changes.Foreach(func(key, change *ast.Term) {
		if _, remove := change.Value.(ast.Null); remove {
			delete(members, key.Value)
			return
		}
		var old ast.Value = ast.Null{}
		if member, ok := members[key.Value]; ok {
			old = member.Value
		}
		members[key.Value] = ast.NewTerm(mergePatch(old, change.Value))
	})
	merged := ast.NewObjectWithCapacity(len(members))
	for key, value := range members {
		merged.Insert(ast.NewTerm(key), value)
	}
	return merged
}

// sortKeys has every object in value sort its keys now. They do so on first
// use, which would be a race in a value that requests share.
func sortKeys(value ast.Value) {
	switch value := value.(type) {
	case ast.Object:
		value.Foreach(func(_, member *ast.Term) { sortKeys(member.Value) })
	case *ast.Array:
		value.Foreach(func(elem *ast.Term) { sortKeys(elem.Value) })
	}
}

// isAbsent reports whether raw JSON says nothing.
func isAbsent(raw []byte) bool {
	return len(raw) == 0 || string(raw) == "null"
}
