package policies

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// valueAt returns what lies at a field path such as
// spec.roles[0].template.metadata.labels[a.b/c], nil when nothing does. A
// bracket holds an index in a list and a key, dots and all, in a map. A key that
// holds dots may stand without brackets as well.
func valueAt(value ast.Value, path string) ast.Value {
	steps, ok := splitPath(path)
	if !ok {
		return nil
	}
	return valueAtSteps(value, steps)
}

func valueAtSteps(value ast.Value, steps []fieldStep) ast.Value {
	if len(steps) == 0 || value == nil {
		return value
	}
	found := valueAtSteps(valueIn(value, []string{steps[0].key}), steps[1:])
	if _, isObject := value.(ast.Object); found != nil || !isObject {
		return found
	}
	// The name of a member may be the first steps together.
	for i := 1; i < len(steps) && !steps[0].bracketed && !steps[i].bracketed; i++ {
		if found := valueAtSteps(valueIn(value, []string{joined(steps[:i+1])}), steps[i+1:]); found != nil {
			return found
		}
	}
	return nil
}

// joined is the name of a member that holds dots.
func joined(steps []fieldStep) string {
	keys := make([]string, len(steps))
	for i, step := range steps {
		keys[i] = step.key
	}
	return strings.Join(keys, ".")
}

// A fieldStep is one step of a field path.
type fieldStep struct {
	key       string
	bracketed bool
}

// splitPath cuts a field path at dots and brackets. It reports whether the path
// is one: names with a dot between them, and brackets that are closed.
func splitPath(path string) ([]fieldStep, bool) {
	var steps []fieldStep
	for rest := path; rest != ""; {
		if key, after, closed := strings.Cut(rest, "]"); rest[0] == '[' {
			if key = key[1:]; !closed || key == "" {
				return nil, false
			}
			steps, rest = append(steps, fieldStep{key, true}), after
			if rest != "" && rest[0] != '.' && rest[0] != '[' {
				return nil, false
			}
			continue
		}
		if len(steps) > 0 {
			rest = rest[1:] // the dot
		}
		end := strings.IndexAny(rest, ".[]")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 || strings.ContainsAny(rest[:end], " $\"'*{}()") {
			return nil, false
		}
		steps, rest = append(steps, fieldStep{key: rest[:end]}), rest[end:]
	}
	return steps, len(steps) > 0
}
