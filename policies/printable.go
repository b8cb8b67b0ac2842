package policies

import (
	"fmt"
	"strings"
	"unicode"
)

// Printable escapes what would do something to a terminal instead of being shown:
// control characters but for line breaks and tabs, and what changes the direction
// of text. What rules say may hold what stands in anybody's object.
func Printable(text string) string {
	if !strings.ContainsFunc(text, acts) {
		return text
	}
	var shown strings.Builder
	for _, one := range text {
		if acts(one) {
			fmt.Fprintf(&shown, "\\u%04x", one)
		} else {
			shown.WriteRune(one)
		}
	}
	return shown.String()
}

// acts reports whether a character does something to a terminal.
func acts(one rune) bool {
	return one != '\n' && one != '\t' && (unicode.IsControl(one) || unicode.Is(unicode.Bidi_Control, one))
}
