package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Ordered gives the JSON of the object with its members in the order in which
// they are written in the file.
func (o Object) Ordered() ([]byte, error) {
	var like *yaml.Node
	if o.source != nil {
		like, _ = o.lookup(nil)
	}
	return inOrder(o.JSON, like)
}

// InOrderOf gives the JSON of a value with the members of its objects in the
// order that they have in another text, JSON or YAML. Those that are not in it
// come last, by name.
func InOrderOf(raw, text []byte) ([]byte, error) { return inOrder(raw, parsed(text)) }

// Reorder gives the JSON of an object with the values at some paths in the order
// that those at other paths have in another text.
func Reorder(raw, text []byte, pathsInText map[string]string) ([]byte, error) {
	like, other := parsed(raw), parsed(text)
	for path, in := range pathsInText {
		if own, theirs := at(like, path), at(other, in); own != nil && theirs != nil {
			*own = *theirs
		}
	}
	return inOrder(raw, like)
}

func at(node *yaml.Node, path string) *yaml.Node {
	for _, segment := range segments(path) {
		if node == nil {
			return nil
		}
		_, node = child(node, segment)
	}
	return node
}

func parsed(text []byte) *yaml.Node {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil || len(document.Content) == 0 {
		return nil
	}
	return document.Content[0]
}

func inOrder(raw []byte, like *yaml.Node) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}
	var out bytes.Buffer
	err := writeInOrder(&out, value, like)
	return out.Bytes(), err
}

func writeInOrder(out *bytes.Buffer, value any, like *yaml.Node) error {
	switch value := value.(type) {
	case map[string]any:
		out.WriteByte('{')
		for i, name := range namesInOrder(value, like) {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeScalar(out, name); err != nil {
				return err
			}
			out.WriteByte(':')
			if err := writeInOrder(out, value[name], member(like, name)); err != nil {
				return err
			}
		}
		out.WriteByte('}')
		return nil
	case []any:
		out.WriteByte('[')
		for i, item := range value {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeInOrder(out, item, element(like, i)); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		return nil
	default:
		return writeScalar(out, value)
	}
}

// writeScalar writes a value on one line and leaves its characters as they are.
func writeScalar(out *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("failed to write the object: %w", err)
	}
	out.Truncate(out.Len() - 1) // The encoder ends the line.
	return nil
}

func namesInOrder(object map[string]any, like *yaml.Node) []string {
	var names []string
	if like = resolved(like); like != nil && like.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(like.Content); i += 2 {
			name := like.Content[i].Value
			if _, ok := object[name]; ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if len(names) < len(object) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func resolved(node *yaml.Node) *yaml.Node {
	for node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

func member(like *yaml.Node, name string) *yaml.Node {
	if like = resolved(like); like == nil || like.Kind != yaml.MappingNode {
		return nil
	}
	_, value := child(like, name)
	return value
}

func element(like *yaml.Node, i int) *yaml.Node {
	if like = resolved(like); like == nil || like.Kind != yaml.SequenceNode || i >= len(like.Content) {
		return nil
	}
	return like.Content[i]
}
