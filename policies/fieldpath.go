package policies

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// valueAt returns what lies at a field path such as
// spec.roles[0].template.metadata.labels[a.b/c], nil when nothing does. A
// bracket holds an index in a list and a key, dots and all, in a map.
func valueAt(value ast.Value, path string) ast.Value {
	return valueIn(value, splitPath(path))
}

// splitPath cuts a field path at dots and brackets.
func splitPath(path string) []string {
	var segments []string
	for path != "" {
		switch path[0] {
		case '.':
			path = path[1:]
		case '[':
			key, rest, _ := strings.Cut(path[1:], "]")
			segments = append(segments, key)
			path = rest
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			segments = append(segments, path[:end])
			path = path[end:]
		}
	}
	return segments
}
