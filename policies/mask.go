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
	secretName = regexp.MustCompile(`(?i)(?:passw(?:or)?ds?|passphrase|secret|token|credentials?|bearer|authorization|cookie|` +
		`(?:api|access|account|private|secret|encryption|signing|master|auth|ssh)[-_.]?key|` +
		`(?:^|[-_.])(?:pass|pwd)|(?-i:[a-z](?:Pass|Pwd)))(?:[-_.]?[0-9]{1,3})?$`)
	// modelToken is what models read and write texts in.
	modelToken = regexp.MustCompile(`(?i)(?:^|[-_.])(?:max|min|num|per|pad|eos|bos|unk|cls|sep|mask|stop)[-_]?token$`)
	// namesPassword is a name whose value may be any word.
	namesPassword = regexp.MustCompile(`(?i)(?:passw(?:or)?d|passphrase)$`)
)

// lastApplied holds a whole object once more.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// NamesSecret reports whether the text of a member or a variable of this name is
// a secret.
func NamesSecret(name string) bool {
	return name == lastApplied || secretName.MatchString(name) && !modelToken.MatchString(name)
}

// SecretsAfter finds secrets in an argument for what the one before it is: where each
// begins and ends, in bytes.
func SecretsAfter(before, argument string) [][2]int {
	const around = "\\\"'` \t\r\n=:"
	before = strings.Trim(before, around)
	name, _, given := strings.Cut(argument, "=")
	switch {
	case argument == "":
	case aFlag.MatchString(before) && NamesSecret(before):
		return [][2]int{{0, len(argument)}}
	case given && aFlag.MatchString(name) && NamesSecret(name) && len(name)+1 < len(argument):
		return [][2]int{{len(name) + 1, len(argument)}} // spaces and all
	case userFlag.MatchString(before):
		if from, holds := passwordOf(argument); holds {
			return [][2]int{{from, len(argument)}}
		}
	}
	return nil
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
		before := ""
		value.Foreach(func(term *ast.Term) {
			text, _ := term.Value.(ast.String)
			for _, part := range SecretsAfter(before, string(text)) {
				m.hide(string(text)[part[0]:part[1]])
			}
			before = string(text)
			m.collect(term.Value)
		})
	case ast.String:
		for _, part := range SecretParts(string(value)) {
			secret := string(value)[part[0]:part[1]]
			m.hide(secret)
			for _, piece := range SecretPieces(secret) {
				if !Ordinary(piece) {
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
