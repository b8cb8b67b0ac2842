package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Strict returns one fault for each field of obj's spec that the schema does
// not know, with the name that was probably meant. v1alpha1 leaves pod
// templates without a schema, so that the API server says nothing of a
// misspelt field and the pods lack what it asked for.
//
// Nulls ask for nothing and are let pass; so is what many tools and old
// manifests write in a template: creationTimestamp in its metadata, and the
// apiVersion and kind of a Pod. The argument is not changed.
func (s *Schema) Strict(obj map[string]any) field.ErrorList {
	spec, isMap := obj["spec"].(map[string]any)
	if !isMap {
		return nil
	}
	if s.shape.fields["spec"].knows(spec) {
		return nil
	}
	judged := map[string]any{"spec": runtime.DeepCopyJSON(spec)}
	var errs field.ErrorList
	for _, path := range s.Prune(judged) {
		if value, found := Lookup(obj, path); found && value == nil {
			continue
		}
		if slices.ContainsFunc(idle, func(end string) bool { return strings.HasSuffix(path, end) }) {
			continue
		}
		errs = append(errs, s.unknownField(path))
	}
	return errs
}

// idle are the ends of paths where whatever stands asks for nothing.
var idle = []string{".metadata.creationTimestamp", ".template.apiVersion", ".template.kind"}

func (s *Schema) unknownField(path string) *field.Error {
	parent, name := "", path
	if dot := strings.LastIndexByte(path, '.'); dot >= 0 {
		parent, name = path[:dot], path[dot+1:]
	}
	detail := "unknown field: remove it"
	if near := Nearest(name, s.fieldsAt(parent)); near != "" {
		detail = fmt.Sprintf("unknown field, did you mean %q?", near)
	}
	return field.Forbidden(field.NewPath(path), detail)
}

// fieldsAt returns the names of the fields that the schema knows at a path.
func (s *Schema) fieldsAt(path string) []string {
	node := s.structural
	for _, step := range ParsePath(path) {
		if node = child(node, step); node == nil {
			return nil
		}
	}
	return slices.Collect(maps.Keys(node.Properties))
}

func child(node *structuralschema.Structural, step Step) *structuralschema.Structural {
	if node.Items != nil {
		return node.Items
	}
	if property, known := node.Properties[step.Key]; known {
		return &property
	}
	if node.AdditionalProperties != nil {
		return node.AdditionalProperties.Structural
	}
	return nil
}

// UnknownFields returns the paths of the fields of obj that neither the schema
// nor Kubernetes' metadata knows, those that the API server refuses to decode
// when it is asked to be strict, as kubectl does. The error says why metadata
// cannot be decoded at all. The argument is not changed.
func (s *Schema) UnknownFields(obj map[string]any) ([]string, error) {
	_, _, unknown, err := objectmeta.GetObjectMetaWithOptions(obj, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, fmt.Errorf("failed to decode metadata: %w", err)
	}
	return append(unknown, s.Prune(runtime.DeepCopyJSON(obj))...), nil
}
