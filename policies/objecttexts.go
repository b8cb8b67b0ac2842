package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// meantMembers are the members that are likely meant where objects of the input are
// compared to texts.
var meantMembers = map[string]string{"namespace": "name", "user": "username", "review.userInfo": "username", "object": "kind", "review.object": "kind", "review.kind": "kind", "review.resource": "resource"}

// ObjectTexts lists where the rules of a policy compare objects of the input to
// texts, which these never are, in the order of their places. Known is the member
// that is likely meant.
func (p *Policy) ObjectTexts() []UnknownRead {
	modules := p.ownModules()
	if slices.ContainsFunc(modules, func(module *ast.Module) bool { return replaces(module, ast.InputRootRef) }) {
		return nil
	}
	flow := flowBelow(inputRoot, modules)
	var found []UnknownRead
	for _, module := range modules {
		ast.WalkRules(module, func(r *ast.Rule) bool {
			flow.rule = r
			// A variable that no member is read of is not followed otherwise.
			stands := map[ast.Var]*ast.Term{}
			ast.WalkExprs(r.Body, func(expr *ast.Expr) bool {
				if to, from, ok := assignment(expr); ok && !expr.Negated && !ast.IsScalar(from.Value) {
					stands[to] = from
				}
				if !compares(expr) {
					return false
				}
				for _, one := range objectTextsOf(flow, expr, stands) {
					one.place(module, expr.Location)
					found = append(found, one)
				}
				return false
			})
			return false
		})
	}
	return inOrder(found)
}

func objectTextsOf(flow *flowFinder, expr *ast.Expr, stands map[ast.Var]*ast.Term) []UnknownRead {
	operands := expr.Operands()
	if len(operands) < 2 {
		return nil
	}
	var found []UnknownRead
	for i, operand := range operands[:2] {
		text, ok := textIn(operands[1-i])
		if !ok {
			continue
		}
		if name, ok := operand.Value.(ast.Var); ok && stands[name] != nil {
			operand = stands[name]
		}
		for _, path := range flow.pathsOf(operand) {
			name := strings.Join(path, ".")
			if member := meantMembers[name]; member != "" {
				one := UnknownRead{Parent: "input", Member: name, Known: []string{member}}
				one.Message = fmt.Sprintf("%s is an object, and never %q: write %s.%s", one.Path(), text, one.Path(), member)
				found = append(found, one)
			}
		}
	}
	return found
}

// textIn gives a text, or the first of some.
func textIn(term *ast.Term) (string, bool) {
	var first string
	found, others := false, false
	see := func(one *ast.Term) {
		text, ok := one.Value.(ast.String)
		if ok && !found {
			first = string(text)
		}
		found, others = found || ok, others || !ok
	}
	switch value := term.Value.(type) {
	case ast.Set:
		value.Foreach(see)
	case *ast.Array:
		value.Foreach(see)
	default:
		see(term)
	}
	return first, found && !others
}
