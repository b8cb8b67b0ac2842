package policies

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// guard tells, without running Rego, that a rule that adds to a set adds
// nothing to it. The body of a rule is a conjunction: where one of its
// expressions is known to fail, all of it does. What a guard knows are
// expressions on input.object, input.parameters, and the values and functions
// of the shared library that are computed natively; all others it takes to
// hold. So it never decides that a rule holds, and a rule means what its text
// says with a guard and without.
type guard struct {
	// bodies are those of the rules of one set. The guard holds if one of them
	// may.
	bodies []guardBody
}

// guardBody is what a guard knows of one body: its expressions in order. Their
// variables are numbered.
type guardBody struct {
	steps     []guardStep
	variables int
}

// guardStep is an expression: a value that must be neither undefined nor false,
// two values that must be equal, or a call.
type guardStep struct {
	negated  bool
	operator string
	// workload is the function of the shared library that is called, if one is.
	workload *workloadFunction
	operands []guardOperand
	// result is the variable that a call gives its result to, -1 if it is a test.
	result int
}

// guardOperand is a constant, a variable, or a reference into one or into
// something that is known by name.
type guardOperand struct {
	constant *ast.Term
	// variable is -1 where there is none.
	variable int
	// named is input.object, input.parameters, or a value of the shared library.
	named string
	path  []guardOperand
}

const (
	guardTruth = "truth"
	guardEqual = "eq"

	namedObject     = "input.object"
	namedParameters = "input.parameters"
)

// guardBuiltins are the builtins that a guard calls, by how many operands they
// have. None of them depends on anything else.
var guardBuiltins = map[string]int{
	"gt": 2, "gte": 2, "lt": 2, "lte": 2, "equal": 2, "neq": 2,
	"count": 1, "plus": 2, "minus": 2, "mul": 2, "startswith": 2, "endswith": 2, "contains": 2,
	"internal.member_2": 2, "to_number": 1,
}

// newGuard reads the compiled rules of one set. It is nil where it could not
// tell anything.
func newGuard(rules []*ast.Rule) *guard {
	g := &guard{}
	for _, rule := range rules {
		if rule.Default || rule.Else != nil || rule.Head.RuleKind() != ast.MultiValue || len(rule.Head.Ref()) != 1 {
			return nil
		}
		reader := guardReader{variables: map[ast.Var]int{}}
		for _, expr := range rule.Body {
			reader.read(expr)
		}
		if len(reader.steps) == 0 {
			return nil
		}
		g.bodies = append(g.bodies, guardBody{steps: reader.steps, variables: len(reader.variables)})
	}
	return g
}

// guardReader reads the expressions of one body.
type guardReader struct {
	steps     []guardStep
	variables map[ast.Var]int
}

func (r *guardReader) read(expr *ast.Expr) {
	if len(expr.With) > 0 {
		return
	}
	step := guardStep{negated: expr.Negated, result: -1}
	var terms []*ast.Term
	switch found := expr.Terms.(type) {
	case *ast.Term:
		step.operator, terms = guardTruth, []*ast.Term{found}
	case []*ast.Term:
		var ok bool
		if terms, ok = r.call(&step, expr.Operator(), found[1:]); !ok {
			return
		}
	default:
		return
	}
	for _, term := range terms {
		operand, ok := r.operand(term)
		if !ok {
			return
		}
		step.operands = append(step.operands, operand)
	}
	r.steps = append(r.steps, step)
}

// call notes what a step calls, and returns the operands. It reports whether a
// guard knows the callee.
func (r *guardReader) call(step *guardStep, callee ast.Ref, terms []*ast.Term) ([]*ast.Term, bool) {
	step.operator = callee.String()
	if step.operator == guardEqual {
		return terms, true
	}
	arity, known := guardBuiltins[step.operator]
	if name, ok := workloadRule(callee); ok {
		if function, native := workloadFunctions[name]; native {
			arity, known, step.workload, step.operator = function.arity, true, &function, name
		}
	}
	switch {
	case !known:
		return nil, false
	case len(terms) == arity:
		return terms, true
	case len(terms) != arity+1 || step.negated:
		return nil, false
	}
	result, ok := terms[arity].Value.(ast.Var)
	if !ok {
		return nil, false
	}
	step.result = r.variable(result)
	return terms[:arity], true
}

func (r *guardReader) variable(name ast.Var) int {
	if _, ok := r.variables[name]; !ok {
		r.variables[name] = len(r.variables)
	}
	return r.variables[name]
}

func (r *guardReader) operand(term *ast.Term) (guardOperand, bool) {
	switch value := term.Value.(type) {
	case ast.Var:
		return guardOperand{variable: r.variable(value)}, true
	case ast.Ref:
		return r.reference(value)
	}
	return guardOperand{constant: term, variable: -1}, ast.IsConstant(term.Value)
}

func (r *guardReader) reference(ref ast.Ref) (guardOperand, bool) {
	operand, path := guardOperand{variable: -1}, ref[1:]
	root, isVar := ref[0].Value.(ast.Var)
	switch {
	case !isVar:
		return operand, false
	case len(ref) > 1 && (ref[:2].Equal(objectRef) || ref[:2].Equal(parametersRef)):
		operand.named, path = ref[:2].String(), ref[2:]
	case len(ref) > len(workloadPackage) && ref.HasPrefix(workloadPackage):
		name, ok := workloadRule(ref[:len(workloadPackage)+1])
		if _, native := workloadValues[name]; !ok || !native {
			return operand, false
		}
		operand.named, path = name, ref[len(workloadPackage)+1:]
	case root.Equal(ast.InputRootDocument.Value) || root.Equal(ast.DefaultRootDocument.Value):
		return operand, false
	default:
		operand.variable = r.variable(root)
	}
	for _, segment := range path {
		at, ok := r.operand(segment)
		if !ok {
			return operand, false
		}
		operand.path = append(operand.path, at)
	}
	return operand, true
}

var (
	objectRef     = ast.MustParseRef(namedObject)
	parametersRef = ast.MustParseRef(namedParameters)
)
