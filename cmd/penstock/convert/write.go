package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// WriteYAML writes objects as documents of a stream of YAML, their members in
// order.
func WriteYAML(out io.Writer, results []*Result) error {
	for i, result := range results {
		text, err := toYAML(result.JSON)
		if err != nil {
			return fmt.Errorf("failed to write %s: %w", result, err)
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// WriteJSON writes one object as it is and several as a List.
func WriteJSON(out io.Writer, results []*Result) error {
	var text []byte
	if len(results) == 1 {
		text = results[0].JSON
	} else {
		items := make([]json.RawMessage, len(results))
		for i, result := range results {
			items[i] = result.JSON
		}
		var list bytes.Buffer
		encoder := json.NewEncoder(&list)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(struct {
			APIVersion string            `json:"apiVersion"`
			Kind       string            `json:"kind"`
			Items      []json.RawMessage `json:"items"`
		}{"v1", "List", items}); err != nil {
			return err
		}
		text = bytes.TrimSpace(list.Bytes())
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	_, err := out.Write(indented.Bytes())
	return err
}

// toYAML writes JSON as YAML in block style.
func toYAML(raw []byte) ([]byte, error) {
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	inBlocks(&document)
	var out bytes.Buffer
	encoder := yamlv3.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), sameAs(raw, out.Bytes())
}

// inBlocks has every node written as people write them.
func inBlocks(node *yamlv3.Node) {
	switch {
	case node.Kind != yamlv3.ScalarNode:
		node.Style = 0
		if len(node.Content) == 0 {
			node.Style = yamlv3.FlowStyle // {} and []
		}
	case node.ShortTag() == "!!str" && plain(node.Value):
		node.Style = 0
	}
	for _, child := range node.Content {
		inBlocks(child)
	}
}

// plain reports whether a text needs no quotes for kubectl to read it as that
// text: its YAML is of version 1.1, in which yes is a truth and 1:30 a number.
func plain(text string) bool {
	var read any
	err := yaml.Unmarshal([]byte(text), &read)
	return (err == nil && read == any(text)) || bytes.ContainsRune([]byte(text), '\n')
}

// sameAs is an error if a text does not read as the JSON it was made of.
func sameAs(raw, text []byte) error {
	again, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	// Numbers are written as they were, and compared as kubectl would read them.
	var want, got any
	if err := errors.Join(json.Unmarshal(raw, &want), json.Unmarshal(again, &got)); err != nil {
		return err
	}
	if !reflect.DeepEqual(want, got) {
		return errors.New("the YAML does not say what the object does; this is a fault in Penstock: use -o json")
	}
	return nil
}
