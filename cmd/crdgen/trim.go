package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// maxBytes bounds a manifest as JSON. kubectl apply keeps the whole manifest in
// an annotation, and an object's annotations may hold 262,144 bytes together;
// the rest is for the conversion stanza and for annotations of others.
const maxBytes = 256_000

// trim splits a stream of CustomResourceDefinitions into manifests by file
// name, named as controller-gen names them, and drops the descriptions below
// every field whose Go type belongs to k8s.io/api; the metadata of templates
// there gets its creationTimestamp, a template without a schema keys its
// containers, and maps of pointers may hold null. The scheme holds the Go type of every
// version. A manifest over maxBytes is an error.
func trim(stream []byte, scheme *runtime.Scheme) (map[string][]byte, error) {
	manifests := map[string][]byte{}
	for document := range bytes.SplitSeq(stream, []byte("\n---\n")) {
		document = bytes.TrimPrefix(document, []byte("---\n"))
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		crd, err := decode(document)
		if err != nil {
			return nil, fmt.Errorf("failed to read a CustomResourceDefinition: %w", err)
		}
		spec := object(crd, "spec")
		group, _ := spec["group"].(string)
		kind, _ := object(spec, "names")["kind"].(string)
		plural, _ := object(spec, "names")["plural"].(string)
		versions, _ := spec["versions"].([]any)
		for _, version := range versions {
			version, _ := version.(map[string]any)
			name, _ := version["name"].(string)
			root, err := scheme.New(schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
			if err != nil {
				return nil, fmt.Errorf("failed to find the Go type of %s: %w", kind, err)
			}
			trimBelow(object(version, "schema", "openAPIV3Schema"), reflect.TypeOf(root))
		}

		size, err := json.Marshal(crd)
		if err != nil {
			return nil, fmt.Errorf("failed to measure %s: %w", kind, err)
		}
		if len(size) > maxBytes {
			return nil, fmt.Errorf("the CustomResourceDefinition of %s has %d bytes as JSON, more than %d: client-side kubectl apply would be refused",
				kind, len(size), maxBytes)
		}
		manifest, err := yaml.JSONToYAML(size)
		if err != nil {
			return nil, fmt.Errorf("failed to write %s: %w", kind, err)
		}
		manifests[group+"_"+plural+".yaml"] = append([]byte("---\n"), manifest...)
	}
	return manifests, nil
}

// decode keeps numbers as they are written: a float64 would turn the maximum of
// an int64 into another number.
func decode(document []byte) (map[string]any, error) {
	asJSON, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	var decoded map[string]any
	return decoded, decoder.Decode(&decoded)
}

// object returns the object at a path, nil if there is none.
func object(from map[string]any, path ...string) map[string]any {
	for _, key := range path {
		from, _ = from[key].(map[string]any)
	}
	return from
}

// trimBelow follows a schema and the Go type that it was made from, and drops
// the descriptions below the first type of k8s.io/api. What metav1 declares,
// conditions and selectors, is small and keeps its own.
func trimBelow(node map[string]any, typ reflect.Type) {
	switch {
	case node == nil:
		return
	case typ.Kind() == reflect.Pointer:
		trimBelow(node, typ.Elem())
		return
	case strings.HasPrefix(typ.PkgPath(), "k8s.io/api/"):
		dropDescriptions(node, true)
		knowTimestamps(node)
		if schemaless, _ := node[preserveUnknown].(bool); schemaless && typ == reflect.TypeFor[corev1.PodTemplateSpec]() {
			node["properties"] = keyedContainers()
		}
		return
	}
	switch typ.Kind() {
	case reflect.Slice, reflect.Array:
		trimBelow(object(node, "items"), typ.Elem())
	case reflect.Map:
		values := object(node, "additionalProperties")
		if values != nil && typ.Elem().Kind() == reflect.Pointer {
			allowNull(values)
		}
		trimBelow(values, typ.Elem())
	case reflect.Struct:
		for field := range typ.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" && (field.Anonymous || strings.Contains(options, "inline")) {
				trimBelow(node, field.Type)
				continue
			}
			trimBelow(object(node, "properties", name), field.Type)
		}
	}
}

// allowNull lets a map have null as a value, where its Go type can tell that
// from none: controller-gen has no marker for it. The API server would drop the
// key without a word, and nobody could refuse what was meant to be something.
func allowNull(value map[string]any) { value["nullable"] = true }

const preserveUnknown = "x-kubernetes-preserve-unknown-fields"

// keyedContainers is all that the schema of a template says that is otherwise
// left without one: its containers are told apart by name. Without it a list of
// containers is one value to server-side apply, and since defaults are written
// into containers, applying an unchanged manifest would be a conflict with
// whoever applied it first.
func keyedContainers() map[string]any {
	list := func() map[string]any {
		return map[string]any{
			"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"name"},
			"items": map[string]any{
				"type": "object", preserveUnknown: true, "required": []any{"name"},
				"properties": map[string]any{"name": map[string]any{"type": "string"}},
			},
		}
	}
	return map[string]any{"spec": map[string]any{
		"type": "object", preserveUnknown: true,
		"properties": map[string]any{"containers": list(), "initContainers": list()},
	}}
}

// dropDescriptions removes every description below a schema. The schema's own
// is that of the field that holds it, and is kept if so asked.
func dropDescriptions(node map[string]any, keepOwn bool) {
	if !keepOwn {
		delete(node, "description")
	}
	// Below properties the keys are field names, among them "description".
	for _, property := range object(node, "properties") {
		if property, ok := property.(map[string]any); ok {
			dropDescriptions(property, false)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if element := object(node, key); element != nil {
			dropDescriptions(element, false)
		}
	}
}

// knowTimestamps declares creationTimestamp in the metadata of every template
// below a schema. Many tools write it there as null; unless the schema knows
// it, the API server refuses such a manifest, or a server-side apply of one
// that was stored through a version without a schema for templates.
func knowTimestamps(node map[string]any) {
	properties := object(node, "properties")
	if metadata := object(properties, "metadata", "properties"); metadata["labels"] != nil && metadata["annotations"] != nil {
		metadata["creationTimestamp"] = map[string]any{"type": "string", "format": "date-time", "nullable": true}
	}
	for _, property := range properties {
		if property, ok := property.(map[string]any); ok {
			knowTimestamps(property)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if element := object(node, key); element != nil {
			knowTimestamps(element)
		}
	}
}
