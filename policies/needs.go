package policies

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// needs are what Rego needs beside the object, and what a request may lack.
type needs uint8

const (
	needsUser needs = 1 << iota
	needsOptions
	needsInventory
	needsNamespace
	// needsWrite is what is about the write and not about what is written. No request
	// lacks it; a stored object does, with which an update is compared.
	needsWrite
)

var needsOf = map[Missing]needs{MissingUser: needsUser, MissingOptions: needsOptions, MissingInventory: needsInventory, MissingNamespaceLabels: needsNamespace}

// lack is what a policy needs of a request and is not there.
type lack struct {
	missing Missing
	// err is what that means in a cluster; nil where it is no error, as what is
	// missing cannot be known.
	err error
}

type lacks []lack

// needs are those that are not met.
func (l lacks) needs() needs {
	var unmet needs
	for _, one := range l {
		unmet |= needsOf[one.missing]
	}
	return unmet
}

// first is the first that some of what is needed is missing by, nil if none is.
func (l lacks) first(needed needs) *lack {
	for i := range l {
		if needsOf[l[i].missing]&needed != 0 {
			return &l[i]
		}
	}
	return nil
}

// A ruleBody is one body of a rule that finds violations.
type ruleBody struct {
	exprs []bodyExpr
	// apart tells that what the body finds can be told by itself: key, which it adds
	// to a set, or true, where there is none.
	apart bool
	key   *ast.Term
	// needs are those of the body with what it finds.
	needs needs
}

// A bodyExpr is an expression of a compiled body.
type bodyExpr struct {
	expr  *ast.Expr
	needs needs
	// variables are all that it mentions; bound, those that have a value where it
	// holds.
	variables, bound ast.VarSet
}

// bodiesOf gives the bodies of the rules that find violations, by their names.
func (r *rule) bodiesOf() map[string][]ruleBody {
	r.findBodies.Do(func() {
		f := newNeedsFinder(r)
		r.bodies = map[string][]ruleBody{}
		for i := range r.queries {
			name := r.queries[i].name
			for _, one := range r.named(name) {
				r.bodies[name] = append(r.bodies[name], f.bodies(one)...)
			}
		}
	})
	return r.bodies
}

// needsFinder tells what expressions need: what they read themselves, and what the
// rules and functions read that they refer to. It errs on the side of more.
type needsFinder struct {
	input *flowFinder
	rules []ruleNeeds
}

// ruleNeeds are those of one rule.
type ruleNeeds struct {
	ref   ast.Ref
	refs  []ast.Ref
	needs needs
}

func newNeedsFinder(r *rule) *needsFinder {
	f := &needsFinder{input: flowBelow(inputRoot, r.ownModules())}
	for _, one := range f.input.all {
		f.rules = append(f.rules, f.rule(one))
	}
	for changed := true; changed; {
		changed = false
		for i := range f.rules {
			one := &f.rules[i]
			for _, ref := range one.refs {
				if more := f.refers(ref); more&^one.needs != 0 {
					one.needs, changed = one.needs|more, true
				}
			}
		}
	}
	return f
}

// rule is what one rule reads, and what it refers to.
func (f *needsFinder) rule(r *ast.Rule) ruleNeeds {
	whole := ruleNeeds{ref: r.Ref().ConstantPrefix()}
	whole.needs = f.reads(r, r.Body)
	f.input.reads = nil
	f.input.visitHead(r)
	whole.needs |= f.read()
	for _, part := range []any{r.Head, r.Body} {
		whole.needs |= inventoryIn(part)
		ast.WalkRefs(part, func(ref ast.Ref) bool {
			whole.refs = append(whole.refs, ref.ConstantPrefix())
			return false
		})
	}
	return whole
}

// of is what a part of a rule needs.
func (f *needsFinder) of(r *ast.Rule, part any) needs {
	found := f.reads(r, part)
	ast.WalkRefs(part, func(ref ast.Ref) bool {
		found |= f.refers(ref.ConstantPrefix())
		return false
	})
	return found
}

// reads is what a part of a rule reads itself.
func (f *needsFinder) reads(r *ast.Rule, part any) needs {
	f.input.rule, f.input.at, f.input.reads = r, r.Location, nil
	f.input.visit(part)
	return f.read() | inventoryIn(part)
}

// read is what the finder has just seen to be read of the input.
func (f *needsFinder) read() needs {
	var found needs
	read := readsOf(f.input.reads)
	if read.user {
		found |= needsUser
	}
	if read.options {
		found |= needsOptions
	}
	if read.namespace {
		found |= needsNamespace
	}
	if read.write {
		found |= needsWrite
	}
	return found
}

func inventoryIn(part any) needs {
	var found needs
	ast.WalkRefs(part, func(ref ast.Ref) bool {
		if readsInventory(ref) {
			found |= needsInventory
		}
		return false
	})
	return found
}

// refers is what the rules need that a reference, as far as it is constant, may
// lead to.
func (f *needsFinder) refers(ref ast.Ref) needs {
	var found needs
	if !ref[0].Equal(ast.DefaultRootDocument) {
		return found
	}
	for i := range f.rules {
		if one := &f.rules[i]; ref.HasPrefix(one.ref) || one.ref.HasPrefix(ref) {
			found |= one.needs
		}
	}
	return found
}

// bodies are those of a rule and of what else it is; none of a default of false,
// which finds nothing.
func (f *needsFinder) bodies(r *ast.Rule) []ruleBody {
	if r.Default && r.Head.Value.Equal(ast.InternedTerm(false)) {
		return nil
	}
	var found []ruleBody
	for one := r; one != nil; one = one.Else {
		body := f.body(one)
		body.apart = body.apart && r.Else == nil
		found = append(found, body)
	}
	return found
}

func (f *needsFinder) body(r *ast.Rule) ruleBody {
	var body ruleBody
	for _, expr := range r.Body {
		one := bodyExpr{
			expr: expr, needs: f.of(r, expr),
			variables: variablesOf(expr, ast.VarVisitorParams{SkipRefCallHead: true, SkipWithTarget: true}),
			bound:     variablesOf(expr, ast.VarVisitorParams{SkipRefCallHead: true, SkipWithTarget: true, SkipClosures: true}),
		}
		body.exprs, body.needs = append(body.exprs, one), body.needs|one.needs
	}
	head := r.Head
	for _, term := range []*ast.Term{head.Key, head.Value} {
		if term != nil {
			body.needs |= f.of(r, term)
		}
	}
	switch {
	case len(r.Ref()) != len(r.Module.Package.Path)+1:
	case head.RuleKind() == ast.MultiValue:
		body.key, body.apart = head.Key, true
	default:
		body.apart = !r.Default && head.Value.Equal(ast.InternedTerm(true))
	}
	return body
}

func variablesOf(expr *ast.Expr, params ast.VarVisitorParams) ast.VarSet {
	visitor := ast.NewVarVisitor().WithParams(params)
	visitor.Walk(expr)
	return visitor.Vars().Diff(ast.ReservedVars)
}

// without is a body that holds wherever this one does, whatever is missing: its
// expressions but for those that need it, and those that build on them. Where that
// does not hold, the body does not.
func (b *ruleBody) without(missing needs) ast.Body {
	var kept ast.Body
	bound, lost := ast.VarSet{}, ast.VarSet{}
	for i := range b.exprs {
		one := &b.exprs[i]
		if one.needs&missing == 0 && len(one.variables.Intersect(lost)) == 0 {
			kept = append(kept, one.expr)
			bound.Update(one.bound)
			continue
		}
		// What is not known by now never is.
		lost.Update(one.variables.Diff(bound))
	}
	return kept
}
