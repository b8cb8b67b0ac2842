package cel

import (
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Any stands in the paths of a Read for the elements of a list, and for keys that
// the expression does not tell. It is that of package fields.
const Any = "*"

// A Read is a place where an expression reads something of an object.
type Read struct {
	// Text is what is read, as it stands in the expression as far as that can be
	// told, such as c.resources.
	Text string
	// Paths are where that may be, each from object or oldObject, without these.
	// There are several where a variable may be either of several things.
	Paths [][]string
}

// Below reports whether what is read is in what is at a path.
func (r Read) Below(path []string) bool {
	return slices.ContainsFunc(r.Paths, func(one []string) bool { return len(one) > len(path) && slices.Equal(one[:len(path)], path) })
}

var parser = sync.OnceValues(func() (*cel.Env, error) {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.StoredExpressions)
})

// Reads lists what an expression reads of the object, and of the one that was
// there before: what surrounds a thing comes before it. An expression that does
// not parse reads nothing.
func Reads(expression string) []Read {
	env, err := parser()
	if err != nil {
		return nil
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return nil
	}
	f := &readFinder{vars: map[string]value{}}
	f.visit(parsed.NativeRep().Expr())
	return f.found
}

// A value is what a part of an expression may be: things at paths, and a list of
// others.
type value struct {
	text  string
	paths [][]string
	items *value
}

func (v value) or(other value) value {
	both := value{text: v.text, paths: slices.Clone(v.paths), items: v.items}
	for _, path := range other.paths {
		if !slices.ContainsFunc(both.paths, func(known []string) bool { return slices.Equal(known, path) }) {
			both.paths = append(both.paths, path)
		}
	}
	switch {
	case both.items == nil:
		both.items = other.items
	case other.items != nil:
		items := v.items.or(*other.items)
		both.items = &items
	}
	return both
}

// element is what is in a list, or at a key that is not known.
func (v value) element(text string) value {
	inside := value{text: text}
	for _, path := range v.paths {
		inside.paths = append(inside.paths, append(slices.Clone(path), Any))
	}
	if v.items != nil {
		items := *v.items
		items.text = text
		inside = inside.or(items)
	}
	return inside
}

type readFinder struct {
	vars  map[string]value
	found []Read
}

// member is what is at a name in a value, and notes that it is read.
func (f *readFinder) member(of value, name string) value {
	inside := value{text: of.text + "." + name}
	for _, path := range of.paths {
		inside.paths = append(inside.paths, append(slices.Clone(path), name))
	}
	// What may also be something else is not known to be there or not.
	if len(inside.paths) > 0 && of.items == nil {
		f.found = append(f.found, Read{Text: inside.text, Paths: inside.paths})
	}
	return inside
}

func (f *readFinder) visit(e ast.Expr) value {
	switch e.Kind() {
	case ast.IdentKind:
		name := e.AsIdent()
		if known, bound := f.vars[name]; bound {
			return known
		}
		if name == "object" || name == "oldObject" {
			return value{text: name, paths: [][]string{{}}}
		}
	case ast.SelectKind:
		selected := e.AsSelect()
		return f.member(f.visit(selected.Operand()), selected.FieldName())
	case ast.CallKind:
		return f.visitCall(e.AsCall())
	case ast.ListKind:
		var items value
		for _, element := range e.AsList().Elements() {
			items = items.or(f.visit(element))
		}
		return value{items: &items}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			f.visit(entry.AsMapEntry().Key())
			f.visit(entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		return f.visitComprehension(e.AsComprehension())
	}
	return value{}
}

// same are the functions that give what they are given, or one of it.
var same = map[string]bool{
	operators.Conditional: true, operators.Add: true, "dyn": true, "optional.of": true, "optional.ofNonZeroValue": true,
	"orValue": true, "or": true, "value": true,
}

func (f *readFinder) visitCall(call ast.CallExpr) value {
	arguments := call.Args()
	var of []value
	if call.IsMemberFunction() {
		of = append(of, f.visit(call.Target()))
	}
	for _, argument := range arguments {
		of = append(of, f.visit(argument))
	}
	switch name := call.FunctionName(); {
	case name == operators.Index || name == operators.OptIndex:
		if key, constant := text(arguments[1]); constant {
			return f.member(of[0], key)
		}
		return of[0].element(of[0].text + "[…]")
	case name == operators.OptSelect:
		if key, constant := text(arguments[1]); constant {
			return f.member(of[0], key)
		}
	case name == operators.In || name == operators.OldIn:
		if key, constant := text(arguments[0]); constant {
			f.member(of[1], key)
		}
	case name == operators.Conditional:
		return of[1].or(of[2])
	case same[name]:
		var all value
		for _, one := range of {
			if all.text == "" {
				all.text = one.text
			}
			all = all.or(one)
		}
		return all
	}
	return value{}
}

// text gives a constant text.
func text(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	constant, ok := e.AsLiteral().(types.String)
	return string(constant), ok
}

// visitComprehension follows what macros such as exists, filter and map are made
// into.
func (f *readFinder) visitComprehension(c ast.ComprehensionExpr) value {
	over := f.visit(c.IterRange())
	outside := f.vars
	bind := func(name string, to value) {
		inside := map[string]value{name: to}
		for other, known := range f.vars {
			if other != name {
				inside[other] = known
			}
		}
		f.vars = inside
	}
	accumulated := f.visit(c.AccuInit())
	if !strings.HasPrefix(c.AccuVar(), "@") && !strings.HasPrefix(c.AccuVar(), "__") {
		accumulated.text = c.AccuVar()
	}
	if c.IterVar2() != "" {
		// The first is the index, or the key.
		bind(c.IterVar(), value{})
		bind(c.IterVar2(), over.element(c.IterVar2()))
	} else {
		bind(c.IterVar(), over.element(c.IterVar()))
	}
	bind(c.AccuVar(), accumulated)
	f.visit(c.LoopCondition())
	accumulated = accumulated.or(f.visit(c.LoopStep()))
	bind(c.AccuVar(), accumulated)
	result := f.visit(c.Result())
	f.vars = outside
	return result
}

// Unknown lists where an expression reads what objects never have. find says of a
// path which of its steps is the first that is not known, and what there is in
// its place.
func Unknown(expression string, find func(path []string) (step int, known []string, unknown bool)) []UnknownRead {
	var found []UnknownRead
	for _, read := range Reads(expression) {
		if names, never := read.unknown(find); never && !slices.ContainsFunc(found, func(other UnknownRead) bool { return other.Text == read.Text }) {
			found = append(found, UnknownRead{Read: read, Known: names})
		}
	}
	return found
}

// An UnknownRead is a place where an expression reads what is never there.
type UnknownRead struct {
	Read
	// Known are the names of what there is in its place.
	Known []string
}

// Instead is the text with another name in place of the last.
func (r UnknownRead) Instead(name string) string {
	return r.Text[:strings.LastIndex(r.Text, ".")+1] + name
}

// unknown reports whether objects have nothing at any of the paths, and lack no
// more than the last step.
func (r Read) unknown(find func(path []string) (step int, known []string, unknown bool)) (known []string, never bool) {
	for _, path := range r.Paths {
		step, names, unknown := find(path)
		if !unknown || step != len(path)-1 {
			return nil, false
		}
		known = append(known, names...)
	}
	return known, true
}
