package policies

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// workloadFunctions are the functions of library/lib/workload.rego that most
// rules call for each device and pod. Each returns nil where it does not know
// better than the Rego, which is then evaluated: for arguments that make no
// sense, and wherever the result is undefined.
var workloadFunctions = map[string]func(a, b *ast.Term) *ast.Term{
	"matches_any": matchesAny,
	"demand_for":  demandFor,
}

// callWorkload calls a function of the shared library; nil when there is no
// such function, or when the Rego has to be evaluated.
func callWorkload(name string, arguments []*ast.Term) *ast.Term {
	function, ok := workloadFunctions[name]
	if !ok || len(arguments) != 2 {
		return nil
	}
	return function(arguments[0], arguments[1])
}

func matchesAny(name, patterns *ast.Term) *ast.Term {
	text, ok := name.Value.(ast.String)
	if !ok {
		return nil
	}
	list, ok := patterns.Value.(*ast.Array)
	if !ok {
		return nil
	}
	return ast.InternedTerm(list.Until(func(pattern *ast.Term) bool {
		one, ok := pattern.Value.(ast.String)
		return ok && matchesName(string(one), string(text))
	}))
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
