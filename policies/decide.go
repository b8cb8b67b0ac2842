package policies

import (
	"context"
	"errors"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// decision is what a rule says without something that the request lacks.
type decision struct {
	// findings are those that do not depend on it.
	findings []finding
	// more tells that there were more than are collected.
	more bool
	// open is what is missing for the rest, none if there is nothing else to find.
	open needs
	// partly tells that something could be decided.
	partly bool
}

// decide evaluates a rule without what the trial lacks. The bodies that do not need
// it find what they find. Of the others it is known that they find nothing where
// what they ask beside it does not hold; what they find otherwise is left open.
func (e *evaluation) decide(ctx context.Context, t trial, cancel topdown.Cancel) (decision, error) {
	var d decision
	d.partly = len(t.policy.rule.queries) == 0
	document, cache := e.prepare(t)
	run := &bodyRun{
		missing: t.without(),
		whole:   func(q *query) (*ast.Term, error) { return e.query(ctx, t, q, document, cache, cancel) },
		evaluate: func(body ast.Body, each func(topdown.QueryResult) error) error {
			return e.topdown(t, body, document, cache, cancel).Iter(ctx, each)
		},
	}
	bodies := t.policy.rule.bodiesOf()
	for i := range t.policy.rule.queries {
		q := &t.policy.rule.queries[i]
		value, err := run.query(q, bodies[q.name], &d)
		if err != nil {
			return decision{}, err
		}
		if err := d.collect(q, value); err != nil {
			return decision{}, err
		}
	}
	return d, nil
}

// bodyRun evaluates bodies without what is missing.
type bodyRun struct {
	missing  needs
	whole    func(q *query) (*ast.Term, error)
	evaluate func(body ast.Body, each func(topdown.QueryResult) error) error
}

// query gives what can be told of the value of a rule, and notes the rest as open.
func (r *bodyRun) query(q *query, bodies []ruleBody, d *decision) (*ast.Term, error) {
	apart, needed := true, needs(0)
	for i := range bodies {
		apart, needed = apart && bodies[i].apart, needed|bodies[i].needs&r.missing
	}
	if needed == 0 {
		d.partly = true
		return r.whole(q)
	}
	found := ast.NewSet()
	for i := range bodies {
		body := &bodies[i]
		if apart && body.needs&r.missing == 0 {
			d.partly = true
			if err := r.add(body, found); err != nil {
				return nil, err
			}
			continue
		}
		holds, err := r.holds(body.without(r.missing))
		switch {
		case err != nil:
			return nil, err
		case holds:
			d.open |= needed
		default:
			d.partly = true
		}
	}
	switch {
	case found.Len() == 0:
		return nil, nil
	case bodies[0].key == nil:
		return ast.InternedTerm(true), nil
	}
	return ast.NewTerm(found), nil
}

var errEnough = errors.New("there is no need to look further")

// holds reports whether a body has a solution.
func (r *bodyRun) holds(body ast.Body) (bool, error) {
	if len(body) == 0 {
		return true, nil
	}
	err := r.evaluate(body, func(topdown.QueryResult) error { return errEnough })
	if errors.Is(err, errEnough) {
		return true, nil
	}
	return false, err
}

// foundVar is the variable for what a body finds; no rule has one of that name.
const foundVar = "__penstock_found__"

// add adds what a body finds to a set: true of one that adds to none itself.
func (r *bodyRun) add(body *ruleBody, to ast.Set) error {
	key := body.key
	if key == nil {
		key = ast.InternedTerm(true)
	}
	exprs := make(ast.Body, 0, len(body.exprs)+1)
	for i := range body.exprs {
		exprs = append(exprs, body.exprs[i].expr)
	}
	exprs = append(exprs, ast.Equality.Expr(ast.VarTerm(foundVar), key))
	err := r.evaluate(exprs, func(result topdown.QueryResult) error {
		to.Add(result[foundVar])
		if to.Len() > maxCollected {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
