package conversion

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// An UnknownVersionError says that an object, or the version it shall have, is
// not one that conversion knows.
type UnknownVersionError struct {
	GroupVersionKind schema.GroupVersionKind
}

func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("no conversion for kind %q in version %q", e.GroupVersionKind.Kind, e.GroupVersionKind.GroupVersion())
}

// Convert gives the JSON of an object in another version of its group, which
// may be the one it has. It never looks at what a schema would say: fragments
// without spec or metadata and ill-typed values pass through it, and
// converting back gives what went in.
//
// Only apiVersion, spec and the annotation v1.RestoreAnnotation differ; status
// and the rest of metadata are carried as they are. metadata is always
// present in what comes back. The error is an *UnknownVersionError, or says
// where raw is not a JSON object.
func Convert(raw []byte, desired schema.GroupVersion) ([]byte, error) {
	object, err := splitObject(raw)
	if err != nil {
		return nil, err
	}
	gvk := schema.FromAPIVersionAndKind(object.apiVersion, object.kind)
	if gvk.GroupVersion() == desired {
		return raw, nil
	}
	kind := kinds[gvk.GroupKind()]
	if kind == nil || desired.Group != gvk.Group {
		return nil, &UnknownVersionError{gvk}
	}
	if gvk.Version != hubVersion {
		if err := kind.convert(object, gvk.Version, true); err != nil {
			return nil, err
		}
	}
	if desired.Version != hubVersion {
		if err := kind.convert(object, desired.Version, false); err != nil {
			return nil, err
		}
	}
	object.apiVersion = desired.String()
	return object.encode(), nil
}

// convert changes the spec of an object from one version to v1 (up), or from
// v1 to that version.
func (k *kind) convert(object *rawObject, version string, up bool) error {
	spoke := k.spokes[version]
	if spoke == nil {
		return &UnknownVersionError{k.groupKind.WithVersion(version)}
	}
	kept, metadata := takeAnnotation(object.metadata, v1.RestoreAnnotation)
	if object.spec == nil && kept == "" {
		object.metadata = metadata
		return nil
	}
	half := spoke.down
	if up {
		half = spoke.up
	}
	if kept == "" && object.spec != nil {
		if converted, exact, err := half.convert(object.spec); err == nil && exact {
			object.spec, object.metadata = converted, metadata
			return nil
		}
	}
	spec, lost, err := spoke.convertExactly(object.spec, kept, up)
	if err != nil {
		return fmt.Errorf("failed to convert %s: %w", k.groupKind, err)
	}
	object.spec = spec
	object.metadata = putAnnotation(metadata, v1.RestoreAnnotation, lost)
	return nil
}

// A rawObject is an object whose parts are left as the bytes they came in.
type rawObject struct {
	apiVersion, kind string
	metadata         jsontext.Value
	spec             jsontext.Value
	// rest are the other members, each as `"name":value`.
	rest [][]byte
}

func splitObject(raw []byte) (*rawObject, error) {
	object := &rawObject{}
	err := eachMember(raw, func(name string, value jsontext.Value) error {
		object.set(name, value)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}
	return object, nil
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
		o.spec = value
	default:
		member := append(appendString(nil, name), ':')
		o.rest = append(o.rest, append(member, value...))
	}
}

func unquote(value jsontext.Value) string {
	// The decoder has read the value, so it is well formed.
	text, _ := jsontext.AppendUnquote(nil, value)
	return string(text)
}

// encode writes the object. The API server refuses one without metadata.
func (o *rawObject) encode() []byte {
	size := len(o.metadata) + len(o.spec) + 128
	for _, member := range o.rest {
		size += len(member) + 1
	}
	out := append(make([]byte, 0, size), `{"apiVersion":`...)
	out = appendString(out, o.apiVersion)
	out = append(out, `,"kind":`...)
	out = appendString(out, o.kind)
	out = append(out, `,"metadata":`...)
	if len(o.metadata) == 0 || o.metadata.Kind() == jsontext.KindNull {
		out = append(out, "{}"...)
	} else {
		out = append(out, o.metadata...)
	}
	if o.spec != nil {
		out = append(out, `,"spec":`...)
		out = append(out, o.spec...)
	}
	for _, member := range o.rest {
		out = append(out, ',')
		out = append(out, member...)
	}
	return append(out, '}')
}

// Lost gives how many bytes a v1 object loses in the version that can say
// least of it; reading it there keeps them in v1.RestoreAnnotation.
func Lost(hub []byte) int {
	object, err := splitObject(hub)
	if err != nil || len(object.spec) <= MaxLost {
		return 0 // What is lost is a part of the spec.
	}
	kind := kinds[schema.FromAPIVersionAndKind(object.apiVersion, object.kind).GroupKind()]
	if kind == nil {
		return 0
	}
	most := 0
	for _, spoke := range kind.spokes {
		if _, lost, err := spoke.convertExactly(object.spec, "", false); err == nil {
			most = max(most, len(lost))
		}
	}
	return most
}
