package reconcilers

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

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
