package policies

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// knowledge is what is known of a value: nothing, that there is none, or the
// value.
type knowledge int

const (
	isUnknown knowledge = iota
	isUndefined
	isDefined
)

// guardFuel is how many elements a guard tries for one body before it leaves the
// rest to Rego, which can be cut.
const guardFuel = 256

// guardRun decides the guards of one policy for one request.
type guardRun struct {
	object     *ast.Term
	parameters *ast.Term
	workload   *workload
	// inventory is nil where the policy reads none, or some is missing.
	inventory *inventoryView
	// variables of the body at hand; nil where not known. assigned are those that
	// were given a value, in order.
	variables []*ast.Term
	assigned  []int
	fuel      int
}

// mayHold reports whether a rule of the set may add to it.
func (g *guard) mayHold(run *guardRun) bool {
	if g == nil {
		return true
	}
	for i := range g.bodies {
		if run.mayHold(&g.bodies[i]) {
			return true
		}
	}
	return false
}

func (r *guardRun) mayHold(body *guardBody) bool {
	if cap(r.variables) < body.variables {
		r.variables = make([]*ast.Term, body.variables)
	}
	r.variables = r.variables[:body.variables]
	clear(r.variables)
	r.assigned, r.fuel = r.assigned[:0], guardFuel
	return r.rest(body.steps)
}

// rest reports whether steps may hold, one after the other.
func (r *guardRun) rest(steps []guardStep) bool {
	for i := range steps {
		if list, key := r.choice(&steps[i]); list != nil {
			return r.any(list, key, steps[i:])
		}
		if !r.step(&steps[i]) {
			return false
		}
	}
	return true
}

// choice finds a value that a step goes through, and the variable that takes its
// keys; nil where the step goes through none.
func (r *guardRun) choice(s *guardStep) (list *ast.Term, key int) {
	if s.negated || s.workload != nil || s.operator != guardTruth && s.operator != guardEqual {
		return nil, 0
	}
	for i := range s.operands {
		if list, key := r.open(&s.operands[i]); list != nil {
			return list, key
		}
	}
	return nil, 0
}

// open finds the value in which a reference leaves open what it is about.
func (r *guardRun) open(o *guardOperand) (list *ast.Term, key int) {
	if len(o.path) == 0 {
		return nil, 0
	}
	at := r.root(o)
	for i := range o.path {
		if at.is != isDefined {
			return nil, 0
		}
		segment := &o.path[i]
		if segment.isVariable() && r.variables[segment.variable] == nil {
			return at.term, segment.variable
		}
		at = r.below(at.term, segment)
	}
	return nil, 0
}

// any reports whether steps may hold for some key of a list, object or set.
func (r *guardRun) any(list *ast.Term, key int, steps []guardStep) bool {
	mark := len(r.assigned)
	holds := func(term *ast.Term) bool {
		if r.fuel--; r.fuel < 0 {
			return true
		}
		r.assign(key, term)
		held := r.rest(steps)
		for _, variable := range r.assigned[mark:] {
			r.variables[variable] = nil
		}
		r.assigned = r.assigned[:mark]
		return held
	}
	switch collection := list.Value.(type) {
	case ast.Object:
		return collection.Until(func(key, _ *ast.Term) bool { return holds(key) })
	case ast.Set:
		return collection.Until(holds)
	case *ast.Array:
		for i := range collection.Len() {
			if holds(ast.InternedTerm(i)) {
				return true
			}
		}
	}
	return false
}

// step reports whether an expression may hold, and notes what it gives to
// variables.
func (r *guardRun) step(s *guardStep) bool {
	switch {
	case s.operator == guardTruth && s.workload == nil:
		return r.test(s, r.value(&s.operands[0]))
	case s.operator == guardEqual && s.workload == nil:
		return s.negated || r.unify(&s.operands[0], &s.operands[1])
	}
	operands := [guardOperands]*ast.Term{}
	for i := range s.operands {
		found := r.value(&s.operands[i])
		if found.is != isDefined {
			// A call with an operand that is undefined is so itself.
			return s.negated || found.is == isUnknown
		}
		operands[i] = found.term
	}
	result := r.call(s, operands[:len(s.operands)])
	switch {
	case result == nil:
		return true
	case s.result >= 0:
		return r.assign(s.result, result)
	default:
		return r.test(s, guardValue{isDefined, result})
	}
}

// test reports whether a value may be true, or may not be if it is negated.
func (r *guardRun) test(s *guardStep, found guardValue) bool {
	holds := found.is == isDefined && found.term.Value.Compare(ast.Boolean(false)) != 0
	switch {
	case found.is == isUnknown:
		return true
	case s.negated:
		return !holds
	default:
		return holds
	}
}

func (r *guardRun) call(s *guardStep, operands []*ast.Term) *ast.Term {
	if s.workload != nil {
		if r.workload == nil {
			return nil
		}
		return r.workload.call(s.operator, operands)
	}
	switch s.operator {
	case "gt":
		return ast.InternedTerm(operands[0].Value.Compare(operands[1].Value) > 0)
	case "gte":
		return ast.InternedTerm(operands[0].Value.Compare(operands[1].Value) >= 0)
	case "lt":
		return ast.InternedTerm(operands[0].Value.Compare(operands[1].Value) < 0)
	case "lte":
		return ast.InternedTerm(operands[0].Value.Compare(operands[1].Value) <= 0)
	case "equal":
		return ast.InternedTerm(operands[0].Value.Compare(operands[1].Value) == 0)
	case "neq":
		return ast.InternedTerm(operands[0].Value.Compare(operands[1].Value) != 0)
	default:
		return call(s.operator, operands...)
	}
}

// unify reports whether two values may be equal; a variable that has no value
// yet gets that of the other side.
func (r *guardRun) unify(a, b *guardOperand) bool {
	left, right := r.value(a), r.value(b)
	switch {
	case left.is == isUndefined || right.is == isUndefined:
		return false
	case left.is == isDefined && right.is == isDefined:
		return left.term.Value.Compare(right.term.Value) == 0
	case left.is == isDefined && b.isVariable():
		return r.assign(b.variable, left.term)
	case right.is == isDefined && a.isVariable():
		return r.assign(a.variable, right.term)
	default:
		return true
	}
}

func (r *guardRun) assign(variable int, value *ast.Term) bool {
	if known := r.variables[variable]; known != nil {
		return known.Value.Compare(value.Value) == 0
	}
	r.variables[variable] = value
	r.assigned = append(r.assigned, variable)
	return true
}

func (o *guardOperand) isVariable() bool { return o.variable >= 0 && len(o.path) == 0 }

// guardValue is what is known of an operand.
type guardValue struct {
	is   knowledge
	term *ast.Term
}

func (r *guardRun) value(o *guardOperand) guardValue {
	at := r.root(o)
	for i := range o.path {
		if at.is != isDefined {
			return at
		}
		at = r.below(at.term, &o.path[i])
	}
	return at
}

// root is what an operand begins at.
func (r *guardRun) root(o *guardOperand) guardValue {
	var at *ast.Term
	switch {
	case o.constant != nil:
		at = o.constant
	case o.variable >= 0:
		if at = r.variables[o.variable]; at == nil {
			return guardValue{is: isUnknown}
		}
	case o.inventory != nil:
		if r.inventory == nil {
			return guardValue{is: isUnknown}
		}
		at = r.inventory.clusterTerm(o.inventory)
	case o.named == namedObject:
		at = r.object
	case o.named == namedParameters:
		at = r.parameters
	case r.workload == nil:
		return guardValue{is: isUnknown}
	default:
		at = r.workload.value(o.named)
	}
	if at = or(at, o.otherwise); at == nil {
		return guardValue{is: isUndefined}
	}
	return guardValue{isDefined, at}
}

// below is what lies in a value at a segment of a path.
func (r *guardRun) below(at *ast.Term, segment *guardOperand) guardValue {
	key := r.value(segment)
	if key.is != isDefined {
		return r.into(at)
	}
	if found := elementOf(at, key.term); found != nil {
		return guardValue{isDefined, found}
	}
	_, isList := at.Value.(*ast.Array)
	_, isText := key.term.Value.(ast.String)
	if isList == isText {
		// Of the inventory Rego reads by paths of texts, in which "1" is an index and
		// 1 a name.
		return guardValue{is: isUnknown}
	}
	return guardValue{is: isUndefined}
}

// into is what is known of an element of a value when it is not known which:
// that there is none where the value has none.
func (r *guardRun) into(at *ast.Term) guardValue {
	if sizeOf(at) == 0 {
		return guardValue{is: isUndefined}
	}
	return guardValue{is: isUnknown}
}

func sizeOf(value *ast.Term) int {
	switch collection := value.Value.(type) {
	case ast.Object:
		return collection.Len()
	case *ast.Array:
		return collection.Len()
	case ast.Set:
		return collection.Len()
	default:
		return 0
	}
}

// elementOf is what a reference finds in a value at a key, nil when nothing.
func elementOf(value, key *ast.Term) *ast.Term {
	switch collection := value.Value.(type) {
	case ast.Object:
		return collection.Get(key)
	case *ast.Array:
		return collection.Get(key)
	case ast.Set:
		if collection.Contains(key) {
			return key
		}
	}
	return nil
}
