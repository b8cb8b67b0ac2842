package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
