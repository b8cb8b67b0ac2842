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
	// inventory is the path of a kind in data.inventory, without a namespace.
	inventory []string
	// otherwise is what there is where nothing is; nil for nothing.
	otherwise *ast.Term
	path      []guardOperand
}

const (
	// guardOperands is how many a call has at most.
	guardOperands = 5

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

// newGuard reads the compiled rules of one set of a policy, which named gives by
// name. It is nil where it could not tell anything.
func newGuard(pkg ast.Ref, set string, named func(string) []*ast.Rule) *guard {
	g := &guard{}
	for _, rule := range named(set) {
		if rule.Default || rule.Else != nil || rule.Head.RuleKind() != ast.MultiValue || len(rule.Head.Ref()) != 1 {
			return nil
		}
		reader := guardReader{pkg: pkg, named: named, variables: map[ast.Var]int{}}
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
	pkg       ast.Ref
	named     func(string) []*ast.Rule
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
	operand, path, ok := r.rooted(ref)
	if !ok {
		return operand, false
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

// rooted reads what a reference begins at, and returns the rest of it.
func (r *guardReader) rooted(ref ast.Ref) (operand guardOperand, path ast.Ref, ok bool) {
	operand.variable = -1
	root, isVar := ref[0].Value.(ast.Var)
	switch {
	case !isVar:
		return operand, nil, false
	case ref.HasPrefix(objectRef) || ref.HasPrefix(parametersRef):
		operand.named = ref[:2].String()
		return operand, ref[2:], true
	case ref.HasPrefix(workloadPackage):
		at := min(len(ref), len(workloadPackage)+1)
		operand.named, ok = workloadRule(ref[:at])
		return operand, ref[at:], ok && workloadValues[operand.named] != nil
	case clusterKind(ref) != nil:
		operand.inventory = clusterKind(ref)
		return operand, ref[5:], true
	case len(ref) > len(r.pkg) && ref.HasPrefix(r.pkg):
		operand, ok = r.alias(ref)
		return operand, ref[len(r.pkg)+1:], ok
	case root.Equal(ast.InputRootDocument.Value) || root.Equal(ast.DefaultRootDocument.Value):
		return operand, nil, false
	}
	operand.variable = r.variable(root)
	return operand, ref[1:], true
}

// alias reads a rule of the policy that stands for a kind of the inventory:
//
//	default nodes := {}
//
//	nodes := data.inventory.cluster.v1.Node
func (r *guardReader) alias(ref ast.Ref) (guardOperand, bool) {
	name, _ := memberName(ref, len(r.pkg))
	operand := guardOperand{variable: -1}
	for _, rule := range r.named(name) {
		value := rule.Head.Value
		switch {
		case value == nil || rule.Else != nil || len(rule.Head.Args) > 0 || len(rule.Head.Ref()) != 1:
			return operand, false
		case rule.Default:
			operand.otherwise = value
		case operand.inventory != nil:
			return operand, false
		default:
			whole := assigned(rule)
			if operand.inventory = clusterKind(whole); operand.inventory == nil || len(whole) > 5 {
				return operand, false
			}
		}
	}
	return operand, operand.inventory != nil && (operand.otherwise == nil || ast.IsConstant(operand.otherwise.Value))
}

// assigned is the reference that is all of a compiled rule's value, nil where
// there is more to it.
func assigned(rule *ast.Rule) ast.Ref {
	var found ast.Ref
	for _, expr := range rule.Body {
		if term, ok := expr.Terms.(*ast.Term); ok && term.Value.Compare(ast.Boolean(true)) == 0 {
			continue
		}
		if found != nil || expr.Negated || len(expr.With) > 0 || !expr.IsEquality() || !expr.Operand(0).Equal(rule.Head.Value) {
			return nil
		}
		if found, _ = expr.Operand(1).Value.(ast.Ref); found == nil {
			return nil
		}
	}
	return found
}

// clusterKind is the path in data.inventory of a kind that a reference names by
// constants, nil where it does not.
func clusterKind(ref ast.Ref) []string {
	if len(ref) < 5 || !ref.HasPrefix(clusterRef) {
		return nil
	}
	version, named := memberName(ref, 3)
	kind, alsoNamed := memberName(ref, 4)
	if !named || !alsoNamed {
		return nil
	}
	return []string{version, kind}
}

var (
	clusterRef    = ast.MustParseRef("data.inventory.cluster")
	objectRef     = ast.MustParseRef(namedObject)
	parametersRef = ast.MustParseRef(namedParameters)
)
