package policies

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// forbidden are the builtins that a policy may not call, by name or, with a
// trailing dot, by prefix. They reach the network, the environment or the
// policy engine itself, answer differently each time, or can take memory or
// time out of proportion to their input in one step that cannot be cut.
var forbidden = []string{
	"http.", "net.lookup_ip_addr", "net.cidr_expand", "opa.", "rego.parse_module",
	"providers.", "rand.", "uuid.rfc4122", "crypto.x509.", "crypto.parse_private_keys",
	"io.jwt.", "graphql.", "json.match_schema", "json.verify_schema",
	"strings.render_template", "bits.lsh", "regex.globs_match",
	"graph.reachable_paths",
}

// allowedFamilies are the names and prefixes of the builtins that a policy may
// call unless they are forbidden. Which ones that are in this release of OPA
// is kept in testdata/builtins.txt: what a later release adds to a family must
// be looked at before it is let in.
var allowedFamilies = []string{
	"abs", "all", "and", "any", "array.", "assign", "base64.", "base64url.", "bits.",
	"cast_", "ceil", "concat", "contains", "count", "crypto.", "div", "endswith", "eq",
	"equal", "floor", "format_int", "glob.", "graph.", "gt", "gte", "hex.", "indexof",
	"indexof_n", "internal.", "intersection", "is_", "json.", "lower", "lt", "lte", "max",
	"min", "minus", "mul", "neq", "net.cidr_", "numbers.", "object.", "or", "plus", "print",
	"product", "re_match", "regex.", "rego.metadata.", "rem", "replace", "round",
	"semver.", "set_diff", "sort", "split", "sprintf", "startswith", "strings.",
	"substring", "sum", "time.", "to_number", "trace", "trim", "trim_", "type_name", "union",
	"units.", "upper", "uri.", "urlquery.", "uuid.parse", "walk", "yaml.",
}

func builtinAllowed(name string) bool {
	in := func(families []string) bool {
		return slices.ContainsFunc(families, func(family string) bool {
			if strings.HasSuffix(family, ".") || strings.HasSuffix(family, "_") {
				return strings.HasPrefix(name, family)
			}
			return name == family
		})
	}
	return in(allowedFamilies) && !in(forbidden)
}

// capabilities returns what a policy in this version of Rego may use.
func capabilities(version ast.RegoVersion) *ast.Capabilities {
	capabilities := ast.CapabilitiesForThisVersion(ast.CapabilitiesRegoVersion(version))
	capabilities.Builtins = slices.DeleteFunc(capabilities.Builtins, func(b *ast.Builtin) bool {
		return !builtinAllowed(b.Name)
	})
	// Empty, unlike nil, means no host at all.
	capabilities.AllowNet = []string{}
	return capabilities
}

var capabilitiesOf = map[ast.RegoVersion]*ast.Capabilities{
	ast.RegoV0: capabilities(ast.RegoV0),
	ast.RegoV1: capabilities(ast.RegoV1),
}
