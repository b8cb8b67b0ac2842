package validation

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/operation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateMeta judges the metadata of obj as the API server does: name,
// namespace, labels, annotations, finalizers and owners. On admission the API
// server does so itself, in any version; an offline check has to. On create
// old is nil.
//
// A namespaced object needs its namespace: fill in the one it would be applied
// to.
func (s *Schema) ValidateMeta(ctx context.Context, old, obj map[string]any) field.ErrorList {
	path := field.NewPath("metadata")
	meta, err := metaOf(obj, path)
	if err != nil {
		return field.ErrorList{err}
	}
	if old == nil {
		// The API server makes the name before it judges it.
		if meta.Name == "" && meta.GenerateName != "" {
			meta.Name = meta.GenerateName[:min(len(meta.GenerateName), generatedBase)] + generatedSuffix
		}
		return metavalidation.ValidateObjectMetaDeclaratively(ctx, operation.Create, meta, nil,
			s.namespaced, metavalidation.NameIsDNSSubdomain, path, true)
	}
	oldMeta, err := metaOf(old, path)
	if err != nil {
		return field.ErrorList{err}
	}
	return metavalidation.ValidateObjectMetaDeclaratively(ctx, operation.Update, meta, oldMeta,
		s.namespaced, nil, path, true)
}

func metaOf(obj map[string]any, path *field.Path) (*metav1.ObjectMeta, *field.Error) {
	meta := &metav1.ObjectMeta{}
	content, set := obj["metadata"]
	if !set || content == nil {
		return meta, nil
	}
	fields, isMap := content.(map[string]any)
	if !isMap {
		return nil, field.Invalid(path, content, fmt.Sprintf("expected map[string]interface{}, got %T", content))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, meta); err != nil {
		return nil, field.Invalid(path, content, err.Error())
	}
	return meta, nil
}
