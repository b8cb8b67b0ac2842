package policies

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// workloadFunction is a function of library/lib/workload.rego that is computed
// natively. It returns nil where it does not know better than the Rego, which
// is then evaluated: for arguments that make no sense, and wherever the result
// is undefined.
type workloadFunction struct {
	arity int
	call  func(w *workload, arguments []*ast.Term) *ast.Term
}

// workloadFunctions are those that most rules call, for each device and pod or
// to select what is at fault.
var workloadFunctions = map[string]workloadFunction{
	"matches_any": {2, func(_ *workload, a []*ast.Term) *ast.Term { return matchesAny(a[0], a[1]) }},
	"quantity":    {1, func(_ *workload, a []*ast.Term) *ast.Term { return quantity(a[0]) }},
	"demand_for":  {2, func(_ *workload, a []*ast.Term) *ast.Term { return demandFor(a[0], a[1]) }},

	"most_per_pod": {1, func(w *workload, a []*ast.Term) *ast.Term { return w.mostPerPod(a[0]) }},
	"wishes":       {1, func(w *workload, a []*ast.Term) *ast.Term { return w.wishes(a[0]) }},
	"met":          {2, func(_ *workload, a []*ast.Term) *ast.Term { return met(a[0], a[1]) }},
	"held":         {5, func(_ *workload, a []*ast.Term) *ast.Term { return held(a[0], a[1], a[2], a[3], a[4]) }},
	"total_of":     {1, func(w *workload, a []*ast.Term) *ast.Term { return w.totalOf(a[0]) }},
	"untolerated":  {1, func(w *workload, a []*ast.Term) *ast.Term { return w.untolerated(a[0]) }},
	"mispinned":    {1, func(w *workload, a []*ast.Term) *ast.Term { return w.mispinned(a[0]) }},
	"cramped":      {2, func(w *workload, a []*ast.Term) *ast.Term { return w.cramped(a[0], a[1]) }},

	"roles_having":       {1, func(w *workload, a []*ast.Term) *ast.Term { return w.rolesHaving(a[0]) }},
	"roles_where":        {2, func(w *workload, a []*ast.Term) *ast.Term { return w.rolesWhere(a[0], a[1]) }},
	"containers_having":  {1, func(w *workload, a []*ast.Term) *ast.Term { return w.containersHaving(a[0]) }},
	"containers_setting": {1, func(w *workload, a []*ast.Term) *ast.Term { return w.containersSetting(a[0]) }},
	"containers_saying":  {1, func(w *workload, a []*ast.Term) *ast.Term { return w.containersSaying(a[0]) }},
	"names_like":         {1, func(w *workload, a []*ast.Term) *ast.Term { return w.namesLike(a[0], true) }},
	"names_beyond":       {1, func(w *workload, a []*ast.Term) *ast.Term { return w.namesLike(a[0], false) }},
	"keys_like":          {2, func(_ *workload, a []*ast.Term) *ast.Term { return keysLike(a[0], a[1]) }},
	"runs_without":       {1, func(w *workload, a []*ast.Term) *ast.Term { return w.runsWithout(a[0]) }},
	"runs_beyond":        {2, func(w *workload, a []*ast.Term) *ast.Term { return w.runsBeyond(a[0], a[1]) }},
}

// call calls a function of the shared library; nil when there is no such
// function, or when the Rego has to be evaluated.
func (w *workload) call(name string, arguments []*ast.Term) *ast.Term {
	function, ok := workloadFunctions[name]
	if !ok || len(arguments) != function.arity {
		return nil
	}
	w.find()
	return function.call(w, arguments)
}

// patternsOf returns patterns of names, and whether they are a list.
func patternsOf(patterns *ast.Term) (*ast.Array, bool) {
	list, ok := patterns.Value.(*ast.Array)
	return list, ok
}

func matchesAny(name, patterns *ast.Term) *ast.Term {
	text, ok := name.Value.(ast.String)
	if !ok {
		return nil
	}
	list, ok := patternsOf(patterns)
	if !ok {
		return nil
	}
	return ast.InternedTerm(matches(list, string(text)))
}

func matches(patterns *ast.Array, name string) bool {
	return patterns.Until(func(pattern *ast.Term) bool {
		one, ok := pattern.Value.(ast.String)
		return ok && matchesName(string(one), name)
	})
}

// matchesName compares a name with a pattern in which a trailing * stands for
// any ending, as in the library.
func matchesName(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

func demandFor(pod, patterns *ast.Term) *ast.Term {
	demand := get(pod, "demand")
	if !isObject(demand) {
		return nil
	}
	var amounts []*ast.Term
	unknown := demand.Value.(ast.Object).Until(func(name, amount *ast.Term) bool {
		matches := matchesAny(name, patterns)
		if matches == nil {
			return true
		}
		if matches.Value.(ast.Boolean) {
			amounts = append(amounts, amount)
		}
		return false
	})
	if unknown {
		return nil
	}
	return total(amounts)
}
