package policies

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// Where the variables, functions and rules that a flow is followed through lead.

// pathsOf returns the places below the root whose value a term is.
func (f *flowFinder) pathsOf(term *ast.Term) pathSet {
	switch value := term.Value.(type) {
	case ast.Var:
		return f.vars[f.rule][value]
	case ast.Ref:
		if f.root.leads(value) {
			return pathSet{}.with(nil, value, min(f.root.length, len(value)))
		}
		if head, ok := value[0].Value.(ast.Var); ok && len(f.vars[f.rule][head]) > 0 {
			found := pathSet{}
			for _, path := range f.vars[f.rule][head] {
				found.with(path, value, 1)
			}
			return found
		}
		return f.pathsOfRules(value)
	}
	return nil
}

// pathsOfRules is pathsOf of a reference to rules.
func (f *flowFinder) pathsOfRules(ref ast.Ref) pathSet {
	found := pathSet{}
	constant := ref.ConstantPrefix()
	for name, paths := range f.rules {
		rule := f.functions[name][0].Ref()
		for _, path := range paths {
			switch {
			case constant.HasPrefix(rule):
				found.with(path, ref, len(rule))
			case rule.HasPrefix(constant):
				found[path.key()] = path // the rule is among what is read
			}
		}
	}
	return found
}

func (f *flowFinder) varSet(rule *ast.Rule, name ast.Var) pathSet {
	if f.vars[rule] == nil {
		f.vars[rule] = map[ast.Var]pathSet{}
	}
	if f.vars[rule][name] == nil {
		f.vars[rule][name] = pathSet{}
	}
	return f.vars[rule][name]
}

func (f *flowFinder) ruleSet(ref string) pathSet {
	if f.rules[ref] == nil {
		f.rules[ref] = pathSet{}
	}
	return f.rules[ref]
}

// hand notes that values go on to where set belongs.
func (f *flowFinder) hand(set, paths pathSet) {
	for key, path := range paths {
		f.reads = append(f.reads, valueRead{path, false, f.at})
		if _, known := set[key]; !known {
			set[key], f.changed = path, true
		}
	}
}
