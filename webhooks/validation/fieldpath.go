package validation

import (
	"strconv"
	"strings"
)

// Step is one step of a field path: a field or map key, or the index of a list.
type Step struct {
	// Key is the name of the field, the key in brackets, or the digits of the index.
	Key string
	// Bracketed says that the step was written in brackets. Digits in brackets
	// are an index in a list and a key in a map.
	Bracketed bool
}

// ParsePath splits a path of the form that field errors and policies use, such
// as spec.roles[1].template.spec.containers[0].resources.limits[nvidia.com/gpu].
// It is total: an unclosed bracket ends with the path, and empty steps are left
// out.
func ParsePath(path string) []Step {
	var steps []Step
	for path != "" {
		switch path[0] {
		case '.':
			path = path[1:]
		case '[':
			end := strings.IndexByte(path, ']')
			if end < 0 {
				end = len(path)
			}
			steps = append(steps, Step{Key: path[1:end], Bracketed: true})
			path = path[min(end+1, len(path)):]
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			steps = append(steps, Step{Key: path[:end]})
			path = path[end:]
		}
	}
	return steps
}

// Lookup returns the value at a path of untyped content, and whether there is
// one. Keys that hold dots may be written in brackets or, as the API server
// itself does for maps such as nodeSelector, plainly.
func Lookup(obj any, path string) (any, bool) {
	return lookup(obj, ParsePath(path))
}

func lookup(value any, steps []Step) (any, bool) {
	if len(steps) == 0 {
		return value, true
	}
	switch value := value.(type) {
	case map[string]any:
		// A plain key that holds dots was split into several steps: try to join
		// them again, the shortest first.
		key := steps[0].Key
		for taken := 1; ; taken++ {
			if next, found := value[key]; found {
				if result, found := lookup(next, steps[taken:]); found {
					return result, true
				}
			}
			if taken == len(steps) || steps[taken].Bracketed || steps[0].Bracketed {
				return nil, false
			}
			key += "." + steps[taken].Key
		}
	case []any:
		index, err := strconv.Atoi(steps[0].Key)
		if !steps[0].Bracketed || err != nil || index < 0 || index >= len(value) {
			return nil, false
		}
		return lookup(value[index], steps[1:])
	default:
		return nil, false
	}
}

// stablePath returns a path in which the items of lists are called by their
// name where they have one, so that the same role or container is found again
// after another was put before it.
func stablePath(obj any, path string) string {
	var stable strings.Builder
	current := obj
	for _, step := range ParsePath(path) {
		key := step.Key
		next, found := lookup(current, []Step{step})
		if list, isList := current.([]any); isList && found {
			key = itemName(list, key)
		}
		current = next
		stable.WriteByte('/')
		// Keys of labels hold slashes.
		stable.WriteString(strings.ReplaceAll(key, "/", "~1"))
	}
	return stable.String()
}

// itemName calls an item by its name and by how many of that name come before
// it: a list that is at fault may hold a name twice. An item without a name is
// called by its index.
func itemName(list []any, index string) string {
	position, _ := strconv.Atoi(index)
	name, named := nameOf(list[position])
	if !named {
		return index
	}
	earlier := 0
	for _, item := range list[:position] {
		if other, _ := nameOf(item); other == name {
			earlier++
		}
	}
	return "name=" + name + "#" + strconv.Itoa(earlier)
}

func nameOf(item any) (string, bool) {
	fields, _ := item.(map[string]any)
	name, named := fields["name"].(string)
	return name, named
}
