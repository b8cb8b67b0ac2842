package policies

import (
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// mask hides in explanations what looks like a secret. The values of Secrets
// never get as far as a rule; these are the secrets that people write elsewhere:
// in environment variables, arguments and addresses.
type mask struct {
	hidden []string
}

const hiddenText = "(hidden)"

var (
	// secretName ends as names of secrets do. A secretName or a tokenFile only
	// says where one is.
	secretName = regexp.MustCompile(`(?i)(passw(or)?d|passphrase|secret|token|api[-_.]?key|access[-_.]?key|private[-_.]?key|secret[-_.]?key|credentials?)$`)
	// secretPart is a secret in a longer text: in an argument, an assignment, or
	// an address with a password.
	secretPart = regexp.MustCompile(`(?i)(?:(?:password|passwd|passphrase|secret|token|api[-_]?key|access[-_]?key|private[-_]?key)[=: ]\s*|://[^/@:\s]*:)([^\s@'"]+)`)
	// secretFlag is an argument whose secret is the next one.
	secretFlag = regexp.MustCompile(`^--?[A-Za-z]`)
)

// lastApplied holds a whole object once more.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// NamesSecret reports whether the text of a member or a variable of this name is
// a secret.
func NamesSecret(name string) bool {
	return name == lastApplied || secretName.MatchString(name)
}

// TakesSecret reports whether the argument after this one is a secret.
func TakesSecret(argument string) bool {
	return secretFlag.MatchString(argument) && secretName.MatchString(argument)
}

// SecretParts finds secrets within a text: where each begins and ends, in bytes.
func SecretParts(text string) [][2]int {
	if !strings.ContainsAny(text, "=: ") {
		return nil // most texts
	}
	var parts [][2]int
	for _, match := range secretPart.FindAllStringSubmatchIndex(text, -1) {
		parts = append(parts, [2]int{match[2], match[3]})
	}
	return parts
}

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
			case NamesSecret(string(label)), label == "value" && NamesSecret(name):
				m.hide(string(text))
			default:
				m.collect(text)
			}
		})
	case *ast.Array:
		flag := false
		value.Foreach(func(term *ast.Term) {
			text, isText := term.Value.(ast.String)
			if flag && isText {
				m.hide(string(text))
			}
			flag = isText && TakesSecret(string(text))
			m.collect(term.Value)
		})
	case ast.String:
		for _, part := range SecretParts(string(value)) {
			m.hide(string(value)[part[0]:part[1]])
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
