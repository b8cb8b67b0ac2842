package check

import (
	"cmp"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

// An Explanation says how a policy found a fault. Paths and values are those of
// the object in v1, which rules see.
type Explanation struct {
	// File holds the policy, Line is that of the rule in it, or that where the
	// Rego begins if it is not written line by line; absent where that is
	// not known.
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// RegoLine is the rule's line in spec.rego, Text what it says.
	RegoLine int    `json:"regoLine"`
	Text     string `json:"text"`
	// Inputs are the paths that the rule reads, Variables what it and the
	// policy's other rules had computed.
	Inputs    []Input    `json:"inputs"`
	Variables []Variable `json:"variables"`
	// source is where all this is written.
	source Source
}

// An Input is a path of the input and its value, as Rego writes it.
type Input struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// A Variable is a variable, or a rule without arguments, and its value, as Rego
// writes it.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Source is where the Rego of a policy is written.
type Source struct {
	File string
	// Before is how many lines of the file come before the Rego's first, -1
	// where the lines of the one are not those of the other.
	Before int
	// Begins is the line of the file where the Rego begins, 0 if unknown.
	Begins int
	// Shipped tells that the file is one of Penstock's own, in its source tree.
	Shipped bool
	// Libs are where the texts of spec.libs are, in order.
	Libs []Source
}

// Line is the line of the file where a line of the Rego is, 0 if none is.
func (s Source) Line(rego int) int {
	if s.Before < 0 {
		return 0
	}
	return s.Before + rego
}

// Sources finds where the policies among objects are written, by name.
func Sources(objects []Object) map[string]Source {
	found := map[string]Source{}
	for _, object := range objects {
		content, err := decode(object.JSON)
		if err != nil || content["kind"] != penstockv1.WorkloadPolicyKind {
			continue
		}
		metadata, _ := content["metadata"].(map[string]any)
		if name, _ := metadata["name"].(string); name != "" {
			source := object.TextSource("spec", "rego")
			spec, _ := content["spec"].(map[string]any)
			libs, _ := spec["libs"].([]any)
			for i := range libs {
				source.Libs = append(source.Libs, object.TextSource("spec", "libs", strconv.Itoa(i)))
			}
			found[name] = source
		}
	}
	return found
}

// TextSource is where the text at a path of the object is written.
func (o Object) TextSource(path ...string) Source {
	source := Source{File: o.File, Before: -1}
	if o.source == nil {
		return source
	}
	text, _ := o.lookup(path)
	if text == nil {
		return source
	}
	source.Begins = o.source.before + text.Line
	if text.Style&yaml.LiteralStyle != 0 {
		source.Before = source.Begins // that of the bar
	}
	return source
}

// explanationOf says in which file a policy's explanation is.
func (c *Checker) explanationOf(policy string, from *policies.Explanation) *Explanation {
	if from == nil {
		return nil
	}
	source, known := c.options.Sources[policy]
	if !known {
		source = Source{File: "spec.rego", Before: -1}
	}
	made := &Explanation{
		File: source.File, RegoLine: from.Line, Text: from.Text, Inputs: []Input{}, Variables: []Variable{}, source: source,
	}
	made.Line = cmp.Or(source.Line(from.Line), source.Begins)
	for _, one := range from.Inputs {
		made.Inputs = append(made.Inputs, Input{Path: one.Name, Value: one.Value})
	}
	for _, one := range from.Variables {
		made.Variables = append(made.Variables, Variable{Name: one.Name, Value: one.Value})
	}
	return made
}

// write writes the explanation below its fault.
func (e *Explanation) write(w io.Writer) {
	if e == nil {
		return
	}
	switch {
	case e.source.Line(e.RegoLine) > 0:
		fmt.Fprintf(w, "    %s:%d: %s\n", e.File, e.Line, e.Text)
	case e.Line > 0:
		fmt.Fprintf(w, "    %s:%d: line %d of spec.rego: %s\n", e.File, e.Line, e.RegoLine, e.Text)
	default:
		fmt.Fprintf(w, "    %s, line %d of spec.rego: %s\n", e.File, e.RegoLine, e.Text)
	}
	for _, one := range e.Inputs {
		fmt.Fprintf(w, "      %s = %s\n", one.Path, one.Value)
	}
	for _, one := range e.Variables {
		fmt.Fprintf(w, "      %s = %s\n", one.Name, one.Value)
	}
}
