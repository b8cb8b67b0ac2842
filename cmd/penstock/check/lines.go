package check

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Line gives the line of the file, from 1, where the field at a path is
// written, or, for one that is not, the nearest above it.
func (o Object) Line(path string) int {
	if o.source == nil {
		return 1
	}
	line := 1
	if found := o.find(path); found != nil {
		line = found.Line
	}
	return o.source.before + line
}

// find gives the node at a path or above it, of a mapping's member that of its
// key; nil where the text cannot be read.
func (o Object) find(path string) *yaml.Node {
	_, at := o.lookup(segments(path))
	return at
}

// lookup follows a path as far as it goes. It gives the node it arrives at, nil
// if that is not the end of the path, and the place of the last one passed.
func (o Object) lookup(path []string) (end, place *yaml.Node) {
	end = o.source.root()
	if end == nil {
		return nil, nil
	}
	for _, item := range slices.Backward(o.Items) {
		path = append([]string{"items", strconv.Itoa(item - 1)}, path...)
	}
	place = end
	for _, segment := range path {
		key, value := child(end, segment)
		if value == nil {
			return nil, place
		}
		end, place = value, key
	}
	return end, place
}

// child gives a member of a mapping with its key, or an element of a sequence.
func child(node *yaml.Node, segment string) (key, value *yaml.Node) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == segment {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(segment); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
	}
	return nil, nil
}

// segments cuts a field path such as spec.roles[0].labels[a.b/c] at its dots and
// brackets.
func segments(path string) []string {
	var found []string
	for path != "" {
		if key, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]"); path[0] == '[' && ok {
			found, path = append(found, strings.Trim(key, `"`)), strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(path[1:], ".[") + 1
		if end == 0 {
			end = len(path)
		}
		found, path = append(found, path[:end]), strings.TrimPrefix(path[end:], ".")
	}
	return found
}
