package policies

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The functions of the shared library that select what a rule is about.

// rolesHaving selects roles that hold something at a path.
func (w *workload) rolesHaving(path *ast.Term) *ast.Term {
	return w.selectRoles(path, func(found *ast.Term) bool {
		return found != nil && found.Value.Compare(ast.NullValue) != 0
	})
}

// rolesWhere selects roles that hold one of some values at a path.
func (w *workload) rolesWhere(path, values *ast.Term) *ast.Term {
	list, ok := values.Value.(*ast.Array)
	if !ok {
		return nil
	}
	return w.selectRoles(path, func(found *ast.Term) bool {
		found = or(found, ast.InternedNullTerm)
		return list.Until(found.Equal)
	})
}

func (w *workload) selectRoles(path *ast.Term, selects func(found *ast.Term) bool) *ast.Term {
	segments, ok := pathOf(path)
	if !ok {
		return nil
	}
	var selected []*ast.Term
	for i := range w.roles {
		if selects(w.roles[i].at(segments)) {
			selected = append(selected, w.roles[i].term())
		}
	}
	return ast.ArrayTerm(selected...)
}

// at returns what lies at a path of the role's term, nil when nothing does.
func (r *role) at(segments []*ast.Term) *ast.Term {
	switch first, _ := segments[0].Value.(ast.String); first {
	case "name":
		return getAt(r.name, segments[1:])
	case "spec":
		return getAt(r.spec, segments[1:])
	case "pod":
		return getAt(r.pod, segments[1:])
	default:
		return getAt(r.term(), segments)
	}
}

// containersHaving selects containers that hold something at a path.
func (w *workload) containersHaving(path *ast.Term) *ast.Term {
	segments, ok := pathOf(path)
	if !ok {
		return nil
	}
	return w.selectContainers(func(spec *ast.Term) bool {
		found := getAt(spec, segments)
		return found != nil && found.Value.Compare(ast.NullValue) != 0
	})
}

// containersSetting selects containers that set one of some environment variables.
func (w *workload) containersSetting(names *ast.Term) *ast.Term {
	list, ok := names.Value.(*ast.Array)
	if !ok {
		return nil
	}
	return w.selectContainers(func(spec *ast.Term) bool {
		return slices.ContainsFunc(listOf(get(spec, "env")), func(variable *ast.Term) bool {
			name := get(variable, "name")
			return name != nil && list.Until(name.Equal)
		})
	})
}

// containersSaying selects containers with one of some words in a word of their
// command line.
func (w *workload) containersSaying(words *ast.Term) *ast.Term {
	list, ok := textsOf(words)
	if !ok {
		return nil
	}
	return w.selectContainers(func(spec *ast.Term) bool {
		return says(get(spec, "command"), list) || says(get(spec, "args"), list)
	})
}

func says(command *ast.Term, words []string) bool {
	return slices.ContainsFunc(listOf(command), func(elem *ast.Term) bool {
		text, ok := elem.Value.(ast.String)
		return ok && slices.ContainsFunc(words, func(word string) bool { return strings.Contains(string(text), word) })
	})
}

func (w *workload) selectContainers(selects func(spec *ast.Term) bool) *ast.Term {
	var selected []*ast.Term
	for i := range w.containers {
		if c := &w.containers[i]; selects(c.spec) {
			selected = append(selected, c.term())
		}
	}
	return ast.ArrayTerm(selected...)
}

// namesLike selects the names of resources that match patterns, or do not.
func (w *workload) namesLike(patterns *ast.Term, wanted bool) *ast.Term {
	list, ok := patternsOf(patterns)
	if !ok {
		return nil
	}
	var selected []*ast.Term
	for _, name := range w.resourceNames {
		if matches(list, textOf(name)) == wanted {
			selected = append(selected, name)
		}
	}
	return ast.SetTerm(selected...)
}

func keysLike(value, patterns *ast.Term) *ast.Term {
	list, ok := patternsOf(patterns)
	if !ok || !isObject(value) {
		return nil
	}
	var selected []*ast.Term
	value.Value.(ast.Object).Foreach(func(key, _ *ast.Term) {
		if text, ok := key.Value.(ast.String); ok && matches(list, string(text)) {
			selected = append(selected, key)
		}
	})
	return ast.SetTerm(selected...)
}

// runsWithout selects runs that have no number of a name.
func (w *workload) runsWithout(name *ast.Term) *ast.Term {
	return w.selectRuns(name, func(n *ast.Term) bool { return !isNumber(n) })
}

// runsBeyond selects runs whose number of a name is above the most.
func (w *workload) runsBeyond(name, most *ast.Term) *ast.Term {
	return w.selectRuns(name, func(n *ast.Term) bool { return isNumber(n) && n.Value.Compare(most.Value) > 0 })
}

func (w *workload) selectRuns(name *ast.Term, selects func(n *ast.Term) bool) *ast.Term {
	text, ok := name.Value.(ast.String)
	if !ok {
		return nil
	}
	var selected []*ast.Term
	for i := range w.runs {
		if r := &w.runs[i]; selects(get(r.policy, string(text))) {
			selected = append(selected, r.term())
		}
	}
	return ast.ArrayTerm(selected...)
}

// pathOf returns the segments of a path of object members, at least one, and
// whether it is one.
func pathOf(path *ast.Term) ([]*ast.Term, bool) {
	segments := listOf(path)
	for _, segment := range segments {
		if !ast.TermValueIs[ast.String](segment) {
			return nil, false
		}
	}
	return segments, len(segments) > 0
}

func getAt(value *ast.Term, segments []*ast.Term) *ast.Term {
	for _, segment := range segments {
		if !isObject(value) {
			return nil
		}
		value = value.Value.(ast.Object).Get(segment)
	}
	return value
}

func textsOf(list *ast.Term) ([]string, bool) {
	array, ok := list.Value.(*ast.Array)
	if !ok {
		return nil, false
	}
	texts := make([]string, 0, array.Len())
	strange := array.Until(func(elem *ast.Term) bool {
		text, ok := elem.Value.(ast.String)
		texts = append(texts, string(text))
		return !ok
	})
	return texts, !strange
}
