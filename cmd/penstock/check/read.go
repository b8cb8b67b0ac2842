package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// An Object is one object of a file.
type Object struct {
	File string
	// Document counts the documents of the file, Items the items of a list in the
	// document and of lists in that list, all from 1; there are none outside a list.
	Document int
	Items    []int
	// JSON is the object.
	JSON []byte
	// Repeated says where a key was written twice; the last one is in JSON.
	Repeated []string
	// source is the text of the document.
	source *document
	// empty tells that this is a list of objects of one kind, and holds none.
	empty bool
}

// Place names where the object is written.
func (o Object) Place() string { return place(o.File, o.Document, o.Items) }

// An Unreadable is a file, or a document of it, that holds no object.
type Unreadable struct {
	File     string `json:"file"`
	Document int    `json:"document,omitempty"`
	// Line is where it begins, or what cannot be read is, from 1; 0 of a file that
	// cannot be opened or is empty.
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
}

func (u *Unreadable) Error() string {
	return place(u.File, u.Document, nil) + ": " + u.Message
}

// place names where something is written.
func place(file string, document int, items []int) string {
	if document == 0 {
		return file
	}
	return strings.Join(append([]string{fmt.Sprintf("%s: document %d", file, document)}, itemsOf(items)...), ", ")
}

func itemsOf(items []int) []string {
	var named []string
	for _, item := range items {
		named = append(named, fmt.Sprintf("item %d", item))
	}
	return named
}

// Load reads the objects of files and folders in the order of the paths, those
// of a folder by name. What cannot be read is left out and told. Without stdin
// the path - cannot be read.
func Load(paths []string, recursive bool, stdin io.Reader) ([]Object, []*Unreadable) {
	return load(paths, recursive, stdin, false)
}

// load is Load, and gives lists of no objects as well where they are wanted.
func load(paths []string, recursive bool, stdin io.Reader, empty bool) ([]Object, []*Unreadable) {
	var objects []Object
	var faults []*Unreadable
	for _, path := range paths {
		files, err := expand(path, recursive)
		if err != nil {
			faults = append(faults, &Unreadable{File: path, Message: reason(err)})
		}
		for _, file := range files {
			text, err := readFile(file, stdin)
			if err != nil {
				faults = append(faults, &Unreadable{File: file, Message: reason(err)})
				continue
			}
			found, unreadable := read(file, text, empty)
			objects, faults = append(objects, found...), append(faults, unreadable...)
		}
	}
	return objects, faults
}

// reason leaves out the path, which is said before it.
func reason(err error) string {
	if pathError, ok := errors.AsType[*os.PathError](err); ok {
		return pathError.Err.Error()
	}
	return err.Error()
}

func readFile(path string, stdin io.Reader) ([]byte, error) {
	if path == Stdin && stdin == nil {
		return nil, errors.New("standard input is for the manifests to judge only")
	}
	if path == Stdin {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path)
}

// expand gives the manifests of a folder, and other paths as they are.
func expand(path string, recursive bool) ([]string, error) {
	if path == Stdin {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != path && !recursive:
			return filepath.SkipDir
		case !entry.IsDir() && slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(file)):
			files = append(files, file)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = errors.New("the folder holds no file that ends in .json, .yaml or .yml")
	}
	return files, err
}

// Read reads the objects of a text: YAML of one or more documents, or JSON. The
// items of lists become objects of their own.
func Read(file string, text []byte) ([]Object, []*Unreadable) {
	return read(file, text, false)
}

func read(file string, text []byte, empty bool) ([]Object, []*Unreadable) {
	if file == Stdin {
		file = "stdin"
	}
	var objects []Object
	var faults []*Unreadable
	for _, document := range documents(text) {
		object := Object{File: file, Document: document.number, source: &document}
		fault := func(err error) {
			faults = append(faults, &Unreadable{File: file, Document: document.number, Line: document.lineOf(err), Message: err.Error()})
		}
		var err error
		if object.JSON, object.Repeated, err = document.toJSON(); err != nil {
			fault(err)
			continue
		}
		found, err := flatten(object)
		if err != nil {
			fault(err)
		}
		for _, one := range found {
			if empty || !one.empty {
				objects = append(objects, one)
			}
		}
	}
	if len(objects) == 0 && len(faults) == 0 {
		faults = append(faults, &Unreadable{File: file, Message: "holds no object"})
	}
	return objects, faults
}

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

// An itemError says why an item of a list is no object.
type itemError struct {
	item Object
	err  error
}

func (e *itemError) Error() string {
	return strings.Join(itemsOf(e.item.Items), ", ") + ": " + e.err.Error()
}

// flatten gives the items of a list, or the object itself.
func flatten(object Object) ([]Object, error) {
	var head struct {
		APIVersion any             `json:"apiVersion"`
		Kind       any             `json:"kind"`
		Items      json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(object.JSON, &head); err != nil {
		return nil, errors.New("must be an object with apiVersion and kind")
	}
	kind, _ := head.Kind.(string)
	version, _ := head.APIVersion.(string)
	if kind == "" || version == "" {
		return nil, errors.New("an object needs apiVersion and kind")
	}
	if !strings.HasSuffix(kind, "List") || !bytes.HasPrefix(head.Items, []byte("[")) {
		return []Object{object}, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(head.Items, &items); err != nil {
		return nil, err
	}
	if len(items) == 0 && kind != "List" {
		object.empty = true
		return []Object{object}, nil
	}
	var objects []Object
	for i, item := range items {
		one := object
		one.Items = append(slices.Clone(object.Items), i+1)
		var found []Object
		var err error
		if one.JSON, err = typedItem(item, version, kind); err == nil {
			found, err = flatten(one)
		}
		objects = append(objects, found...)
		if _, told := errors.AsType[*itemError](err); err != nil && !told {
			err = &itemError{one, err}
		}
		if err != nil {
			return objects, err
		}
	}
	return objects, nil
}

// typedItem gives an item of a list of one kind that kind, if it names none.
func typedItem(item json.RawMessage, version, list string) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(item, &members); err != nil || members == nil {
		return nil, errors.New("must be an object")
	}
	kind := strings.TrimSuffix(list, "List")
	if _, named := members["kind"]; named || kind == "" {
		return item, nil
	}
	for name, value := range map[string]string{"kind": kind, "apiVersion": version} {
		quoted, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		members[name] = quoted
	}
	return json.Marshal(members)
}
