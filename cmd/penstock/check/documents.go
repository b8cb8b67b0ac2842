package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// A Document is one of those of a file, with the number of its first line.
type Document struct {
	Text []byte
	Line int
}

// Documents splits a text of YAML or JSON, without documents that say nothing.
func Documents(text []byte) []Document {
	var found []Document
	for _, one := range documents(text) {
		found = append(found, Document{Text: one.text, Line: one.before + 1})
	}
	return found
}

// A document is a part of a text. Documents are counted as people count them,
// without empty ones.
type document struct {
	number int
	text   []byte
	// before is how many lines of the file come before it.
	before int
	isJSON bool
	// read is the text as YAML, once it was asked for: a List of thousands of objects
	// is one document. Its root is nil where the text cannot be read.
	read *yamlText
}

type yamlText struct{ root *yamlv3.Node }

// root gives the document as YAML; nil where it cannot be read.
func (d *document) root() *yamlv3.Node {
	if d.read == nil {
		d.read = &yamlText{parsed(d.text)}
	}
	return d.read.root
}

func documents(text []byte) []document {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		if found := jsonDocuments(text); found != nil {
			return found
		}
	}
	var found []document
	current, lines := document{}, 0
	finish := func() {
		if says(current.text) {
			current.number = len(found) + 1
			found = append(found, current)
		}
	}
	for line := range bytes.Lines(text) {
		lines++
		if rest, ok := bytes.CutPrefix(line, []byte("---")); ok && !says(rest) {
			finish()
			current = document{before: lines}
			continue
		}
		current.text = append(current.text, line...)
	}
	finish()
	return found
}

// says reports whether YAML holds more than blanks and comments.
func says(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return true
		}
	}
	return false
}

// jsonDocuments gives nothing where the text is no JSON: YAML may begin with a
// brace as well.
func jsonDocuments(text []byte) []document {
	var found []document
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var raw json.RawMessage
		switch err := decoder.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return found
		case err != nil:
			return nil
		}
		start := int(decoder.InputOffset()) - len(raw)
		found = append(found, document{
			number: len(found) + 1, text: raw, before: bytes.Count(text[:start], []byte("\n")), isJSON: true,
		})
	}
}

func (d document) toJSON() (raw []byte, repeated []string, err error) {
	if d.isJSON {
		errs, err := kjson.UnmarshalStrict(d.text, &map[string]any{})
		for _, err := range errs {
			repeated = append(repeated, err.Error())
		}
		return d.text, repeated, err
	}
	raw, err = yaml.YAMLToJSONStrict(d.text)
	if err == nil {
		return raw, nil, nil
	}
	strict := err
	if raw, err = yaml.YAMLToJSON(d.text); err != nil {
		if template := d.template(); template != nil {
			return nil, nil, template
		}
		return nil, nil, errors.New(d.inFile(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")))
	}
	// The first line only says that more follow.
	for line := range strings.Lines(strict.Error()) {
		if line = strings.TrimSpace(line); !strings.HasSuffix(line, "errors:") {
			repeated = append(repeated, d.inFile(line))
		}
	}
	return raw, repeated, nil
}

var templateAction = regexp.MustCompile(`\{\{.*?(\}\}|$)`)

// template says that a text which is no YAML is a template, as Helm's charts hold
// them; nil if it is none.
func (d document) template() error {
	lines := d.before
	for line := range bytes.Lines(d.text) {
		lines++
		if action := templateAction.Find(bytes.TrimSpace(line)); action != nil {
			return fmt.Errorf("line %d: %s makes this a template, not a manifest: give what it renders to, as by helm template CHART | penstock check -f -", lines, action)
		}
	}
	return nil
}

var lineNumber = regexp.MustCompile(`\bline (\d+)`)

// inFile makes numbers of lines in the document those of lines in the file.
func (d document) inFile(message string) string {
	return lineNumber.ReplaceAllStringFunc(message, func(found string) string {
		n, _ := strconv.Atoi(strings.TrimPrefix(found, "line "))
		return fmt.Sprintf("line %d", n+d.before)
	})
}

// lineOf is the line of the file that an error is about: the one it names, that of
// the item that it is of, or the first that says something.
func (d document) lineOf(err error) int {
	if of, ok := errors.AsType[*itemError](err); ok {
		return of.item.Line("")
	}
	if found := lineNumber.FindStringSubmatch(err.Error()); found != nil {
		n, _ := strconv.Atoi(found[1])
		return n
	}
	line := d.before + 1
	for one := range bytes.Lines(d.text) {
		if says(one) {
			break
		}
		line++
	}
	return line
}
