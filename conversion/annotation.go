package conversion

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// takeAnnotation gives the value of one annotation and metadata without it;
// metadata as it was where there is none. Metadata of any other shape than the
// API server's is left alone.
func takeAnnotation(metadata jsontext.Value, key string) (string, jsontext.Value) {
	// Nearly no object has the annotation, and looking for its name costs next
	// to nothing beside reading metadata.
	if !bytes.Contains(metadata, []byte(key)) {
		return "", metadata
	}
	members, annotations, ok := readAnnotations(metadata)
	if !ok {
		return "", metadata
	}
	value, ok := annotations[key].(string)
	if !ok {
		return "", metadata
	}
	delete(annotations, key)
	if len(annotations) == 0 {
		delete(members, "annotations")
	}
	return value, encodeTree(members)
}

// putAnnotation gives metadata with one annotation set, or as it is where the
// value is empty.
func putAnnotation(metadata jsontext.Value, key, value string) jsontext.Value {
	if value == "" {
		return metadata
	}
	if len(metadata) == 0 || metadata.Kind() == jsontext.KindNull {
		metadata = jsontext.Value("{}")
	}
	members, annotations, ok := readAnnotations(metadata)
	if !ok {
		return metadata
	}
	annotations[key] = value
	members["annotations"] = annotations
	return encodeTree(members)
}

func readAnnotations(metadata jsontext.Value) (members, annotations map[string]any, ok bool) {
	parsed, err := parseTree(slices.Clone(metadata))
	if err != nil {
		return nil, nil, false
	}
	if members, ok = parsed.(map[string]any); !ok {
		return nil, nil, false
	}
	switch found := members["annotations"].(type) {
	case map[string]any:
		return members, found, true
	case nil:
		return members, map[string]any{}, true
	case jsontext.Value:
		return members, map[string]any{}, found.Kind() == jsontext.KindNull
	default:
		return nil, nil, false
	}
}
