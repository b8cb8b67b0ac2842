package policies

import (
	"slices"
	"strings"
)

// matchesPattern compares a name with a pattern in which each * stands for any
// characters, or none. All else stands for itself. It takes no longer than the
// product of their lengths, which the API bounds.
func matchesPattern(pattern, name string) bool {
	// star is the last * that was met, and from where in the name on it ends:
	// what it stands for grows until the rest fits.
	star, from := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && pattern[p] == name[n]:
			p++
			n++
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchesOneOf reports whether one of the patterns matches a name.
func matchesOneOf(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matchesPattern(pattern, name) })
}
