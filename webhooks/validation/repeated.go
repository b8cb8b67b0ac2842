package validation

import (
	"cmp"
	"encoding/json"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Repeated finds the items that a list of obj has twice, by the keys that the
// schema tells them apart by. The API server refuses them too, but names them
// by paths that are in no manifest, spec.jaxReplicaSpecs[Worker], and says no
// fix; so whoever asks first should say it. It also finds items that have no keys.
// On update old is not nil, and what it has twice already is tolerated.
func (s *Schema) Repeated(old, obj map[string]any) field.ErrorList {
	if s.shape.distinct(obj) || old != nil && !s.shape.distinct(old) {
		return nil
	}
	errs := listtype.ValidateListSetsAndMaps(nil, s.structural, obj)
	for _, err := range errs {
		if err.Type == field.ErrorTypeDuplicate {
			err.Detail = "is in the list already: change or remove one of the two"
		}
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	return errs
}

// TellsApart reports whether the path, such as spec.roles[0], is that of an item
// of a list whose items the schema tells apart.
func (s *Schema) TellsApart(path string) bool {
	node := s.shape
	steps := ParsePath(path)
	for i, step := range steps {
		switch {
		case node == nil:
			return false
		case step.Bracketed && node.items != nil && i == len(steps)-1:
			return node.isSet || len(node.keys) > 0
		case step.Bracketed && node.items != nil:
			node = node.items
		case node.fields[step.Key] != nil:
			node = node.fields[step.Key]
		default:
			node = node.additional
		}
	}
	return false
}

// readList notes how the items of a list are told apart.
func (s *shape) readList(node *structuralschema.Structural) {
	if node.XListType == nil {
		return
	}
	switch *node.XListType {
	case "map":
		s.keys = node.XListMapKeys
	case "set":
		s.isSet = true
	}
}

// tells reports whether items are told apart anywhere in a value.
func (s *shape) tells() bool { return s != nil && (s.isSet || len(s.keys) > 0 || s.tellsBelow) }

// distinct reports whether no list in a value surely has an item twice.
func (s *shape) distinct(value any) bool {
	if !s.tells() {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		for name, item := range value {
			field, known := s.fields[name]
			if !known {
				field = s.additional
			}
			if !field.distinct(item) {
				return false
			}
		}
	case []any:
		for _, item := range value {
			if !s.items.distinct(item) {
				return false
			}
		}
		return !s.repeats(value)
	}
	return true
}

func (s *shape) repeats(items []any) bool {
	if !s.isSet && len(s.keys) == 0 {
		return false
	}
	seen := make(map[string]bool, len(items))
	for _, item := range items {
		if _, keyed := item.(map[string]any); !keyed && !s.isSet {
			return true
		}
		key := s.keyOf(item)
		if seen[key] {
			return true
		}
		seen[key] = true
	}
	return false
}

// keyOf gives the text of what tells an item apart. The keys of almost every
// list are one name.
func (s *shape) keyOf(item any) string {
	if fields, ok := item.(map[string]any); ok && len(s.keys) > 0 {
		values := make([]any, len(s.keys))
		for i, key := range s.keys {
			values[i] = fields[key]
		}
		item = values
		if name, ok := values[0].(string); ok && len(values) == 1 {
			return name
		}
	}
	text, err := json.Marshal(item)
	if err != nil {
		return ""
	}
	return string(text)
}
