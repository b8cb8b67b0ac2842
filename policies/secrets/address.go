package secrets

import (
	"encoding/json"
	"regexp"
	"strings"
)

// shortestKey is how long a user in an address is at least to be taken for a key.
const shortestKey = 20

// addresses finds the passwords in addresses, and the keys that stand in their place.
func (s *secretScan) addresses() {
	for at := 0; ; {
		found := strings.Index(s.text[at:], "://")
		if found < 0 {
			return
		}
		scheme := s.text[at : at+found]
		at += found + len("://")
		rest := s.text[at:]
		if end := strings.Index(rest, "://"); end >= 0 {
			rest = rest[:end]
		}
		if end := strings.IndexAny(rest, " \t\r\n\"'`<>"); end >= 0 {
			rest = rest[:end]
		}
		s.address(scheme, at, rest)
	}
}

// address finds the password in an address, of which rest follows its scheme.
func (s *secretScan) address(scheme string, at int, rest string) {
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	end := strings.LastIndexByte(authority, '@')
	if _, port, given := strings.Cut(authority, ":"); end < 0 && given && strings.Trim(port, "0123456789") != "" {
		end = strings.LastIndexByte(rest, '@') // a password with a slash
	}
	if end < 0 {
		return
	}
	user, password, given := strings.Cut(rest[:end], ":")
	if given {
		s.hide(at+len(user)+1, at+end)
	}
	scheme = scheme[max(0, len(scheme)-len("https")):]
	web := strings.HasSuffix(scheme, "http") || strings.HasSuffix(scheme, "https")
	switch {
	case isKey(user), web && given && (password == "" || password == "x-oauth-basic"), web && !given && !Ordinary(user):
		s.hide(at, at+len(user))
	}
}

// isKey reports whether a user is most likely a key.
func isKey(user string) bool {
	return len(user) >= shortestKey && strings.ContainsAny(user, "0123456789") && !strings.ContainsAny(user, ".")
}

var (
	// ordinary is a text that is most likely more than one thing's: words, numbers, and
	// references to variables.
	ordinary = regexp.MustCompile(`^(?:/?[A-Za-z]?[a-z]*(?:[-_./ ,:][A-Za-z]?[a-z]*)*|[-+0-9.]*|\$\(\w+\)|\$\{\w+\}|\$\w+)$`)
	// betweenPieces parts what a secret may be made of.
	betweenPieces = regexp.MustCompile(`[\s,;&|(){}\[\]<>@"'` + "`" + `]+|\\+[ntr"']?`)
)

// Ordinary reports whether a text is one that stands elsewhere and means another
// thing, too.
func Ordinary(text string) bool { return len(text) <= maxOrdinary && ordinary.MatchString(text) }

const maxOrdinary = 64

// Pieces are what of a secret that was found in a text may stand elsewhere
// without the rest: its words, what is left without its quotes and what ends it, and
// what is assigned in it; and all that as it is before it is quoted in JSON.
func Pieces(secret string) []string {
	var pieces []string
	for range 3 { // quoted within what is quoted, and once more
		secret = strings.Trim(secret, "\"'`")
		pieces = append(append(pieces, secret), strings.Fields(secret)...)
		for _, piece := range betweenPieces.Split(secret, -1) {
			pieces = append(pieces, piece, strings.TrimRight(piece, ".:!?"))
			if _, value, given := strings.Cut(piece, "="); given {
				pieces = append(pieces, value)
			}
			if _, value, given := strings.Cut(piece, ":"); given {
				pieces = append(pieces, value)
			}
		}
		var plain string
		if !strings.Contains(secret, `\`) || json.Unmarshal([]byte(`"`+secret+`"`), &plain) != nil {
			break
		}
		secret = plain
	}
	return pieces
}
