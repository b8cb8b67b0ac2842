package webhooks

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
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

// undecodable says which value a type cannot hold, in words of its own: those
// of the JSON package change from process to process.
func undecodable(err error) *field.Error {
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return field.Invalid(field.NewPath("spec"), field.OmitValueType{}, "cannot be read: it must be a JSON object")
	}
	var path *field.Path
	for token := range semantic.JSONPointer.Tokens() {
		index, err := strconv.Atoi(token)
		switch {
		case path == nil:
			path = field.NewPath(token)
		case err == nil:
			path = path.Index(index)
		case strings.ContainsAny(token, "./"):
			path = path.Key(token)
		default:
			path = path.Child(token)
		}
	}
	detail := fmt.Sprintf("cannot be a JSON %s: write a value of the field's type", semantic.JSONKind)
	if semantic.Err != nil {
		detail = semantic.Err.Error()
	}
	return field.Invalid(path, field.OmitValueType{}, detail)
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

// writeFractions writes the fractions among amounts of resources as text: a pod
// may say cpu: 0.5, which no schema of a custom resource can allow.
func writeFractions(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			amounts, ok := member.(map[string]any)
			if ok && (name == "limits" || name == "requests" || name == "overhead" || name == "minResources") {
				for resource, amount := range amounts {
					if fraction, ok := amount.(float64); ok {
						amounts[resource] = strconv.FormatFloat(fraction, 'f', -1, 64)
					}
				}
			}
			writeFractions(member)
		}
	case []any:
		for _, item := range value {
			writeFractions(item)
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
		for i, j := range counterparts(before, after) {
			merged[i] = merge(original[j], before[j], after[i])
		}
		return merged
	default:
		return after
	}
}

// counterparts gives, for the items of after, which items of before they were.
// Defaults append items to a list, or take out of one items that repeat the
// name of another; what stays keeps its order and, but for case, its name.
func counterparts(before, after []any) map[int]int {
	pairs := make(map[int]int, len(after))
	if len(after) >= len(before) {
		for i := range before {
			pairs[i] = i
		}
		return pairs
	}
	j := 0
	for i := range after {
		for j < len(before) && !strings.EqualFold(nameOf(before[j]), nameOf(after[i])) {
			j++
		}
		if j == len(before) {
			break
		}
		pairs[i] = j
		j++
	}
	return pairs
}

func nameOf(item any) string {
	members, _ := item.(map[string]any)
	name, _ := members["name"].(string)
	return name
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

// written is what a request writes of an object, beside what the API server and
// controllers keep in its metadata and status.
type written struct {
	labels, annotations map[string]string
	beingDeleted        bool
	// members are those beside metadata and status, as they came.
	members map[string]jsontext.Value
}

func readWritten(raw []byte) (*written, error) {
	var w written
	if err := decodeTyped(raw, &w.members); err != nil {
		return nil, err
	}
	var metadata struct {
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
		DeletionTimestamp *string           `json:"deletionTimestamp"`
	}
	if kept, ok := w.members["metadata"]; ok {
		if err := decodeTyped(kept, &metadata); err != nil {
			return nil, err
		}
	}
	delete(w.members, "metadata")
	delete(w.members, "status")
	w.labels, w.annotations, w.beingDeleted = metadata.Labels, metadata.Annotations, metadata.DeletionTimestamp != nil
	return &w, nil
}

func (w *written) equal(other *written) bool {
	return maps.Equal(w.labels, other.labels) && maps.Equal(w.annotations, other.annotations) &&
		maps.EqualFunc(w.members, other.members, func(a, b jsontext.Value) bool { return bytes.Equal(a, b) })
}

// cannotMatter reports whether a request cannot change what is judged of one of
// Penstock's own kinds: a write of status or finalizers, a storage migration, or
// anything on an object that is being deleted. Such requests are never blocked.
func cannotMatter(request *admissionv1.AdmissionRequest) bool {
	if request.SubResource == "status" {
		return true
	}
	old, object, ok := bothWritten(request)
	return ok && (old.beingDeleted || old.equal(object))
}

// unchanged reports whether an update leaves an object of any kind as it is, but
// for its status and for what others keep in its metadata. What is written to an
// object that is being deleted counts: a pod may run on for long.
func unchanged(request *admissionv1.AdmissionRequest) bool {
	old, object, ok := bothWritten(request)
	return ok && request.SubResource == "" && old.equal(object)
}

// bothWritten reads both objects of an update. What is none, or cannot be read,
// is judged as it comes.
func bothWritten(request *admissionv1.AdmissionRequest) (old, object *written, ok bool) {
	if request.Operation != admissionv1.Update {
		return nil, nil, false
	}
	old, oldErr := readWritten(request.OldObject.Raw)
	object, err := readWritten(request.Object.Raw)
	return old, object, oldErr == nil && err == nil
}
