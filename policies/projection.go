package policies

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
)

// anyMember stands for the elements of a list, and for members whose names the
// Rego does not say.
const anyMember = "*"

// fields are the parts of an object that rules read: a tree of member names.
// Of a value without members it is read whether it is there; nil is none of it.
type fields struct {
	// whole is all that is below.
	whole   bool
	members map[string]*fields
}

// wholeObject is every field.
func wholeObject() *fields { return &fields{whole: true} }

// add adds the value at a path; with whole false no more than that there is one.
func (f *fields) add(path []string, whole bool) {
	for _, name := range path {
		if f.whole {
			return
		}
		next := f.members[name]
		if next == nil {
			next = &fields{}
			if f.members == nil {
				f.members = map[string]*fields{}
			}
			f.members[name] = next
		}
		f = next
	}
	if whole {
		f.whole, f.members = true, nil
	}
}

// merge adds what other holds.
func (f *fields) merge(other *fields) {
	if other == nil || f.whole {
		return
	}
	if other.whole {
		f.whole, f.members = true, nil
		return
	}
	for name, member := range other.members {
		if f.members == nil {
			f.members = map[string]*fields{}
		}
		if f.members[name] == nil {
			f.members[name] = &fields{}
		}
		f.members[name].merge(member)
	}
}

// covers reports whether f holds all that other does.
func (f *fields) covers(other *fields) bool {
	if other == nil || f != nil && f.whole {
		return true
	}
	if f == nil {
		return other.empty()
	}
	if other.whole {
		return false
	}
	for name, member := range other.members {
		if f.members[name].covers(member) {
			continue
		}
		if rest := f.members[anyMember]; rest == nil || !rest.covers(member) {
			return false
		}
	}
	return true
}

func (f *fields) empty() bool { return !f.whole && len(f.members) == 0 }

// member returns what is read of a member.
func (f *fields) member(name string) *fields {
	if f.whole {
		return f
	}
	named, rest := f.members[name], f.members[anyMember]
	switch {
	case rest == nil:
		return named
	case named == nil:
		return rest
	}
	both := &fields{}
	both.merge(named)
	both.merge(rest)
	return both
}

// projector turns objects of the inventory into Rego values, no more of them
// than fields say. Equal parts of different objects become one value: pods of
// one workload share most of what they are.
type projector struct {
	texts  map[string]*ast.Term
	values map[int]*ast.Term
}

// Bounds on what a projector remembers in order to share it. When one is
// reached it forgets: what is shared already stays so.
const (
	maxSharedTexts  = 1 << 16
	maxSharedValues = 1 << 15
)

func newProjector() *projector {
	return &projector{texts: map[string]*ast.Term{}, values: map[int]*ast.Term{}}
}

// object projects an object to some fields and to what names it.
func (p *projector) object(object map[string]any, kept *fields) (*ast.Term, error) {
	if !kept.whole {
		named := &fields{}
		named.merge(kept)
		for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}} {
			named.add(path, true)
		}
		kept = named
	}
	return p.value(object, kept)
}

func (p *projector) value(from any, kept *fields) (*ast.Term, error) {
	switch from := from.(type) {
	case map[string]any:
		pairs := make([][2]*ast.Term, 0, len(from))
		for name, member := range from {
			below := kept.member(name)
			if below == nil {
				continue
			}
			value, err := p.value(member, below)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			pairs = append(pairs, [2]*ast.Term{p.text(name), value})
		}
		return p.share(ast.NewTerm(ast.NewObject(pairs...))), nil
	case []any:
		elems := make([]*ast.Term, 0, len(from))
		below := kept.member(anyMember)
		if below == nil {
			below = &fields{} // the list is there, whatever is in it
		}
		for i, elem := range from {
			value, err := p.value(elem, below)
			if err != nil {
				return nil, fmt.Errorf("%d: %w", i, err)
			}
			elems = append(elems, value)
		}
		return p.share(ast.NewTerm(ast.NewArray(elems...))), nil
	case string:
		return p.text(from), nil
	case bool:
		return ast.InternedTerm(from), nil
	case nil:
		return ast.InternedNullTerm, nil
	}
	return numberTerm(from)
}

func numberTerm(from any) (*ast.Term, error) {
	var digits string
	switch number := from.(type) {
	case int64:
		if small := int(number); int64(small) == number {
			return ast.InternedTerm(small), nil
		}
		digits = strconv.FormatInt(number, 10)
	case int:
		return ast.InternedTerm(number), nil
	case float64:
		raw, err := json.Marshal(number)
		if err != nil {
			return nil, err
		}
		digits = string(raw)
	case json.Number:
		digits = number.String()
	default:
		return nil, fmt.Errorf("a value of type %T is not JSON", from)
	}
	number, err := ast.NumberChecked(digits)
	if err != nil {
		return nil, err
	}
	return ast.NewTerm(number), nil
}

// text returns the one term of a string.
func (p *projector) text(text string) *ast.Term {
	if term, ok := commonStrings[text]; ok {
		return term
	}
	if term, ok := p.texts[text]; ok {
		return term
	}
	if len(p.texts) >= maxSharedTexts {
		clear(p.texts)
	}
	term := ast.StringTerm(text)
	p.texts[text] = term
	return term
}

// share returns the one term of equal values.
func (p *projector) share(term *ast.Term) *ast.Term {
	hash := term.Hash()
	if known, ok := p.values[hash]; ok && known.Value.Compare(term.Value) == 0 {
		return known
	}
	if len(p.values) >= maxSharedValues {
		clear(p.values)
	}
	p.values[hash] = term
	return term
}

type pathSet map[string]inventoryPath

// with adds a path and what a reference adds to it from a position on.
func (s pathSet) with(path inventoryPath, ref ast.Ref, from int) pathSet {
	for i := from; i < len(ref) && len(path) < maxInventoryPath; i++ {
		step := anyMember
		if name, ok := memberName(ref, i); ok {
			step = name
		}
		path = path.then(step)
	}
	if name, ok := memberName(ref, 1); from == 2 && (!ok || name != "inventory") {
		path = nil // data[x] may be all of it
	}
	s[path.key()] = path
	return s
}
