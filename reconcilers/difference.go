package reconcilers

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// applyConfiguration returns what server-side apply shall own of a child: the
// fields that the plan set. What a typed object holds beyond that, its status
// and fields that are empty, is nobody's wish.
func applyConfiguration(child plan.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	if err != nil {
		return nil, fmt.Errorf("failed to convert %T: %w", child, err)
	}
	delete(fields, "status")
	prune(fields)
	return &unstructured.Unstructured{Object: fields}, nil
}

// prune drops nulls and empty objects.
func prune(fields map[string]any) {
	for key, value := range fields {
		if nested, ok := value.(map[string]any); ok {
			prune(nested)
			if len(nested) == 0 {
				delete(fields, key)
			}
		}
		if value == nil {
			delete(fields, key)
		}
	}
}

// covers says whether an object already has every field of an apply
// configuration, so that applying it would change nothing. Fields that others
// set are not looked at, and neither is a map key that was once applied and is
// not any more: a kind that takes keys back must set them to something.
func covers(current plan.Object, wanted *unstructured.Unstructured) (bool, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(current)
	if err != nil {
		return false, fmt.Errorf("failed to convert %T: %w", current, err)
	}
	for key, value := range wanted.Object {
		// Objects from a cache do not say their kind.
		if key == "apiVersion" || key == "kind" {
			continue
		}
		if !coversValue(fields[key], value) {
			return false, nil
		}
	}
	return true, nil
}

func coversValue(current, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		fields, ok := current.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range wanted {
			if !coversValue(fields[key], value) {
				return false
			}
		}
		return true
	case []any:
		items, ok := current.([]any)
		if !ok || len(items) != len(wanted) {
			return false
		}
		for i, value := range wanted {
			if !coversValue(items[i], value) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(current, wanted)
	}
}
