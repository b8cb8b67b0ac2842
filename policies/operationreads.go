package policies

import (
	"cmp"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// An OperationRead is a place where a rule looks for an operation.
type OperationRead struct {
	Operation v1.PolicyOperation
	// Lib counts spec.libs from 1, 0 is spec.rego; Line counts from 1.
	Lib, Line int
}

// OperationReads lists the operations that the rules of a policy look for: to
// which they compare what is done, but for what only leaves them out, as in
// input.operation != "DELETE" or not is_delete. Each is there once.
func (p *Policy) OperationReads() []OperationRead { return once(p.operations().found) }

// OddOperations lists the texts that the rules of a policy compare what is done to
// and that are no operations, such as DELET. Each is there once.
func (p *Policy) OddOperations() []OperationRead { return once(p.operations().odd) }

func (p *Policy) operations() *operationFinder {
	modules := p.ownModules()
	if slices.ContainsFunc(modules, func(module *ast.Module) bool { return replaces(module, ast.InputRootRef) }) {
		return &operationFinder{}
	}
	f := &operationFinder{flow: flowBelow(inputRoot, modules), used: usedIn(modules)}
	for _, module := range modules {
		ast.WalkRules(module, func(r *ast.Rule) bool {
			if verdictOf(ruleName(r)) != "" || f.used[r.Ref().String()] {
				f.flow.rule, f.aliases = r, f.aliasesIn(r)
				f.visit(r.Body)
			}
			return false
		})
	}
	return f
}

// once are reads in the order of their places, each operation there once.
func once(found []OperationRead) []OperationRead {
	slices.SortFunc(found, func(a, b OperationRead) int {
		return cmp.Or(cmp.Compare(a.Lib, b.Lib), cmp.Compare(a.Line, b.Line), cmp.Compare(slices.Index(operations, a.Operation), slices.Index(operations, b.Operation)), cmp.Compare(a.Operation, b.Operation))
	})
	var once []OperationRead
	for _, one := range found {
		if !slices.ContainsFunc(once, func(other OperationRead) bool { return other.Operation == one.Operation }) {
			once = append(once, one)
		}
	}
	return once
}

// operationFinder finds where the operation is compared to constants.
type operationFinder struct {
	flow  *flowFinder
	used  map[string]bool
	found []OperationRead
	// odd are those of what is no operation.
	odd []OperationRead
	// aliases are the variables of a rule that are made what is done.
	aliases map[ast.Var]bool
}

func (f *operationFinder) aliasesIn(r *ast.Rule) map[ast.Var]bool {
	f.flow.rule, f.aliases = r, nil
	found := map[ast.Var]bool{}
	ast.WalkExprs(r.Body, func(expr *ast.Expr) bool {
		if to, from, ok := assignment(expr); ok && f.isOperation(from) {
			found[to] = true
		}
		return false
	})
	return found
}

func (f *operationFinder) visit(body ast.Body) {
	ast.WalkExprs(body, func(expr *ast.Expr) bool {
		of := slices.ContainsFunc(expr.Operands(), f.isOperation)
		if of && compares(expr) {
			f.addOdd(expr)
		}
		if leavesOut(expr) {
			return true
		}
		if !of {
			return false
		}
		for _, operand := range expr.Operands() {
			ast.WalkTerms(operand, func(term *ast.Term) bool {
				f.add(expr, term)
				return false
			})
		}
		return false
	})
}

// leavesOut reports whether an expression holds for what is not as it says.
func leavesOut(expr *ast.Expr) bool {
	return expr.Negated || expr.IsCall() && expr.Operator().Equal(ast.NotEqual.Ref())
}

// isOperation reports whether a term is what is done.
func (f *operationFinder) isOperation(term *ast.Term) bool {
	if name, ok := term.Value.(ast.Var); ok && f.aliases[name] {
		return true
	}
	for _, path := range f.flow.pathsOf(term) {
		member, _ := memberAt(path, 0)
		if member == "review" {
			member, _ = memberAt(path, 1)
		}
		if member == "operation" {
			return true
		}
	}
	return false
}

func (f *operationFinder) add(expr *ast.Expr, term *ast.Term) {
	name, ok := term.Value.(ast.String)
	operation := v1.PolicyOperation(name)
	if !ok || !slices.Contains(operations, operation) {
		return
	}
	f.found = append(f.found, readAt(expr, operation))
}

func readAt(expr *ast.Expr, operation v1.PolicyOperation) OperationRead {
	one := OperationRead{Operation: operation, Line: 1}
	if at := expr.Location; at != nil && at.Row > 0 {
		one.Line, one.Lib = at.Row, LibOf(at.File)
	}
	return one
}

// compares reports whether an expression holds, or not, for what is the same as
// another, or among others.
func compares(expr *ast.Expr) bool {
	return expr.IsCall() && slices.ContainsFunc([]*ast.Builtin{ast.Equality, ast.Equal, ast.NotEqual, ast.Member},
		func(builtin *ast.Builtin) bool { return expr.Operator().Equal(builtin.Ref()) })
}

// addOdd adds the texts that are compared to and are no operations. Gatekeeper's
// audit has an empty one.
func (f *operationFinder) addOdd(expr *ast.Expr) {
	add := func(term *ast.Term) {
		name, ok := term.Value.(ast.String)
		if operation := v1.PolicyOperation(name); ok && name != "" && !slices.Contains(operations, operation) {
			f.odd = append(f.odd, readAt(expr, operation))
		}
	}
	for _, operand := range expr.Operands() {
		switch value := operand.Value.(type) {
		case ast.Set:
			value.Foreach(add)
		case *ast.Array:
			value.Foreach(add)
		default:
			add(operand)
		}
	}
}

// usedIn are the references of modules, but for those that leave something out.
func usedIn(modules []*ast.Module) map[string]bool {
	used := map[string]bool{}
	for _, module := range modules {
		ast.WalkExprs(module, func(expr *ast.Expr) bool {
			if leavesOut(expr) {
				return true
			}
			ast.WalkRefs(expr, func(ref ast.Ref) bool {
				used[ref.ConstantPrefix().String()] = true
				return false
			})
			return false
		})
	}
	return used
}

// ReadsOldObjectAlone reports whether the rules look at the object before a
// request and never at the one that is written.
func (p *Policy) ReadsOldObjectAlone() bool {
	if p.rule == nil || p.rule.shared {
		return false
	}
	old := false
	for _, read := range readsBelow(inputRoot, p.ownModules()) {
		member, known := memberAt(read.path, 0)
		if member == "review" {
			member, known = memberAt(read.path, 1)
			if len(read.path) == 1 && !read.whole {
				continue // It is handed on.
			}
		}
		switch {
		case len(read.path) == 0 && !read.whole:
		case !known, member == "object", read.path[0] != "review" && !slices.Contains(inputMembers, member):
			return false
		case member == "oldObject":
			old = true
		}
	}
	return old
}
