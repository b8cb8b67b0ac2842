package reconcilers

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// wholes are the maps of child kinds, by their paths, that are ours as a whole
// where we set them: a key that somebody adds changes what the others mean, as
// one more label of a selector selects nothing.
var wholes = map[string][][]string{
	"Service":   {{"spec", "selector"}},
	"ConfigMap": {{"data"}, {"binaryData"}},
	"PodGroup":  {{"spec", "minResources"}},
}

// fieldsOf returns the fields of an object.
func fieldsOf(current plan.Object) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(current)
	if err != nil {
		return nil, fmt.Errorf("failed to convert %T: %w", current, err)
	}
	return fields, nil
}

// covers says whether an object already has every field of an apply
// configuration, so that applying it would change nothing. Fields that others
// set are not looked at, and neither is a map key that was once applied and is
// not any more: a kind that takes keys back must set them to something. Keys
// that others add to one of the wholes are found by surplus.
func covers(fields map[string]any, wanted *unstructured.Unstructured) bool {
	for key, value := range wanted.Object {
		// Objects from a cache do not say their kind.
		if key == "apiVersion" || key == "kind" {
			continue
		}
		if !coversValue(fields[key], value) {
			return false
		}
	}
	return true
}

// surplus returns the JSON merge patch that takes from an object the keys of its
// wholes that are not wanted, or nil if there are none. Applying cannot do that:
// it takes only what was applied before, and not what others have added.
func surplus(fields map[string]any, wanted *unstructured.Unstructured) ([]byte, error) {
	patch := map[string]any{}
	for _, path := range wholes[wanted.GetKind()] {
		ours, set, _ := unstructured.NestedFieldNoCopy(wanted.Object, path...)
		there, _, _ := unstructured.NestedFieldNoCopy(fields, path...)
		if !set {
			continue
		}
		keys, _ := ours.(map[string]any)
		others, _ := there.(map[string]any)
		for key := range others {
			if _, ok := keys[key]; ok {
				continue
			}
			if err := unstructured.SetNestedField(patch, nil, append(slices.Clip(path), key)...); err != nil {
				return nil, fmt.Errorf("failed to drop %s from a %s: %w", key, wanted.GetKind(), err)
			}
		}
	}
	if len(patch) == 0 {
		return nil, nil
	}
	// Only from the one that was looked at.
	if uid, ok, _ := unstructured.NestedString(fields, "metadata", "uid"); ok {
		patch["metadata"] = map[string]any{"uid": uid}
	}
	return json.Marshal(patch)
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
