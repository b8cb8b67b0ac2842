package policies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/penstock-dev/penstock/policies/library"
)

// moduleName is the file name of the user's text within its compiler.
const moduleName = "policy.rego"

// verdictRules are the rules that a policy may have. Gatekeeper calls its rule
// violation, conftest deny and warn.
var verdictRules = []string{"violation", "deny", "warn"}

// reservedRoots are the parts of data that are not a policy's to define.
var reservedRoots = []string{"penstock", "inventory"}

// rule is the compiled Rego of one policy. Each policy has a compiler of its
// own, and so a world of its own: whatever two policies call their packages
// and rules, they cannot collide.
type rule struct {
	text     string
	libs     []string
	compiler *ast.Compiler
	queries  []query
	reads    reads
	// inventory is what the rule reads of data.inventory.
	inventory []inventoryRead
	// shared tells that the policy uses the shared library, whose values are
	// computed once for all policies that judge a request.
	shared bool
	// stuck is how many evaluations hang in the rule, having been abandoned.
	stuck atomic.Int32
}

// query asks for the value of one of verdictRules.
type query struct {
	name     string
	body     ast.Body
	compiler ast.QueryCompiler
	// guard tells that the rule has nothing to say; nil where it cannot.
	guard *guard
}

func compileRule(text string, libs ...string) (*rule, []RegoFault) {
	module, version, faults := parseModule(moduleName, text)
	if faults == nil {
		faults = checkModule(module)
	}
	modules := map[string]*ast.Module{moduleName: module}
	own := []string{moduleName}
	shared := faults == nil && importsLibrary(module)
	for i, text := range libs {
		name := libName(i)
		lib, libVersion, more := parseLib(name, text)
		if more != nil {
			faults = append(faults, more...)
			continue
		}
		modules[name] = lib
		own = append(own, name)
		shared = shared || importsLibrary(lib)
		if libVersion == ast.RegoV0 {
			version = ast.RegoV0 // which may call more builtins
		}
	}
	if faults != nil {
		return nil, faults
	}
	r := &rule{text: text, libs: libs, shared: shared}
	if r.shared {
		maps.Copy(modules, sharedModules())
	}
	r.compiler = ast.NewCompiler().
		WithCapabilities(capabilitiesOf[version]).
		WithDefaultRegoVersion(version)
	r.compiler.Compile(modules)
	if r.compiler.Failed() {
		return nil, sortFaults(regoFaults(r.compiler.Errors))
	}
	compiled := make([]*ast.Module, len(own))
	for i, name := range own {
		compiled[i] = r.compiler.Modules[name]
		r.reads = r.reads.and(readsOf(compiled[i]))
	}
	r.inventory = inventoryReadsOf(compiled)
	for _, name := range verdictRules {
		if !defines(module, name) {
			continue
		}
		q, err := r.prepare(module.Package.Path, name)
		if err != nil {
			return nil, regoFaults(err)
		}
		r.queries = append(r.queries, q)
	}
	return r, nil
}

// libName is the file name of one of spec.libs within the compiler, and libOf
// gives its position, from 1, back.
func libName(i int) string { return fmt.Sprintf("libs/%d.rego", i+1) }

func libOf(file string) int {
	lib := 0
	if _, err := fmt.Sscanf(file, "libs/%d.rego", &lib); err != nil {
		return 0
	}
	return lib
}

// parseLib parses one of spec.libs, whose package must be below lib: elsewhere
// it could add to the rule or to the inventory.
func parseLib(name, text string) (*ast.Module, ast.RegoVersion, []RegoFault) {
	module, version, faults := parseModule(name, text)
	if faults != nil {
		return nil, 0, faults
	}
	path := module.Package.Path
	if root, ok := memberName(path, 1); !ok || root != "lib" || len(path) < 3 {
		loc := module.Package.Location
		return nil, 0, []RegoFault{{
			Lib: libOf(name), Line: loc.Row, Column: loc.Col, Code: ast.CompileErr,
			Message: fmt.Sprintf("package %s is not below lib: call it lib.%s", strings.TrimPrefix(path.String(), "data."), strings.TrimPrefix(path.String(), "data.")),
		}}
	}
	return module, version, nil
}

// parseModule parses Rego v1, or v0 when the text is valid as v0 only.
func parseModule(name, text string) (*ast.Module, ast.RegoVersion, []RegoFault) {
	module, err := parseAs(name, text, ast.RegoV1)
	if err == nil {
		return module, ast.RegoV1, nil
	}
	if old, oldErr := parseAs(name, text, ast.RegoV0); oldErr == nil {
		return old, ast.RegoV0, nil
	}
	return nil, 0, sortFaults(regoFaults(err))
}

func parseAs(name, text string, version ast.RegoVersion) (*ast.Module, error) {
	return ast.ParseModuleWithOpts(name, text, ast.ParserOptions{
		RegoVersion:  version,
		Capabilities: capabilitiesOf[version],
	})
}

// checkModule refuses modules without a verdict and packages that are not the
// policy's to fill.
func checkModule(module *ast.Module) []RegoFault {
	place := RegoFault{Line: 1, Column: 1, Code: ast.CompileErr}
	if loc := module.Package.Location; loc != nil {
		place.Line, place.Column = loc.Row, loc.Col
	}
	if root, ok := module.Package.Path[1].Value.(ast.String); ok && slices.Contains(reservedRoots, string(root)) {
		place.Message = fmt.Sprintf("package %s is reserved: call it after the policy", string(root))
		return []RegoFault{place}
	}
	for _, r := range module.Rules {
		if slices.Contains(verdictRules, ruleName(r)) && len(r.Head.Args) > 0 {
			place.Line, place.Column = r.Location.Row, r.Location.Col
			place.Message = fmt.Sprintf("%s must be a set of violations and is a function", ruleName(r))
			return []RegoFault{place}
		}
	}
	if !slices.ContainsFunc(verdictRules, func(name string) bool { return defines(module, name) }) {
		place.Message = "there is no rule violation (or deny, or warn)"
		return []RegoFault{place}
	}
	return nil
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
	return query{name: name, body: compiled, compiler: compiler, guard: newGuard(r.named(name))}, nil
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

// importsLibrary reports whether a module mentions data.penstock.
func importsLibrary(module *ast.Module) bool {
	found := false
	ast.WalkRefs(module, func(ref ast.Ref) bool {
		found = found || ref.HasPrefix(libraryRoot)
		return found
	})
	return found
}

var libraryRoot = ast.MustParseRef("data.penstock")

// sharedModules parses the shared library once.
var sharedModules = sync.OnceValue(func() map[string]*ast.Module {
	modules := map[string]*ast.Module{}
	for name, text := range library.Shared() {
		// The name keeps clear of the user's file.
		name = "penstock/" + name
		modules[name] = ast.MustParseModuleWithOpts(text, ast.ParserOptions{RegoVersion: ast.RegoV1})
	}
	return modules
})

func sortFaults(faults []RegoFault) []RegoFault {
	slices.SortFunc(faults, func(a, b RegoFault) int {
		return cmp.Or(cmp.Compare(a.Lib, b.Lib), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(faults)
}
