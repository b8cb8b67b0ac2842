package webhooks

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// decodeOptions read what the API server wrote as encoding/json would, but for
// the case of names, at a third of the cost.
var decodeOptions = json.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	json.MatchCaseInsensitiveNames(false),
	jsonv1.ReportErrorsWithLegacySemantics(false),
	jsontext.AllowDuplicateNames(true),
)

func decodeTyped(raw []byte, into any) error {
	return json.Unmarshal(raw, into, decodeOptions)
}

// decodeContent reads an object as untyped content, with whole numbers as int64.
func decodeContent(raw []byte) (map[string]any, error) {
	content := map[string]any{}
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}
	return content, nil
}

// dropNulls removes the nulls below a value: they ask for nothing, and a stored
// one would make every later apply of the same manifest a change.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if member == nil {
				delete(value, name)
			} else {
				dropNulls(member)
			}
		}
	case []any:
		for _, item := range value {
			dropNulls(item)
		}
	}
}

// merge applies to original what changed between before and after, which are
// the same object as a Go type wrote it. What the type cannot hold, or writes
// in other words, stays in original as it was.
func merge(original, before, after any) any {
	if equality.Semantic.DeepEqual(before, after) {
		return original
	}
	switch after := after.(type) {
	case map[string]any:
		original, ok := original.(map[string]any)
		if !ok {
			return after
		}
		before, _ := before.(map[string]any)
		return mergeObjects(original, before, after)
	case []any:
		original, ok := original.([]any)
		before, _ := before.([]any)
		if !ok || len(original) != len(before) {
			return after
		}
		merged := slices.Clone(after)
		for i := range after {
			if was := counterpart(before, after, i); was >= 0 {
				merged[i] = merge(original[was], before[was], after[i])
			}
		}
		return merged
	default:
		return after
	}
}

// counterpart gives the index of what an item of a list was before, or -1. Items
// are added at the end; where some were dropped, the name tells which are left.
func counterpart(before, after []any, i int) int {
	if len(after) >= len(before) {
		if i < len(before) {
			return i
		}
		return -1
	}
	item, _ := after[i].(map[string]any)
	return slices.IndexFunc(before, func(was any) bool {
		old, _ := was.(map[string]any)
		return old["name"] != nil && old["name"] == item["name"]
	})
}

func mergeObjects(original, before, after map[string]any) map[string]any {
	merged := maps.Clone(original)
	for name, value := range after {
		old, ok := before[name]
		if ok && equality.Semantic.DeepEqual(old, value) {
			continue
		}
		merged[name] = merge(original[name], old, value)
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			delete(merged, name)
		}
	}
	return merged
}

// A patch is a JSON patch (RFC 6902); an empty one changes nothing.
type patch []operation

// An operation is one step of a patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// written is what a request writes of an object, beside what the API server
// itself keeps in its metadata.
type written struct {
	Metadata struct {
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
		DeletionTimestamp *string           `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec jsontext.Value `json:"spec"`
}

// cannotMatter reports whether a request cannot change what is judged: a write
// of status or finalizers, a storage migration, or anything on an object that
// is being deleted. Such requests are never blocked.
func cannotMatter(request *admissionv1.AdmissionRequest) bool {
	if request.SubResource == "status" {
		return true
	}
	if request.Operation != admissionv1.Update {
		return false
	}
	var old, object written
	if decodeTyped(request.OldObject.Raw, &old) != nil || decodeTyped(request.Object.Raw, &object) != nil {
		return false
	}
	if old.Metadata.DeletionTimestamp != nil {
		return true
	}
	return bytes.Equal(old.Spec, object.Spec) &&
		maps.Equal(old.Metadata.Labels, object.Metadata.Labels) &&
		maps.Equal(old.Metadata.Annotations, object.Metadata.Annotations)
}
