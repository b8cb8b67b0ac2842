package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// moduleName is the file name of the user's text within its compiler.
const moduleName = "policy.rego"

// reservedRoots are the parts of data that are not a policy's to define.
var reservedRoots = []string{"penstock", "inventory"}

// Modules are parsed texts of Rego that are compiled together: those of one
// policy, or tests with what they test.
type Modules struct {
	// ByName are all of them; once there is a Compiler, with the shared library
	// where it is imported.
	ByName map[string]*ast.Module
	// Own are the names of the policy's own modules: that of spec.rego, and
	// those of spec.libs in order.
	Own []string
	// version is v0 if a module is, which may call more builtins.
	version ast.RegoVersion
	// shared tells that the shared library is imported, isLibrary that it is
	// among the modules themselves.
	shared, isLibrary bool
}

// Parse parses the Rego of a policy.
func Parse(text string, libs ...string) (*Modules, []RegoFault) {
	m := &Modules{ByName: map[string]*ast.Module{}, version: ast.RegoV1}
	module, version, faults := parseModule(moduleName, text)
	if faults == nil {
		faults = checkModule(module)
	}
	if faults == nil {
		m.add(moduleName, module, version)
	}
	m.Own = append(m.Own, moduleName)
	for i, text := range libs {
		name := libName(i)
		lib, version, more := parseLib(name, text)
		if more != nil {
			faults = append(faults, more...)
			continue
		}
		m.add(name, lib, version)
		m.Own = append(m.Own, name)
	}
	if faults != nil {
		return nil, faults
	}
	return m, nil
}

// ParseFiles parses files of Rego, by name, that belong to no policy: any
// package is theirs to fill, the shared library's too.
func ParseFiles(texts map[string]string) (*Modules, []RegoFault) {
	m := &Modules{ByName: map[string]*ast.Module{}, version: ast.RegoV1}
	var faults []RegoFault
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		faults = append(faults, m.Add(name, texts[name])...)
		m.Own = append(m.Own, name)
	}
	if faults != nil {
		return nil, faults
	}
	return m, nil
}

// Add adds a file of tests. It may fill any package.
func (m *Modules) Add(name, text string) []RegoFault {
	module, version, faults := parseModule(name, text)
	if faults != nil {
		return faults
	}
	m.add(name, module, version)
	return nil
}

func (m *Modules) add(name string, module *ast.Module, version ast.RegoVersion) {
	m.ByName[name] = module
	if version == ast.RegoV0 {
		m.version = ast.RegoV0
	}
	m.isLibrary = m.isLibrary || module.Package.Path.HasPrefix(libraryRoot)
	m.shared = m.shared || importsLibrary(module)
}

// Compiler returns a compiler for the modules, which it has not compiled yet: it
// knows the builtins that a policy may call and no others.
func (m *Modules) Compiler() *ast.Compiler {
	if m.shared && !m.isLibrary {
		maps.Copy(m.ByName, parsedLibrary().partFor(m.ByName))
	}
	return ast.NewCompiler().
		WithCapabilities(capabilitiesOf[m.version]).
		WithDefaultRegoVersion(m.version)
}

// libName is the file name of one of spec.libs within the compiler.
func libName(i int) string { return fmt.Sprintf("libs/%d.rego", i+1) }

// LibOf returns which of spec.libs a module is, from 1, and 0 for others.
func LibOf(file string) int {
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
			Lib: LibOf(name), Line: loc.Row, Column: loc.Col, Code: ast.CompileErr,
			Message: fmt.Sprintf("package %s is not below lib: call it lib.%s", strings.TrimPrefix(path.String(), "data."), strings.TrimPrefix(path.String(), "data.")),
		}}
	}
	return module, version, nil
}

// parseModule parses Rego v1, or v0 when the text is valid as v0 only, or imports
// what v1 has by itself.
func parseModule(name, text string) (*ast.Module, ast.RegoVersion, []RegoFault) {
	module, err := parseAs(name, text, ast.RegoV1)
	if err == nil && !slices.ContainsFunc(module.Imports, isFuture) {
		return module, ast.RegoV1, nil
	}
	old, oldErr := parseAs(name, text, ast.RegoV0)
	switch {
	case oldErr == nil:
		return old, ast.RegoV0, nil
	case err == nil:
		return module, ast.RegoV1, nil
	case strings.Contains(err.Error(), "keyword is required"):
		// Who writes no keywords writes v0, and is told what is wrong with that.
		return nil, 0, sortFaults(regoFaults(oldErr))
	}
	return nil, 0, sortFaults(regoFaults(err))
}

func isFuture(one *ast.Import) bool {
	ref, ok := one.Path.Value.(ast.Ref)
	return ok && ref[0].Equal(ast.FutureRootDocument)
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
	if faults := oddVerdicts(module); faults != nil {
		return faults
	}
	if len(verdictNames(module)) == 0 {
		place.Message = "there is no rule violation (or deny, or warn)"
		for _, r := range module.Rules {
			if meant := resembles(ruleName(r)); meant != "" {
				place.Line, place.Column = r.Location.Row, r.Location.Col
				place.Message += fmt.Sprintf(": call %s so: %s", ruleName(r), meant)
				break
			}
		}
		return []RegoFault{place}
	}
	return nil
}

// resembles gives the one of verdictRules that a name is most likely meant for: that
// begins like it, or has the same letters but for two, or one of a short name.
func resembles(name string) string {
	for _, rule := range verdictRules {
		apart := 0
		for letter := 'a'; letter <= 'z'; letter++ {
			difference := strings.Count(name, string(letter)) - strings.Count(rule, string(letter))
			apart += max(difference, -difference)
		}
		if strings.HasPrefix(strings.ToLower(name), rule[:3]) || apart <= len(rule)/4 {
			return rule
		}
	}
	return ""
}
