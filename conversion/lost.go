package conversion

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// A Loss is a value of a spec that v1 cannot say.
type Loss struct {
	// Field is where it is in the version that was converted.
	Field string
	// Value is its JSON.
	Value []byte
}

// ConvertForGood gives the JSON of an object in v1, for a manifest that is to
// be kept in it from now on: what v1 cannot say is not kept in
// v1.RestoreAnnotation, but told. Nulls and empty lists, which say nothing, are not.
// Otherwise it does what Convert does.
func ConvertForGood(raw []byte) (hub []byte, lost []Loss, err error) {
	object, err := splitObject(raw)
	if err != nil {
		return nil, nil, err
	}
	written, from := object.rawSpec(), object.gvk()
	if err := object.convert(v1.GroupVersion); err != nil {
		return nil, nil, err
	}
	kept, metadata := takeAnnotation(object.metadata, v1.RestoreAnnotation)
	object.metadata = metadata
	losses, _ := parseLosses(kept)
	for _, text := range slices.Sorted(maps.Keys(losses.set)) {
		if saysNothing(losses.set[text]) {
			continue
		}
		if says, err := saysSomething(from, written, parsePointer(text)); err != nil || says {
			if err != nil {
				return nil, nil, err
			}
			continue
		}
		field := strings.Join(append([]string{"spec"}, parsePointer(text)...), ".")
		lost = append(lost, Loss{field, encodeTree(losses.set[text])})
	}
	return object.appendTo(nil), lost, nil
}

func saysNothing(value tree) bool {
	if list, ok := value.([]any); ok {
		return len(list) == 0
	}
	scalar, ok := value.(jsontext.Value)
	return ok && scalar.Kind() == jsontext.KindNull
}

// saysSomething reports whether v1 would be another without a value of the spec:
// then it says the value, if in another place, as that of a field which upstream
// has under two names.
func saysSomething(from schema.GroupVersionKind, written []byte, at pointer) (bool, error) {
	spoke := kinds[from.GroupKind()].spokes[from.Version]
	if spoke == nil {
		return false, nil
	}
	spec, err := parseTree(written)
	if err != nil {
		return false, err
	}
	with, err := spoke.convertTree(spec, true)
	if err != nil {
		return false, err
	}
	without := cloneTree(spec)
	if !remove(without, at) {
		return false, nil
	}
	if without, err = spoke.convertTree(without, true); err != nil {
		return false, err
	}
	return !equalTrees(with, without), nil
}
