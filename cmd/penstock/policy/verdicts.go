package policy

import (
	"regexp"
	"strings"

	"github.com/penstock-dev/penstock/policies/regotest"
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
	for _, found := range helperRule.FindAllStringSubmatch(withNames(rego, func(_, name string) string { return name }, ""), -1) {
		if found[1] != "violation" {
			helpers[found[1]] = true
		}
	}
	if len(helpers) == 0 {
		return rego
	}
	whole := "data." + regotest.Package(rego) + "."
	return withNames(rego, func(before, name string) string {
		// A member of something else, such as input.parameters.deny, is no rule.
		if helpers[name] && (!strings.HasSuffix(before, ".") || strings.HasSuffix(before, whole)) {
			return helperPrefix + name
		}
		return name
	}, "$0")
}

// unnamed are the texts and comments of Rego, in which there are no names.
const unnamed = "\"(?:\\\\.|[^\"\\\\\n])*\"|`[^`]*`|#[^\n]*"

var (
	regoToken = regexp.MustCompile("(?s)" + unnamed + `|[A-Za-z_][A-Za-z0-9_]*`)
	regoText  = regexp.MustCompile("(?s)^(?:" + unnamed + ")$")
)

// withNames writes Rego with other names, by what stands before each, and with its
// texts and comments replaced, $0 by themselves.
func withNames(rego string, rename func(before, name string) string, texts string) string {
	var written strings.Builder
	end := 0
	for _, at := range regoToken.FindAllStringIndex(rego, -1) {
		written.WriteString(rego[end:at[0]])
		if token := rego[at[0]:at[1]]; regoText.MatchString(token) {
			written.WriteString(regoText.ReplaceAllString(token, texts))
		} else {
			written.WriteString(rename(rego[:at[0]], token))
		}
		end = at[1]
	}
	return written.String() + rego[end:]
}
