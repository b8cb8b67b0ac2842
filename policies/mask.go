package policies

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/penstock-dev/penstock/policies/secrets"
)

// mask hides in explanations what looks like a secret. The values of Secrets
// never get as far as a rule; these are the secrets that people write elsewhere:
// in environment variables, arguments and addresses.
type mask struct {
	hidden []string
}

const hiddenText = "(hidden)"

// newMask finds what to hide in a document.
func newMask(document *ast.Term) *mask {
	m := &mask{}
	m.collect(document.Value)
	slices.SortFunc(m.hidden, func(a, b string) int { return len(b) - len(a) }) // the longest first: one may hold another
	m.hidden = slices.Compact(m.hidden)
	return m
}

func (m *mask) collect(value ast.Value) {
	switch value := value.(type) {
	case ast.Object:
		name := textOf(value.Get(stringTerm("name")))
		value.Foreach(func(key, term *ast.Term) {
			text, isText := term.Value.(ast.String)
			label, _ := key.Value.(ast.String)
			switch {
			case !isText:
				m.collect(term.Value)
			case secrets.Named(string(label)), label == "value" && secrets.Named(name):
				m.hide(string(text))
			default:
				m.collect(text)
			}
		})
	case *ast.Array:
		before := ""
		value.Foreach(func(term *ast.Term) {
			text, _ := term.Value.(ast.String)
			for _, part := range secrets.After(before, string(text)) {
				m.hide(string(text)[part[0]:part[1]])
			}
			before = string(text)
			m.collect(term.Value)
		})
	case ast.String:
		for _, part := range secrets.Parts(string(value)) {
			secret := string(value)[part[0]:part[1]]
			m.hide(secret)
			for _, piece := range secrets.Pieces(secret) {
				if !secrets.Ordinary(piece) {
					m.hide(piece)
				}
			}
		}
	}
}

func (m *mask) hide(text string) {
	if text != "" {
		m.hidden = append(m.hidden, text)
	}
}

// shortest is the length from which a secret is hidden within other texts, too;
// shorter ones are found in texts that have nothing to do with them.
const shortest = 5

// show writes a value for people.
func (m *mask) show(value ast.Value) string {
	text := value.String()
	for _, secret := range m.hidden {
		quoted := ast.String(secret).String()
		if len(secret) >= shortest {
			text = strings.ReplaceAll(text, quoted[1:len(quoted)-1], hiddenText)
		} else {
			text = strings.ReplaceAll(text, quoted, `"`+hiddenText+`"`)
		}
	}
	return truncate(text, maxShown)
}
