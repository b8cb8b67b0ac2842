package conversion

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A tree is a JSON value that keeps what Go's own types would change: objects
// are map[string]any, arrays []any and strings string; numbers, booleans and
// null are kept as the jsontext.Value they were written as. A nil tree is the
// absence of a value, which is not the same as null.
type tree = any

var readOptions = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func parseTree(raw []byte) (tree, error) {
	return readTree(jsontext.NewDecoder(bytes.NewBuffer(raw), readOptions))
}

func readTree(dec *jsontext.Decoder) (tree, error) {
	switch dec.PeekKind() {
	case jsontext.KindBeginObject:
		return readObject(dec)
	case jsontext.KindBeginArray:
		if _, err := dec.ReadToken(); err != nil {
			return nil, err
		}
		list := []any{}
		for dec.PeekKind() != jsontext.KindEndArray {
			item, err := readTree(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err := dec.ReadToken()
		return list, err
	case jsontext.KindString:
		token, err := dec.ReadToken()
		return token.String(), err
	default:
		value, err := dec.ReadValue()
		return value.Clone(), err
	}
}

func readObject(dec *jsontext.Decoder) (tree, error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	object := map[string]any{}
	for dec.PeekKind() != jsontext.KindEndObject {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		if object[key], err = readTree(dec); err != nil {
			return nil, err
		}
	}
	_, err := dec.ReadToken()
	return object, err
}

// encodeTree writes a tree with sorted keys and no spaces.
func encodeTree(value tree) []byte {
	return appendTree(nil, value)
}

func appendTree(out []byte, value tree) []byte {
	switch value := value.(type) {
	case map[string]any:
		out = append(out, '{')
		for i, key := range slices.Sorted(maps.Keys(value)) {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendString(out, key)
			out = append(out, ':')
			out = appendTree(out, value[key])
		}
		return append(out, '}')
	case []any:
		out = append(out, '[')
		for i, item := range value {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendTree(out, item)
		}
		return append(out, ']')
	case string:
		return appendString(out, value)
	case jsontext.Value:
		return append(out, value...)
	default:
		return append(out, "null"...)
	}
}

func appendString(out []byte, s string) []byte {
	// An error means that s was not valid UTF-8, which the quoted form mends.
	out, _ = jsontext.AppendQuote(out, s)
	return out
}

func equalTrees(a, b tree) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equalTrees)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equalTrees)
	case string:
		b, ok := b.(string)
		return ok && a == b
	case jsontext.Value:
		b, ok := b.(jsontext.Value)
		return ok && bytes.Equal(a, b)
	default:
		return a == nil && b == nil
	}
}

func cloneTree(value tree) tree {
	switch value := value.(type) {
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, item := range value {
			object[key] = cloneTree(item)
		}
		return object
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = cloneTree(item)
		}
		return list
	default:
		return value
	}
}

// A pointer leads to a value in a tree by the names of object members. In a
// list of roles the name of a role takes the place of its position, so that a
// pointer means the same however the list is ordered.
type pointer []string

// String gives the pointer in the form of RFC 6901.
func (p pointer) String() string {
	var out strings.Builder
	for _, name := range p {
		out.WriteByte('/')
		out.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return out.String()
}

func parsePointer(text string) pointer {
	var p pointer
	for name := range jsontext.Pointer(text).Tokens() {
		p = append(p, name)
	}
	return p
}

func (p pointer) child(name string) pointer {
	return append(slices.Clip(p), name)
}

// roleKeys are the members that tell the roles in a list apart, by the name of
// the list.
var roleKeys = map[string]string{"roles": "name", "workerGroupSpecs": "groupName"}

// roleName gives the name of an item of the list that has that name.
func roleName(list string, item any) (string, bool) {
	role, _ := item.(map[string]any)
	name, ok := role[roleKeys[list]].(string)
	return name, ok
}

// roleIndex gives the position of the role of that name, or -1.
func roleIndex(list string, items []any, name string) int {
	return slices.IndexFunc(items, func(item any) bool {
		found, ok := roleName(list, item)
		return ok && found == name
	})
}

// isRoleList reports whether the items of a list can be told apart by name.
func isRoleList(list string, items []any) bool {
	seen := map[string]bool{}
	for _, item := range items {
		name, ok := roleName(list, item)
		if !ok || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

// lookUp gives the value that p leads to.
func lookUp(value tree, p pointer) (tree, bool) {
	list := ""
	for _, name := range p {
		switch parent := value.(type) {
		case map[string]any:
			next, ok := parent[name]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			i := roleIndex(list, parent, name)
			if i < 0 {
				return nil, false
			}
			value = parent[i]
		default:
			return nil, false
		}
		list = name
	}
	return value, true
}

// assign puts a value where p leads to, making the objects on the way but
// never a role. It changes root in place and reports whether it could.
func assign(root tree, p pointer, value tree) bool {
	parent, list := root, ""
	for i, name := range p {
		last := i == len(p)-1
		switch at := parent.(type) {
		case map[string]any:
			if last {
				at[name] = value
				return true
			}
			if at[name] == nil {
				at[name] = map[string]any{}
			}
			parent = at[name]
		case []any:
			j := roleIndex(list, at, name)
			if j < 0 {
				return false
			}
			if last {
				at[j] = value
				return true
			}
			parent = at[j]
		default:
			return false
		}
		list = name
	}
	return false
}

// remove takes the member that p leads to out of its object.
func remove(root tree, p pointer) bool {
	if len(p) == 0 {
		return false
	}
	parent, ok := lookUp(root, p[:len(p)-1])
	if !ok {
		return false
	}
	object, ok := parent.(map[string]any)
	if !ok {
		return false
	}
	_, ok = object[p[len(p)-1]]
	delete(object, p[len(p)-1])
	return ok
}
