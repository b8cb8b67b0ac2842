package policy

import (
	"regexp"
	"strings"
)

// helperRule finds where a rule begins whose name makes a verdict here and none in
// Gatekeeper, which evaluates violation alone.
var helperRule = regexp.MustCompile(`(?m)^\s*(?:default\s+)?((?:deny|warn|violation)(?:_\w+)?)\b`)

// helperPrefix is put before the names of such rules.
const helperPrefix = "helper_"

// withoutVerdicts renames the rules of a template that would find violations here and
// only help in Gatekeeper.
func withoutVerdicts(rego string) string {
	helpers := map[string]bool{}
	for _, found := range helperRule.FindAllStringSubmatch(code(rego, func(string) string { return "" }), -1) {
		if found[1] != "violation" {
			helpers[found[1]] = true
		}
	}
	if len(helpers) == 0 {
		return rego
	}
	return code(rego, func(text string) string { return text }, func(before, name string) string {
		// A member of something else, such as input.parameters.deny, is no rule.
		if helpers[name] && !strings.HasSuffix(before, ".") {
			return helperPrefix + name
		}
		return name
	})
}

var regoToken = regexp.MustCompile("(?s)\"(?:\\\\.|[^\"\\\\\n])*\"|`[^`]*`|#[^\n]*|[A-Za-z_][A-Za-z0-9_]*")

// code writes a text of Rego anew: what is quoted and comments by quoted, names by
// named, which also gets what stands before them.
func code(rego string, quoted func(text string) string, named ...func(before, name string) string) string {
	var written strings.Builder
	end := 0
	for _, at := range regoToken.FindAllStringIndex(rego, -1) {
		written.WriteString(rego[end:at[0]])
		text := rego[at[0]:at[1]]
		switch {
		case strings.ContainsAny(text[:1], "\"`#"):
			text = quoted(text)
		default:
			for _, name := range named {
				text = name(rego[:at[0]], text)
			}
		}
		written.WriteString(text)
		end = at[1]
	}
	written.WriteString(rego[end:])
	return written.String()
}
