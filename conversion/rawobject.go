package conversion

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errNoObject = errors.New("it must be a JSON object")

// A scanner reads a JSON text once, from front to back. The values it gives
// are parts of that text.
type scanner struct {
	dec    *jsontext.Decoder
	buffer bytes.Buffer
	raw    []byte
}

// scanners are pooled because the JSON library remembers by each what strings
// it has seen.
var scanners = sync.Pool{New: func() any { return &scanner{dec: &jsontext.Decoder{}} }}

// newScanner gives a scanner of a text; free takes it back.
func newScanner(text []byte) *scanner {
	s := scanners.Get().(*scanner)
	s.buffer, s.raw = *bytes.NewBuffer(text), text
	s.dec.Reset(&s.buffer, readOptions)
	return s
}

// free gives the scanner up. What it gave stays.
func (s *scanner) free() {
	s.buffer, s.raw = bytes.Buffer{}, nil
	s.dec.Reset(&s.buffer)
	scanners.Put(s)
}

// object calls visit with the name of every member of the object that comes
// next; visit must read its value.
func (s *scanner) object(visit func(name string) error) error {
	if s.dec.PeekKind() != jsontext.KindBeginObject {
		if _, err := s.dec.ReadToken(); err != nil {
			return err
		}
		return errNoObject
	}
	_, _ = s.dec.ReadToken()
	for s.dec.PeekKind() != jsontext.KindEndObject {
		name, err := s.dec.ReadToken()
		if err != nil {
			return err
		}
		if err := visit(name.String()); err != nil {
			return err
		}
	}
	_, err := s.dec.ReadToken()
	return err
}

// list calls visit for every item of the list that comes next; visit must read
// it.
func (s *scanner) list(name string, visit func() error) error {
	if s.dec.PeekKind() != jsontext.KindBeginArray {
		return fmt.Errorf("%s must be a list", name)
	}
	_, _ = s.dec.ReadToken()
	for s.dec.PeekKind() != jsontext.KindEndArray {
		if err := visit(); err != nil {
			return err
		}
	}
	_, err := s.dec.ReadToken()
	return err
}

// value gives the value that comes next.
func (s *scanner) value() (jsontext.Value, error) {
	value, err := s.dec.ReadValue()
	end := s.dec.InputOffset()
	return s.raw[end-int64(len(value)) : end], err
}

// text gives the string that comes next, or the empty one where the value that
// comes next is none.
func (s *scanner) text() (string, error) {
	value, err := s.value()
	if err != nil || value.Kind() != jsontext.KindString {
		return "", err
	}
	return unquote(value), nil
}

// end reports an error where anything is left to read.
func (s *scanner) end() error {
	switch _, err := s.dec.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	default:
		return errors.New("there is something after the JSON object")
	}
}

// A rawObject is an object whose parts are left as the bytes they came in.
type rawObject struct {
	apiVersion, kind string
	metadata         jsontext.Value
	spec             specText
	// typed is the spec, where it was decoded for the direction asked for while
	// the object was read.
	typed *typedSpec
	// rest are the other members, each as `"name":value`.
	rest [][]byte
}

func splitObject(raw []byte) (*rawObject, error) {
	in := newScanner(raw)
	defer in.free()
	object, err := readRawObject(in, untyped)
	if err == nil {
		err = in.end()
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}
	return object, nil
}

// readRawObject reads the object that comes next. Where wanted gives a direction
// for what is known of the object when its spec comes, the spec is decoded for
// it, so that no byte of it is looked at twice.
func readRawObject(in *scanner, wanted func(*rawObject) *half) (*rawObject, error) {
	object := &rawObject{}
	err := in.object(func(name string) error {
		if name == "spec" && in.dec.PeekKind() == jsontext.KindBeginObject {
			if half := wanted(object); half != nil {
				return object.readSpec(in, half)
			}
		}
		value, err := in.value()
		if err == nil {
			object.set(name, value)
		}
		return err
	})
	return object, err
}

// errIllTyped says that a spec does not fit its Go type: it has to be read
// without one.
var errIllTyped = errors.New("the spec does not fit its type")

func (o *rawObject) readSpec(in *scanner, half *half) error {
	start := in.dec.InputOffset()
	start += int64(bytes.IndexByte(in.raw[start:], '{'))
	source, err := half.read(in)
	if err != nil {
		return errIllTyped
	}
	o.set("spec", in.raw[start:in.dec.InputOffset()])
	o.typed = &typedSpec{half, source}
	return nil
}

// untyped is for readers who want specs as they are.
func untyped(*rawObject) *half { return nil }

// A typedSpec is a spec that was decoded for one direction.
type typedSpec struct {
	half   *half
	source source
}

// convertSpec converts the spec in one direction.
func (o *rawObject) convertSpec(half *half) (converted specText, exact bool, err error) {
	if o.typed != nil && o.typed.half == half {
		return o.typed.source.convert()
	}
	return half.convert(o.rawSpec())
}

func (o *rawObject) set(name string, value jsontext.Value) {
	switch {
	case name == "apiVersion" && value.Kind() == jsontext.KindString:
		o.apiVersion = unquote(value)
	case name == "kind" && value.Kind() == jsontext.KindString:
		o.kind = unquote(value)
	case name == "metadata":
		o.metadata = value
	case name == "spec":
		o.spec, o.typed = specText{written: value}, nil
	default:
		member := append(appendString(nil, name), ':')
		o.rest = append(o.rest, append(member, value...))
	}
}

func (o *rawObject) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.apiVersion, o.kind)
}

func unquote(value jsontext.Value) string {
	// The decoder has read the value, so it is well formed.
	text, _ := jsontext.AppendUnquote(nil, value)
	return string(text)
}

// rawSpec gives the JSON of the spec, or nil where there is none.
func (o *rawObject) rawSpec() []byte {
	if len(o.spec.carried) == 0 {
		return o.spec.written
	}
	return o.spec.bytes()
}

func (o *rawObject) size() int {
	size := len(o.metadata) + o.spec.size() + 128
	for _, member := range o.rest {
		size += len(member) + 1
	}
	return size
}

// appendTo writes the object. The API server refuses one without metadata.
func (o *rawObject) appendTo(out []byte) []byte {
	out = append(slices.Grow(out, o.size()), `{"apiVersion":`...)
	out = appendString(out, o.apiVersion)
	out = append(out, `,"kind":`...)
	out = appendString(out, o.kind)
	out = append(out, `,"metadata":`...)
	if len(o.metadata) == 0 || o.metadata.Kind() == jsontext.KindNull {
		out = append(out, "{}"...)
	} else {
		out = append(out, o.metadata...)
	}
	if o.spec.written != nil {
		out = append(out, `,"spec":`...)
		out = o.spec.appendTo(out)
	}
	for _, member := range o.rest {
		out = append(out, ',')
		out = append(out, member...)
	}
	return append(out, '}')
}
