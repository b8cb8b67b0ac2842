package policies

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Explanation says where in a policy a violation was made, and of what.
type Explanation struct {
	// Line is that of the rule in spec.rego, from 1, and Text what it says.
	Line int
	Text string
	// Inputs are the paths of the input that the rule and the policy's own
	// helpers name, in their order, and Variables the policy's rules and the
	// rule's variables when it made the violation.
	Inputs    []Binding
	Variables []Binding
}

// Binding is a path of the input, a rule or a variable, and its value as Rego
// writes it: shortened when long, without what looks like a secret, and
// undefined where nothing is.
type Binding struct {
	Name  string
	Value string
}

const (
	maxShown  = 200
	undefined = "undefined"
)

// explain evaluates the rule once more, traced, for where the findings come
// from. What cannot be explained is left without.
func (e *evaluation) explain(ctx context.Context, t trial, cancel topdown.Cancel, findings ...[]finding) {
	r := t.policy.rule
	document := e.in.forPolicy(r.reads, t.parameters)
	tracer := &tracer{rule: r, document: document, mask: newMask(document), found: map[finding]*Explanation{}}
	// The library is left to its Rego: the tracer looks at this cache.
	tracer.cache = topdown.NewVirtualCache()
	for i := range r.queries {
		if _, err := e.query(ctx, t, &r.queries[i], document, tracer.cache, cancel, tracer); err != nil {
			return
		}
	}
	for _, list := range findings {
		for i := range list {
			list[i].explanation = tracer.found[list[i]]
		}
	}
}

// tracer notes which rule makes which finding. The first that does counts.
type tracer struct {
	rule     *rule
	document *ast.Term
	mask     *mask
	cache    topdown.VirtualCache
	found    map[finding]*Explanation
}

var _ topdown.QueryTracer = &tracer{}

// Enabled is always true: it is made to trace.
func (t *tracer) Enabled() bool { return true }

// Config asks for the values of variables.
func (t *tracer) Config() topdown.TraceConfig { return topdown.TraceConfig{PlugLocalVars: true} }

// TraceEvent looks at the rules that have just held.
func (t *tracer) TraceEvent(event topdown.Event) {
	rule, ok := event.Node.(*ast.Rule)
	if !ok || event.Op != topdown.ExitOp || rule.Location == nil || rule.Location.File != moduleName {
		return
	}
	name := ruleName(rule)
	if verdictOf(name) == "" {
		return
	}
	var explanation *Explanation
	for _, one := range findingsOfRule(name, rule, event.Locals) {
		if t.found[one] != nil {
			continue
		}
		if explanation == nil {
			explanation = t.explanation(rule, event)
		}
		t.found[one] = explanation.without(one)
	}
}

// findingsOfRule are those that one rule makes: its key in a set, or what its
// value holds.
func findingsOfRule(name string, rule *ast.Rule, locals *ast.ValueMap) []finding {
	result := rule.Head.Value
	if key := rule.Head.Key; key != nil {
		result = ast.SetTerm(plug(key, locals))
	} else if result != nil {
		result = plug(result, locals)
	}
	var d decision
	if err := d.collect(&query{name: name}, result); err != nil {
		return nil // the evaluation said so
	}
	return d.findings
}

func (t *tracer) explanation(rule *ast.Rule, event topdown.Event) *Explanation {
	made := &Explanation{Line: rule.Location.Row, Text: lineOf(t.rule.text, rule.Location.Row)}
	reader := &reader{tracer: t, locals: event.Locals, inputs: map[string]string{}, variables: map[string]string{}, seen: map[*ast.Rule]bool{}}
	reader.read(rule)
	event.Locals.Iter(func(variable, value ast.Value) bool {
		original, _ := variable.(ast.Var)
		name := event.LocalMetadata[original].Name
		if !name.IsGenerated() && !name.IsWildcard() && ast.IsConstant(value) {
			reader.variables[string(name)] = t.mask.show(value)
		}
		return false
	})
	made.Inputs, made.Variables = bindings(reader.inputs), bindings(reader.variables)
	return made
}

// without leaves out variables that only hold words of the finding.
func (e *Explanation) without(one finding) *Explanation {
	trimmed := *e
	trimmed.Variables = slices.DeleteFunc(slices.Clone(e.Variables), func(b Binding) bool {
		for _, words := range []string{one.message, one.field, one.fix} {
			if words != "" && b.Value == truncate(ast.String(words).String(), maxShown) {
				return true
			}
		}
		return false
	})
	return &trimmed
}

// reader collects what a rule names.
type reader struct {
	*tracer
	locals            *ast.ValueMap
	inputs, variables map[string]string
	seen              map[*ast.Rule]bool
}

func (r *reader) read(rule *ast.Rule) {
	if r.seen[rule] {
		return
	}
	r.seen[rule] = true
	pkg := rule.Module.Package.Path
	ast.WalkRefs(rule, func(ref ast.Ref) bool {
		switch {
		case ref.HasPrefix(ast.InputRootRef):
			r.readInput(ref)
		case ref.HasPrefix(pkg) && len(ref) > len(pkg):
			r.readRule(ref[:len(pkg)+1], pkg)
		}
		return false
	})
}

// readInput notes the value of as much of a path as is known.
func (r *reader) readInput(ref ast.Ref) {
	plugged, ok := plug(ast.NewTerm(ref), r.locals).Value.(ast.Ref)
	if !ok {
		return
	}
	known := plugged.GroundPrefix()
	if len(known) < 2 {
		return
	}
	value, err := r.document.Value.Find(known[1:])
	if err != nil {
		r.inputs[known.String()] = undefined
		return
	}
	r.inputs[known.String()] = r.mask.show(value)
}

// readRule notes the value of a rule of the policy, and what it reads in turn,
// where its own variables are not known any more.
func (r *reader) readRule(ref, pkg ast.Ref) {
	name, ok := ref[len(pkg)].Value.(ast.String)
	if !ok || verdictOf(string(name)) != "" {
		return
	}
	if value, isUndefined := r.cache.Get(ref); value != nil {
		r.variables[string(name)] = r.mask.show(value.Value)
	} else if isUndefined {
		r.variables[string(name)] = undefined
	}
	inner := *r
	inner.locals = ast.NewValueMap()
	for _, rule := range r.rule.compiler.GetRulesExact(ref) {
		inner.read(rule)
	}
}

// plug puts values for variables.
func plug(term *ast.Term, locals *ast.ValueMap) *ast.Term {
	plugged, err := ast.TransformVars(term.Copy(), func(variable ast.Var) (ast.Value, error) {
		if value := locals.Get(variable); value != nil {
			return value, nil
		}
		return variable, nil
	})
	value, ok := plugged.(ast.Value)
	if err != nil || !ok {
		return term
	}
	return ast.NewTerm(value)
}

func bindings(values map[string]string) []Binding {
	list := make([]Binding, 0, len(values))
	for name, value := range values {
		list = append(list, Binding{Name: name, Value: value})
	}
	slices.SortFunc(list, func(a, b Binding) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// lineOf is a line of a text, from 1.
func lineOf(text string, number int) string {
	for line := range strings.Lines(text) {
		if number--; number == 0 {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
