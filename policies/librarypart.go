package policies

import (
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/penstock-dev/penstock/policies/library"
)

// libraryRoot is what every reference to the shared library begins with.
var libraryRoot = ast.MustParseRef("data.penstock")

// importsLibrary reports whether a module mentions data.penstock.
func importsLibrary(module *ast.Module) bool {
	found := false
	ast.WalkRefs(module, func(ref ast.Ref) bool {
		found = found || ref.HasPrefix(libraryRoot)
		return found
	})
	return found
}

// sharedLibrary is the parsed shared library, and what each of its rules needs.
type sharedLibrary struct {
	modules map[string]*ast.Module
	// needs are the names of the rules that a rule of package
	// data.penstock.workload refers to, by its name.
	needs map[string][]string
}

// parsedLibrary parses the shared library once.
var parsedLibrary = sync.OnceValue(func() *sharedLibrary {
	l := &sharedLibrary{modules: map[string]*ast.Module{}, needs: map[string][]string{}}
	for name, text := range library.Shared() {
		// The name keeps clear of the user's file.
		name = "penstock/" + name
		module := ast.MustParseModuleWithOpts(text, ast.ParserOptions{RegoVersion: ast.RegoV1})
		l.modules[name] = module
		for _, rule := range module.Rules {
			l.needs[ruleName(rule)] = nil
		}
	}
	for _, module := range l.modules {
		for _, rule := range module.Rules {
			name := ruleName(rule)
			// A local variable may have the name of a rule; too much does no harm.
			ast.WalkVars(rule, func(v ast.Var) bool {
				if _, known := l.needs[string(v)]; known {
					l.needs[name] = append(l.needs[name], string(v))
				}
				return false
			})
		}
	}
	return l
})

// partFor returns the modules of the shared library with those rules only that
// some modules need: compiling all of it takes most of the time that a policy
// takes to compile.
func (l *sharedLibrary) partFor(modules map[string]*ast.Module) map[string]*ast.Module {
	used := &libraryUse{names: map[string]bool{}}
	for _, module := range modules {
		used.add(module)
	}
	if used.all || len(used.names) == 0 {
		return l.modules
	}
	kept := map[string]bool{}
	var keep func(string)
	keep = func(name string) {
		if kept[name] {
			return
		}
		kept[name] = true
		for _, needed := range l.needs[name] {
			keep(needed)
		}
	}
	for name := range used.names {
		keep(name)
	}
	part := make(map[string]*ast.Module, len(l.modules))
	for file, module := range l.modules {
		pruned := *module
		pruned.Rules = nil
		for _, rule := range module.Rules {
			if kept[ruleName(rule)] {
				pruned.Rules = append(pruned.Rules, rule)
			}
		}
		part[file] = &pruned
	}
	return part
}

// libraryUse is which rules of the shared library modules refer to.
type libraryUse struct {
	names map[string]bool
	// all tells that it cannot be told.
	all bool
}

func (u *libraryUse) add(module *ast.Module) {
	aliases := map[ast.Var]ast.Ref{}
	for _, imported := range module.Imports {
		if path, ok := imported.Path.Value.(ast.Ref); ok && path.HasPrefix(libraryRoot) {
			aliases[imported.Name()] = path
		}
	}
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(node any) bool {
		switch node := node.(type) {
		case *ast.Import:
			return true
		case ast.Ref:
			u.refer(node, aliases)
			for i, term := range node {
				// A reference may be into a comprehension or the result of a call.
				if _, named := term.Value.(ast.Var); i > 0 || !named {
					visitor.Walk(term)
				}
			}
			return true
		case ast.Var:
			if path, ok := aliases[node]; ok {
				u.take(path)
			}
		}
		return false
	})
	visitor.Walk(module)
}

// refer notes what a reference refers to, of the library.
func (u *libraryUse) refer(ref ast.Ref, aliases map[ast.Var]ast.Ref) {
	head, _ := ref[0].Value.(ast.Var)
	if path, ok := aliases[head]; ok {
		u.take(path.Concat(ref[1:]))
	} else if head.Equal(ast.DefaultRootDocument.Value) && (len(ref) == 1 || ref.HasPrefix(libraryRoot) || !ref[1].IsGround()) {
		u.take(ref)
	}
}

// take notes a reference into the library.
func (u *libraryUse) take(ref ast.Ref) {
	if len(ref) <= len(workloadPackage) || !ref.HasPrefix(workloadPackage) {
		u.all = true
		return
	}
	name, ok := ref[len(workloadPackage)].Value.(ast.String)
	if !ok {
		u.all = true
		return
	}
	u.names[string(name)] = true
}
