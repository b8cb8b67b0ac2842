package policies

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// An ObjectText is a place where a rule compares an object of its input to a text,
// which it never is.
type ObjectText struct {
	// Object is what is compared, such as input.namespace, and Member what is likely
	// meant, such as input.namespace.name.
	Object, Member string
	// Text is what it is compared to.
	Text string
	// Lib counts spec.libs from 1, 0 is spec.rego; Line counts from 1.
	Lib, Line int
}

// meantMembers are the members that are likely meant where the objects are compared.
var meantMembers = map[string]string{"namespace": "name", "user": "username", "review.userInfo": "username", "object": "kind", "review.object": "kind", "review.kind": "kind", "review.resource": "resource"}

// ObjectTexts lists where the rules of a policy compare objects of the input to
// texts, in the order of the text.
func (p *Policy) ObjectTexts() []ObjectText {
	modules := p.ownModules()
	if slices.ContainsFunc(modules, func(module *ast.Module) bool { return replaces(module, ast.InputRootRef) }) {
		return nil
	}
	flow := flowBelow(inputRoot, modules)
	var found []ObjectText
	for _, module := range modules {
		ast.WalkRules(module, func(r *ast.Rule) bool {
			flow.rule = r
			// A variable that no member is read of is not followed otherwise.
			stands := map[ast.Var]*ast.Term{}
			ast.WalkExprs(r.Body, func(expr *ast.Expr) bool {
				if to, from, ok := assignment(expr); ok && !expr.Negated && !ast.IsScalar(from.Value) {
					stands[to] = from
				}
				if compares(expr) {
					found = append(found, objectTextsOf(flow, expr, stands)...)
				}
				return false
			})
			return false
		})
	}
	return found
}

func objectTextsOf(flow *flowFinder, expr *ast.Expr, stands map[ast.Var]*ast.Term) []ObjectText {
	operands := expr.Operands()
	if len(operands) < 2 {
		return nil
	}
	var found []ObjectText
	for i, operand := range operands[:2] {
		text, ok := textIn(operands[1-i])
		if !ok {
			continue
		}
		if name, ok := operand.Value.(ast.Var); ok && stands[name] != nil {
			operand = stands[name]
		}
		for _, path := range flow.pathsOf(operand) {
			if member := meantMembers[strings.Join(path, ".")]; member != "" {
				one := ObjectText{Object: "input." + strings.Join(path, "."), Text: text, Line: 1}
				one.Member = one.Object + "." + member
				if at := expr.Location; at != nil && at.Row > 0 {
					one.Line, one.Lib = at.Row, LibOf(at.File)
				}
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
