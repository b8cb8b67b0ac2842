package policies

import (
	"cmp"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// members are the names that a part of the input may have; nil of a part where
// any name may be.
type members map[string]members

// inputShape is what of the input is known by name. The members of the object
// may be at the top as well.
var inputShape = func() members {
	user := members{"username": nil, "uid": nil, "groups": nil, "extra": nil}
	namespace := members{"metadata": {"name": nil, "labels": nil}}
	of := func(name string) members { return members{"group": nil, "version": nil, name: nil} }
	return members{
		"object": nil, "oldObject": nil, "operation": nil, "parameters": nil,
		"user":      user,
		"namespace": {"name": nil, "labels": nil},
		"review": {
			"uid": nil, "name": nil, "namespace": nil, "operation": nil, "object": nil, "oldObject": nil, "options": nil, "dryRun": nil, "subResource": nil,
			"kind": of("kind"), "resource": of("resource"), "userInfo": user, "namespaceObject": namespace,
			"requestKind": of("kind"), "requestResource": of("resource"), "requestSubResource": nil,
			// Gatekeeper has the namespace here, too.
			"_unstable": {"namespace": namespace},
		},
	}
}()

// An UnknownRead is a place where a rule reads what is never there.
type UnknownRead struct {
	RegoFault
	// Parent is what has no such member, such as input.review, data or
	// workload.containers[_], and Member its name.
	Parent, Member string
	// Known are the members that there are.
	Known []string
}

// Path is the member as a rule writes it, such as input.review.objct.
func (r UnknownRead) Path() string { return r.Parent + "." + r.Member }

// Top reports whether the member would be at the top of the input, where it may
// be one of the object.
func (r UnknownRead) Top() bool { return r.Parent == "input" }

// UnknownReads lists where the rules of a policy read what is never there: members
// that the input does not have, names below data, and members of what the shared
// library gives, in the order of their places. Rules that make an input or data of
// their own have none of these.
func (p *Policy) UnknownReads() []UnknownRead {
	return inOrder(append(p.unknownInputReads(), p.unknownDataReads()...))
}

func inOrder(found []UnknownRead) []UnknownRead {
	slices.SortFunc(found, func(a, b UnknownRead) int {
		return cmp.Or(cmp.Compare(a.Lib, b.Lib), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Member, b.Member), cmp.Compare(a.Parent, b.Parent))
	})
	return slices.CompactFunc(found, func(a, b UnknownRead) bool {
		return a.Lib == b.Lib && a.Line == b.Line && a.Column == b.Column && a.Member == b.Member
	})
}

// unknownInputReads finds what is read of the input and not there, by references
// and through variables, functions and object.get.
func (p *Policy) unknownInputReads() []UnknownRead {
	var found []UnknownRead
	for _, module := range p.ownModules() {
		if replaces(module, ast.InputRootRef) {
			return nil
		}
		ast.WalkTerms(module, func(term *ast.Term) bool {
			ref, ok := term.Value.(ast.Ref)
			if ok && ref.HasPrefix(ast.InputRootRef) {
				path := pathSet{}.with(nil, ref, 1)
				for _, path := range path {
					if one, unknown := inputShape.unknown(path, "input"); unknown {
						one.place(module, term.Location)
						found = append(found, one)
					}
				}
			}
			return false
		})
	}
	if p.rule == nil {
		return nil
	}
	for _, one := range unknownIn(readsBelow(inputRoot, p.ownModules()), func(path inventoryPath) (UnknownRead, bool) { return inputShape.unknown(path, "input") }) {
		if !slices.ContainsFunc(found, func(other UnknownRead) bool {
			return other.Lib == one.Lib && other.Line == one.Line && other.Path() == one.Path()
		}) {
			found = append(found, one)
		}
	}
	return found
}

// place notes where it is read; a module stands in where that is not known.
func (r *UnknownRead) place(module *ast.Module, at *ast.Location) {
	r.Line, r.Column, r.Code = 1, 1, ast.TypeErr
	if at == nil && module != nil {
		at = module.Package.Location
	}
	if at != nil && at.Row > 0 {
		r.Line, r.Column, r.Lib = at.Row, max(at.Col, 1), LibOf(at.File)
	}
}

// ownModules are the compiled modules of spec.rego and spec.libs; none of a
// policy that did not compile.
func (p *Policy) ownModules() []*ast.Module {
	if p.rule == nil {
		return nil
	}
	return p.rule.ownModules()
}

func (r *rule) ownModules() []*ast.Module {
	own := []*ast.Module{r.compiler.Modules[moduleName]}
	for i := range r.libs {
		own = append(own, r.compiler.Modules[libName(i)])
	}
	return own
}

// replaces reports whether a module evaluates something with another input, or
// other data.
func replaces(module *ast.Module, root ast.Ref) bool {
	found := false
	ast.WalkWiths(module, func(with *ast.With) bool {
		ref, ok := with.Target.Value.(ast.Ref)
		found = found || ok && ref.HasPrefix(root)
		return found
	})
	return found
}

// ParameterReads lists the parameters that the rules of a policy read, sorted.
// known is false where their Rego does not tell them all.
func (p *Policy) ParameterReads() (names []string, known bool) {
	f := &parameterFinder{names: map[string]bool{}, known: p.rule != nil}
	for _, module := range p.ownModules() {
		f.known = f.known && !replaces(module, ast.InputRootRef)
		for _, rule := range module.Rules {
			f.visitRule(rule)
		}
	}
	return slices.Sorted(maps.Keys(f.names)), f.known
}

// A ParameterKey is a parameter that a policy sets.
type ParameterKey struct {
	Key  string
	Path *field.Path
}

// ParameterKeys lists the parameters that spec.parameters and the overrides set,
// in the order of their places.
func (p *Policy) ParameterKeys() []ParameterKey {
	var found []ParameterKey
	add := func(value ast.Value, path *field.Path) {
		object, ok := value.(ast.Object)
		if !ok {
			return
		}
		var keys []string
		object.Foreach(func(key, _ *ast.Term) {
			if name, ok := key.Value.(ast.String); ok {
				keys = append(keys, string(name))
			}
		})
		slices.Sort(keys)
		for _, key := range keys {
			found = append(found, ParameterKey{key, path.Child(key)})
		}
	}
	path := field.NewPath("spec")
	add(p.settings.parameters, path.Child("parameters"))
	for i, override := range p.settings.overrides {
		add(override.parameters, path.Child("overrides").Index(i).Child("parameters"))
	}
	return found
}

// parameterFinder finds what is read of input.parameters: by references, by
// object.get with a constant path, and by variables that stand for it.
type parameterFinder struct {
	names map[string]bool
	known bool
	// aliases are the variables of a rule that are input.parameters.
	aliases map[ast.Var]bool
}

func (f *parameterFinder) visitRule(rule *ast.Rule) {
	f.aliases = map[ast.Var]bool{}
	ast.WalkExprs(rule, func(expr *ast.Expr) bool {
		if to, from, ok := assignment(expr); ok && isParameters(from) {
			f.aliases[to] = true
		}
		return false
	})
	ast.NewGenericVisitor(f.visit).Walk(rule)
}

// assignment gives a variable and what an expression makes it.
func assignment(expr *ast.Expr) (to ast.Var, from *ast.Term, ok bool) {
	if !expr.IsEquality() && !expr.IsAssignment() || len(expr.With) > 0 {
		return "", nil, false
	}
	left, right := expr.Operand(0), expr.Operand(1)
	if to, ok = left.Value.(ast.Var); ok {
		return to, right, true
	}
	to, ok = right.Value.(ast.Var)
	return to, left, ok
}

func isParameters(term *ast.Term) bool {
	ref, ok := term.Value.(ast.Ref)
	return ok && ref.Equal(parametersRef)
}

// whole reports whether a term is input.parameters or stands for it.
func (f *parameterFinder) whole(term *ast.Term) bool {
	name, ok := term.Value.(ast.Var)
	return ok && f.aliases[name] || isParameters(term)
}

func (f *parameterFinder) visit(x any) bool {
	switch x := x.(type) {
	case *ast.Expr:
		return f.visitExpr(x)
	case *ast.Term:
		return f.visitTerm(x)
	}
	return false
}

func (f *parameterFinder) visitExpr(expr *ast.Expr) bool {
	if _, from, ok := assignment(expr); ok && isParameters(from) {
		return true
	}
	if !expr.IsCall() || !expr.Operator().Equal(ast.ObjectGet.Ref()) || len(expr.With) > 0 {
		return false
	}
	return f.visitGet(expr.Operands())
}

// visitGet handles object.get of parameters. It reports whether there is nothing
// more to look at.
func (f *parameterFinder) visitGet(operands []*ast.Term) bool {
	if len(operands) < 3 || !f.whole(operands[0]) {
		return false
	}
	steps, constant := constantPath(operands[1])
	if !constant || len(steps) == 0 || steps[0] == anyMember {
		return false
	}
	f.names[steps[0]] = true
	for _, operand := range operands[2:] {
		ast.NewGenericVisitor(f.visit).Walk(operand)
	}
	return true
}

func (f *parameterFinder) visitTerm(term *ast.Term) bool {
	switch value := term.Value.(type) {
	case ast.Var:
		// Where it goes from here is not followed.
		f.known = f.known && !f.aliases[value] && value != ast.InputRootDocument.Value.(ast.Var)
	case ast.Call:
		if call, ok := value[0].Value.(ast.Ref); ok && call.Equal(ast.ObjectGet.Ref()) {
			return f.visitGet(value[1:])
		}
	case ast.Ref:
		f.visitRef(value)
		for _, element := range value[1:] {
			ast.NewGenericVisitor(f.visit).Walk(element)
		}
		return true
	}
	return false
}

func (f *parameterFinder) visitRef(ref ast.Ref) {
	at := 1
	switch head, isVar := ref[0].Value.(ast.Var); {
	case isVar && f.aliases[head]:
	case ref.HasPrefix(parametersRef):
		at = 2
	case ref.HasPrefix(ast.InputRootRef):
		_, constant := memberName(ref, 1)
		f.known = f.known && constant
		return
	default:
		return
	}
	name, constant := memberName(ref, at)
	if !constant {
		f.known = false
		return
	}
	f.names[name] = true
}
