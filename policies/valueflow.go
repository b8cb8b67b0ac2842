package policies

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// A valueRead is a place below a root, such as data.inventory or input, that a
// rule reads.
type valueRead struct {
	path inventoryPath
	// whole is false when all that matters is whether there is a value.
	whole bool
	at    *ast.Location
}

// A flowRoot is where the values come from that a finder follows.
type flowRoot struct {
	// length is how many elements of a reference lead to the root.
	length int
	// leads reports whether a reference may lead to the root.
	leads func(ref ast.Ref) bool
	// isKind reports whether a path leads to the objects of one kind, of which
	// counting them reads nothing.
	isKind func(path inventoryPath) bool
}

// readsBelow finds what compiled modules read below a root. It follows a value
// through variables, functions and rules to the members that are read of it;
// where it loses sight, the whole value is.
func readsBelow(root flowRoot, modules []*ast.Module) []valueRead {
	return flowBelow(root, modules).reads
}

// flowBelow follows the values below a root through compiled modules.
func flowBelow(root flowRoot, modules []*ast.Module) *flowFinder {
	f := &flowFinder{
		root:      root,
		vars:      map[*ast.Rule]map[ast.Var]pathSet{},
		bound:     map[*ast.Rule]map[ast.Var]int{},
		rules:     map[string]pathSet{},
		functions: map[string][]*ast.Rule{},
	}
	reading := false
	for _, module := range modules {
		ast.WalkRules(module, func(r *ast.Rule) bool {
			f.all = append(f.all, r)
			f.functions[r.Ref().String()] = append(f.functions[r.Ref().String()], r)
			return false
		})
		ast.WalkRefs(module, func(ref ast.Ref) bool {
			reading = reading || root.leads(ref)
			return false
		})
	}
	for changed := reading; changed; {
		f.changed, f.reads = false, nil
		for _, r := range f.all {
			f.visitRule(r)
		}
		changed = f.changed
	}
	return f
}

// flowFinder goes through all rules again and again until it learns nothing new
// of where the values below its root go.
type flowFinder struct {
	root flowRoot
	all  []*ast.Rule
	// vars are the variables that hold such values, by the rule they are in;
	// rules those whose value is one, by their reference.
	vars  map[*ast.Rule]map[ast.Var]pathSet
	rules map[string]pathSet
	// bound are the results of bindings.
	bound map[*ast.Rule]map[ast.Var]int
	// functions are the rules by their reference.
	functions map[string][]*ast.Rule

	rule    *ast.Rule
	at      *ast.Location
	changed bool
	reads   []valueRead
}

func (f *flowFinder) visitRule(r *ast.Rule) {
	f.visitHead(r)
	f.visit(r.Body)
}

func (f *flowFinder) visitHead(r *ast.Rule) {
	f.rule, f.at = r, r.Location
	head := r.Head
	if value := head.Value; value != nil {
		paths := f.pathsOf(value)
		if len(paths) > 0 && len(head.Args) == 0 && head.Key == nil && r.Ref()[1:].IsGround() {
			f.hand(f.ruleSet(r.Ref().String()), paths)
		} else {
			f.visit(value)
		}
	}
	if head.Key != nil {
		f.visit(head.Key)
	}
	for _, element := range head.Reference {
		f.visit(element)
	}
}

// visit looks at all expressions and terms in a part of a rule.
func (f *flowFinder) visit(x any) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Expr:
			if x.Location != nil {
				f.at = x.Location
			}
			return f.visitExpr(x)
		case *ast.Every:
			f.visitEvery(x)
			return true
		case *ast.Term:
			return f.visitTerm(x)
		}
		return false
	}).Walk(x)
}

// visitExpr handles the expressions that hand a value on. It reports whether
// there is nothing more to look at.
func (f *flowFinder) visitExpr(expr *ast.Expr) bool {
	if len(expr.With) > 0 || !expr.IsCall() {
		return false
	}
	operands := expr.Operands()
	operator := expr.Operator()
	switch {
	case expr.IsEquality() && len(operands) == 2:
		return f.assign(operands[0], operands[1]) || f.assign(operands[1], operands[0])
	case operator.Equal(ast.ObjectGet.Ref()) && len(operands) >= 3 && f.visitGet(operands):
		return true
	case operator.Equal(ast.Count.Ref()) && len(operands) > 0 && f.countsObjects(operands[0]):
		f.visitInside(operands[0])
		return true
	case len(f.functions[operator.String()]) > 0:
		for i, operand := range operands {
			f.pass(f.functions[operator.String()], i, operand)
		}
		return true
	}
	return false
}

// assign handles an equality that gives a variable its value. It reports
// whether it is one; otherwise the equality compares, and all of both sides is read.
func (f *flowFinder) assign(to, from *ast.Term) bool {
	name, ok := to.Value.(ast.Var)
	if _, isRef := from.Value.(ast.Ref); !ok || !isRef || f.bindings(f.rule)[name] != 1 {
		return false
	}
	paths := f.pathsOf(from)
	if len(paths) == 0 {
		return false
	}
	f.hand(f.varSet(f.rule, name), paths)
	f.visitInside(from)
	return true
}

// bindings counts the places in a rule where each variable may be given its
// value: all but those that need one.
func (f *flowFinder) bindings(r *ast.Rule) map[ast.Var]int {
	if counted, ok := f.bound[r]; ok {
		return counted
	}
	counted := map[ast.Var]int{}
	f.bound[r] = counted
	var count func(x any)
	count = func(x any) {
		ast.NewGenericVisitor(func(x any) bool {
			switch x := x.(type) {
			case *ast.Expr:
				if !x.IsCall() || x.IsEquality() {
					return false
				}
				arity := f.arity(x.Operator())
				for i, operand := range x.Operands() {
					if _, isVar := operand.Value.(ast.Var); !isVar || i >= arity {
						count(operand)
					}
				}
				for _, with := range x.With {
					count(with.Value)
				}
				return true
			case *ast.Every:
				if _, isVar := x.Domain.Value.(ast.Var); !isVar {
					count(x.Domain)
				}
				count(x.Body)
				return true
			case ast.Ref:
				for _, element := range x[1:] {
					count(element)
				}
				return true
			case ast.Var:
				counted[x]++
			}
			return false
		}).Walk(x)
	}
	for _, arg := range r.Head.Args {
		count(arg)
	}
	count(r.Body)
	return counted
}

// arity is the number of arguments that a function takes; one more operand of
// a call is its result.
func (f *flowFinder) arity(operator ast.Ref) int {
	if rules := f.functions[operator.String()]; len(rules) > 0 {
		return len(rules[0].Head.Args)
	}
	if builtin, ok := ast.BuiltinMap[operator.String()]; ok {
		return builtin.Decl.Arity()
	}
	return 0
}

// visitGet handles object.get with a constant path. It reports whether it did.
func (f *flowFinder) visitGet(operands []*ast.Term) bool {
	paths := f.pathsOf(operands[0])
	steps, ok := constantPath(operands[1])
	if len(paths) == 0 || !ok {
		return false
	}
	for _, path := range paths {
		path = path.then(steps...)
		if out, isVar := operands[len(operands)-1].Value.(ast.Var); isVar && len(operands) == 4 && f.bindings(f.rule)[out] == 1 {
			f.hand(f.varSet(f.rule, out), pathSet{path.key(): path})
		} else {
			f.reads = append(f.reads, valueRead{path, true, f.at})
		}
	}
	f.visitInside(operands[0])
	for _, operand := range operands[2:] {
		// What becomes of the result is seen where its variable is read.
		if _, isVar := operand.Value.(ast.Var); !isVar {
			f.visit(operand)
		}
	}
	return true
}

// constantPath is the second argument of object.get: a name or several.
func constantPath(term *ast.Term) ([]string, bool) {
	switch value := term.Value.(type) {
	case ast.String:
		return []string{string(value)}, true
	case *ast.Array:
		var steps []string
		for i := range value.Len() {
			step := anyMember
			if name, ok := value.Elem(i).Value.(ast.String); ok {
				step = string(name)
			}
			steps = append(steps, step)
		}
		return steps, value.IsGround()
	}
	return nil, false
}

// countsObjects reports whether a term is nothing but objects by name: to count
// them is to read nothing of them.
func (f *flowFinder) countsObjects(term *ast.Term) bool {
	paths := f.pathsOf(term)
	for _, path := range paths {
		if !f.root.isKind(path) {
			return false
		}
	}
	for _, path := range paths {
		f.reads = append(f.reads, valueRead{path, false, f.at})
	}
	return len(paths) > 0
}

// pass notes that a function is called with a value.
func (f *flowFinder) pass(functions []*ast.Rule, argument int, value *ast.Term) {
	paths := f.pathsOf(value)
	for _, function := range functions {
		for one := function; one != nil; one = one.Else {
			if len(paths) == 0 || argument >= len(one.Head.Args) {
				f.visit(value)
				continue
			}
			name, ok := one.Head.Args[argument].Value.(ast.Var)
			if !ok {
				f.visit(value)
				continue
			}
			f.hand(f.varSet(one, name), paths)
		}
	}
	f.visitInside(value)
}

func (f *flowFinder) visitEvery(every *ast.Every) {
	if paths := f.pathsOf(every.Domain); len(paths) > 0 {
		if value, ok := every.Value.Value.(ast.Var); ok {
			each := pathSet{}
			for _, path := range paths {
				path = path.then(anyMember)
				each[path.key()] = path
			}
			f.hand(f.varSet(f.rule, value), each)
		}
		f.visitInside(every.Domain)
	} else {
		f.visit(every.Domain)
	}
	f.visit(every.Body)
}

// visitTerm counts a value that is used otherwise as read. It reports whether
// there is nothing more to look at.
func (f *flowFinder) visitTerm(term *ast.Term) bool {
	paths := f.pathsOf(term)
	if len(paths) == 0 {
		return false
	}
	at := term.Location
	if at == nil {
		at = f.at
	}
	for _, path := range paths {
		f.reads = append(f.reads, valueRead{path, true, at})
	}
	f.visitInside(term)
	return true
}

// visitInside looks at the brackets of a reference.
func (f *flowFinder) visitInside(term *ast.Term) {
	if ref, ok := term.Value.(ast.Ref); ok {
		for _, element := range ref[1:] {
			f.visit(element)
		}
	}
}
