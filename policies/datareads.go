package policies

import (
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// dataTree are the names below data that a policy may read: its own rules and
// those of its libs, the shared library's, and the inventory. A name without any
// below it is a rule, whose value may be anything.
type dataTree map[string]dataTree

func (t dataTree) add(ref ast.Ref) {
	for i := 1; i < len(ref); i++ {
		name, constant := memberName(ref, i)
		if !constant {
			return
		}
		if t[name] == nil {
			t[name] = dataTree{}
		}
		t = t[name]
	}
}

// dataNames are the names below data that the policy may read.
func (p *Policy) dataNames() dataTree {
	found := dataTree{"inventory": {"cluster": {}, "namespace": {}}}
	for _, module := range p.ownModules() {
		for _, rule := range module.Rules {
			found.add(rule.Ref())
		}
	}
	for name := range parsedLibrary().needs {
		found.add(workloadPackage.Append(ast.StringTerm(name)))
	}
	return found
}

// unknownData finds the first name of a reference into data that is not there.
func (t dataTree) unknownData(ref ast.Ref) (UnknownRead, bool) {
	parent := "data"
	for i := 1; i < len(ref); i++ {
		name, constant := memberName(ref, i)
		if !constant || len(t) == 0 {
			return UnknownRead{}, false
		}
		below, known := t[name]
		if !known {
			return UnknownRead{Parent: parent, Member: name, Known: slices.Sorted(maps.Keys(t))}, true
		}
		t, parent = below, parent+"."+name
	}
	return UnknownRead{}, false
}

// unknownDataReads finds where a policy reads what is below data and never there.
func (p *Policy) unknownDataReads() []UnknownRead {
	names := p.dataNames()
	var found []UnknownRead
	for _, module := range p.ownModules() {
		if replaces(module, ast.DefaultRootRef) {
			return nil
		}
		ast.WalkTerms(module, func(term *ast.Term) bool {
			if ref, ok := term.Value.(ast.Ref); ok && ref.HasPrefix(ast.DefaultRootRef) {
				if one, unknown := names.unknownData(ref); unknown {
					one.place(module, term.Location)
					found = append(found, one)
				}
			}
			return false
		})
	}
	return append(found, p.unknownLibraryReads()...)
}

// libraryShape are the members of the elements of the shared library's lists;
// nil of what may have any.
var libraryShape = map[string]members{
	"roles":      {"name": nil, "path": nil, "spec": nil, "replicas": nil, "replicas_path": nil, "pod_path": nil, "pod": nil},
	"containers": {"role": nil, "type": nil, "path": nil, "spec": nil},
	"devices":    {"role": nil, "path": nil, "name": nil, "written": {"limits": nil, "requests": nil}, "amounts": {"limits": nil, "requests": nil}},
	"pods":       {"role": nil, "replicas": nil, "replicas_path": nil, "pod_path": nil, "demand": nil, "claims": nil},
	"runs":       {"path": nil, "policy": nil},
}

// libraryFlow follows the values of the shared library.
var libraryFlow = flowRoot{
	length: len(workloadPackage),
	leads: func(ref ast.Ref) bool {
		name, _ := memberName(ref, len(workloadPackage))
		return ref.HasPrefix(workloadPackage) && libraryShape[name] != nil
	},
	isKind: func(inventoryPath) bool { return false },
}

// unknownLibraryReads finds where a policy reads members of roles, containers and
// the like that these do not have.
func (p *Policy) unknownLibraryReads() []UnknownRead {
	if p.rule == nil || !p.rule.shared {
		return nil
	}
	return unknownIn(readsBelow(libraryFlow, p.ownModules()), func(path inventoryPath) (UnknownRead, bool) {
		shape := libraryShape[path[0]]
		parent := "workload." + path[0]
		if len(path) > 1 && path[1] != anyMember {
			return UnknownRead{Parent: parent, Member: path[1], Known: []string{"[_]"}}, true
		}
		if len(path) < 3 {
			return UnknownRead{}, false
		}
		return shape.unknown(path[2:], parent+"[_]")
	})
}

// unknown finds the first step of a path that is no member.
func (m members) unknown(path []string, parent string) (UnknownRead, bool) {
	for _, step := range path {
		if m == nil || step == anyMember {
			break
		}
		below, known := m[step]
		if !known {
			return UnknownRead{Parent: parent, Member: step, Known: slices.Sorted(maps.Keys(m))}, true
		}
		m, parent = below, parent+"."+step
	}
	return UnknownRead{}, false
}

// unknownIn finds what is never there among reads. Where a variable may hold
// several values, one of them has to have no such member for all to lack it.
func unknownIn(reads []valueRead, find func(inventoryPath) (UnknownRead, bool)) []UnknownRead {
	type place struct {
		file     string
		row, col int
		last     string
		length   int
	}
	known := map[place]bool{}
	found := map[place]UnknownRead{}
	for _, read := range reads {
		if len(read.path) == 0 || read.at == nil {
			continue
		}
		at := place{read.at.File, read.at.Row, read.at.Col, read.path[len(read.path)-1], len(read.path)}
		one, unknown := find(read.path)
		if !unknown {
			known[at] = true
			continue
		}
		one.place(nil, read.at)
		if other, ok := found[at]; !ok || one.Path() < other.Path() {
			found[at] = one
		}
	}
	maps.DeleteFunc(found, func(at place, _ UnknownRead) bool { return known[at] })
	return slices.Collect(maps.Values(found))
}

// UnknownObjectReads finds where a policy reads what the object never has. find
// says of a path in the object, * for the elements of a list and for names that
// the Rego does not tell, which of its steps is the first that is not known, and
// what could be meant.
func (p *Policy) UnknownObjectReads(find func(path []string) (step int, known []string, unknown bool)) []UnknownRead {
	if p.rule == nil || slices.ContainsFunc(p.ownModules(), func(module *ast.Module) bool { return replaces(module, ast.InputRootRef) }) {
		return nil
	}
	return inOrder(unknownIn(readsBelow(inputRoot, p.ownModules()), func(read inventoryPath) (UnknownRead, bool) {
		path, of := objectPath(read)
		if !of || len(path) == 0 {
			return UnknownRead{}, false
		}
		step, known, unknown := find(path)
		if !unknown {
			return UnknownRead{}, false
		}
		parent := strings.Join(append([]string{"input"}, read[:len(read)-len(path)+step]...), ".")
		return UnknownRead{Parent: strings.ReplaceAll(parent, "."+anyMember, "[_]"), Member: path[step], Known: known}, true
	}))
}

// Lookalikes lists the rules of the policy's module that are sets, that nothing
// refers to and that are not asked for: who wrote one may have meant one that is.
func (p *Policy) Lookalikes() []UnknownRead {
	if p.rule == nil {
		return nil
	}
	module := p.rule.compiler.Modules[moduleName]
	read := map[string]bool{}
	for _, one := range p.ownModules() {
		ast.WalkRefs(one, func(ref ast.Ref) bool {
			if len(ref) > len(module.Package.Path) && ref.HasPrefix(module.Package.Path) {
				name, _ := memberName(ref, len(module.Package.Path))
				read[name] = true
			}
			return false
		})
	}
	var found []UnknownRead
	for _, rule := range module.Rules {
		name := ruleName(rule)
		if verdictOf(name) != "" || read[name] || rule.Head.RuleKind() != ast.MultiValue {
			continue
		}
		one := UnknownRead{Parent: strings.TrimPrefix(module.Package.Path.String(), "data."), Member: name, Known: verdictRules}
		one.place(module, rule.Location)
		read[name] = true
		found = append(found, one)
	}
	return found
}

// findingMembers are what an element of a verdict may have; Gatekeeper's rules
// add details.
var findingMembers = []string{"msg", "field", "fix", "details"}

// OddMembers lists the members of what looks like an element of a verdict, as it
// has msg, field or fix, that nothing reads.
func (p *Policy) OddMembers() []UnknownRead {
	var found []UnknownRead
	for _, module := range p.ownModules() {
		ast.WalkTerms(module, func(term *ast.Term) bool {
			object, ok := term.Value.(ast.Object)
			if !ok {
				return false
			}
			var odd, lacks []string
			for _, name := range findingMembers {
				if object.Get(ast.StringTerm(name)) == nil {
					lacks = append(lacks, name)
				}
			}
			if len(lacks) == len(findingMembers) {
				return false
			}
			object.Foreach(func(key, _ *ast.Term) {
				if name, ok := key.Value.(ast.String); ok && !slices.Contains(findingMembers, string(name)) {
					odd = append(odd, string(name))
				}
			})
			slices.Sort(odd)
			for _, name := range odd {
				one := UnknownRead{Parent: "violation", Member: name, Known: lacks}
				one.place(module, term.Location)
				found = append(found, one)
			}
			return false
		})
	}
	return inOrder(found)
}
