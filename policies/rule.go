package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
)

// verdictRules are the rules that a policy may have. Gatekeeper calls its rule
// violation, conftest deny and warn, with more behind an underscore as one likes.
var verdictRules = []string{"violation", "deny", "warn"}

// verdictOf gives which of verdictRules a name is or begins with, empty if none.
func verdictOf(name string) string {
	kind, _, _ := strings.Cut(name, "_")
	if slices.Contains(verdictRules, kind) {
		return kind
	}
	return ""
}

// verdictNames are the rules of a module that find violations, the plain ones
// first. Of those with more behind the name only sets are: others help them.
func verdictNames(module *ast.Module) []string {
	var named []string
	for _, r := range module.Rules {
		name := ruleName(r)
		if verdictOf(name) != "" && name != verdictOf(name) && r.Head.RuleKind() == ast.MultiValue && !slices.Contains(named, name) {
			named = append(named, name)
		}
	}
	slices.Sort(named)
	plain := slices.DeleteFunc(slices.Clone(verdictRules), func(name string) bool { return !defines(module, name) })
	return append(plain, named...)
}

// oddVerdicts finds rules that are called violation, deny or warn and never give what
// a verdict is made of: for every request they would be an error.
func oddVerdicts(module *ast.Module) []RegoFault {
	var faults []RegoFault
	for _, r := range module.Rules {
		name := ruleName(r)
		if name != verdictOf(name) {
			continue
		}
		wrong, element := "", r.Head.Key
		switch {
		case len(r.Head.Args) > 0:
			wrong = fmt.Sprintf("is a function: write %s contains … if {…}, and give the function another name", name)
		case r.Head.RuleKind() == ast.MultiValue && len(r.Head.Ref()) > 1:
			wrong = fmt.Sprintf("makes an object of sets: write %s contains … if {…}", name)
		case r.Head.RuleKind() == ast.SingleValue && len(r.Head.Ref()) > 1:
			wrong = fmt.Sprintf("makes an object, whose members are no violations: write %s contains %s if {…}", name, r.Head.Ref()[1])
		case element != nil && ast.IsConstant(element.Value) && !isFinding(element.Value):
			wrong = fmt.Sprintf("contains %s, and what it contains has to be a message, or an object with msg, field and fix", element)
		}
		if wrong != "" {
			faults = append(faults, RegoFault{Line: r.Location.Row, Column: r.Location.Col, Code: ast.CompileErr, Message: fmt.Sprintf("%s %s", name, wrong)})
		}
	}
	return faults
}

// isFinding reports whether a value may be one element of a verdict.
func isFinding(value ast.Value) bool {
	switch value.(type) {
	case ast.String, ast.Object:
		return true
	}
	return false
}

// rule is the compiled Rego of one policy. Each policy has a compiler of its
// own, and so a world of its own: whatever two policies call their packages
// and rules, they cannot collide.
type rule struct {
	text     string
	libs     []string
	compiler *ast.Compiler
	queries  []query
	reads    reads
	// ofObject is what the rule reads of the object.
	ofObject objectReads
	// inventory is what the rule reads of data.inventory.
	inventory []inventoryRead
	// shared tells that the policy uses the shared library, whose values are
	// computed once for all policies that judge a request.
	shared bool
	// stuck is how many evaluations hang in the rule, having been abandoned.
	stuck atomic.Int32
	// bodies are those of the queries' rules by their names, found when first needed.
	findBodies sync.Once
	bodies     map[string][]ruleBody
}

// query asks for the value of one of verdictNames.
type query struct {
	name     string
	body     ast.Body
	compiler ast.QueryCompiler
	// guard tells that the rule has nothing to say; nil where it cannot.
	guard *guard
}

func compileRule(text string, libs ...string) (*rule, []RegoFault) {
	modules, faults := Parse(text, libs...)
	if faults != nil {
		return nil, faults
	}
	r := &rule{text: text, libs: libs, shared: modules.shared}
	r.compiler = modules.Compiler()
	r.compiler.Compile(modules.ByName)
	if r.compiler.Failed() {
		return nil, sortFaults(regoFaults(r.compiler.Errors))
	}
	module, own := modules.ByName[moduleName], modules.Own
	compiled := make([]*ast.Module, len(own))
	for i, name := range own {
		compiled[i] = r.compiler.Modules[name]
	}
	all := readsBelow(inputRoot, compiled)
	r.reads, r.ofObject = readsOf(all), objectReadsOf(all, modules.shared)
	r.inventory = inventoryReadsOf(compiled)
	for _, name := range verdictNames(module) {
		q, err := r.prepare(module.Package.Path, name)
		if err != nil {
			return nil, regoFaults(err)
		}
		r.queries = append(r.queries, q)
	}
	return r, nil
}

func ruleName(r *ast.Rule) string {
	return strings.Trim(r.Head.Ref()[0].Value.String(), `"`)
}

func defines(module *ast.Module, name string) bool {
	return slices.ContainsFunc(module.Rules, func(r *ast.Rule) bool { return ruleName(r) == name })
}

// prepare compiles the query for the value of one rule.
func (r *rule) prepare(pkg ast.Ref, name string) (query, error) {
	body := ast.NewBody(ast.Equality.Expr(ast.VarTerm(resultVar), ast.NewTerm(pkg.Append(ast.StringTerm(name)))))
	compiler := r.compiler.QueryCompiler()
	compiled, err := compiler.Compile(body)
	if err != nil {
		return query{}, err
	}
	return query{name: name, body: compiled, compiler: compiler, guard: newGuard(pkg, name, r.named)}, nil
}

// named are the compiled rules of the policy that have a name.
func (r *rule) named(name string) []*ast.Rule {
	var rules []*ast.Rule
	for _, one := range r.compiler.Modules[moduleName].Rules {
		if ruleName(one) == name {
			rules = append(rules, one)
		}
	}
	return rules
}

func sortFaults(faults []RegoFault) []RegoFault {
	slices.SortFunc(faults, func(a, b RegoFault) int {
		return cmp.Or(cmp.Compare(a.Lib, b.Lib), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(faults)
}
