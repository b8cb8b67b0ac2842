package validation

import (
	"regexp"
	"unicode/utf8"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
)

// shape is a structural schema prepared for quick walks: it says that a value
// surely conforms, or that surely all of its fields are known, and it fills in
// defaults. The API server's own code builds a validator for every value it
// meets and copies the schema of every field it passes, which takes longer
// than all the rest of an admission.
//
// Of faults a shape knows nothing: what it does not find to be in order goes
// through the API server's code, which has the words. Whatever a shape does
// not understand is not in order.
type shape struct {
	kind      string
	intOrText bool
	// opaque says that values are judged in ways that a shape does not know,
	// loose that fields are kept or dropped in such ways.
	opaque, loose bool

	fields     map[string]*shape
	additional *shape
	items      *shape
	// keys tell the items of a list apart, isSet says that their values do, and
	// tellsBelow that this is so of some list below.
	keys       []string
	isSet      bool
	tellsBelow bool
	// defaults of the fields, and what takes the place of a null here.
	defaults map[string]any
	standard any
	nullable bool

	required             []string
	least, most          *float64
	leastSize, mostSize  *int64
	leastItems, mostItem *int64
	leastKeys, mostKeys  *int64
	pattern              *regexp.Regexp
	enum                 map[string]bool
	isInt32              bool
}

func newShape(node *structuralschema.Structural) *shape {
	if node == nil {
		return nil
	}
	made := &shape{kind: node.Type, intOrText: node.XIntOrString, nullable: node.Nullable, standard: node.Default.Object}
	made.opaque = node.XEmbeddedResource || node.Type == "" && !node.XIntOrString
	made.loose = node.XEmbeddedResource || node.XPreserveUnknownFields
	made.readValues(node.ValueValidation)
	if len(node.Properties) > 0 {
		made.fields = make(map[string]*shape, len(node.Properties))
		made.defaults = map[string]any{}
	}
	for name, property := range node.Properties {
		made.fields[name] = newShape(&property)
		if property.Default.Object != nil {
			made.defaults[name] = property.Default.Object
		}
	}
	if node.AdditionalProperties != nil {
		made.additional = newShape(node.AdditionalProperties.Structural)
		made.opaque = made.opaque || made.additional == nil && !node.AdditionalProperties.Bool
	}
	made.items = newShape(node.Items)
	made.readList(node)
	made.tellsBelow = made.items.tells() || made.additional.tells()
	for _, field := range made.fields {
		made.tellsBelow = made.tellsBelow || field.tells()
	}
	return made
}

func (s *shape) readValues(values *structuralschema.ValueValidation) {
	if values == nil {
		return
	}
	s.opaque = s.opaque || !s.understands(values)
	s.required = values.Required
	s.least, s.most = values.Minimum, values.Maximum
	s.leastSize, s.mostSize = values.MinLength, values.MaxLength
	s.leastItems, s.mostItem = values.MinItems, values.MaxItems
	s.leastKeys, s.mostKeys = values.MinProperties, values.MaxProperties
	s.isInt32 = values.Format == "int32"
	if values.Pattern != "" {
		pattern, err := regexp.Compile(values.Pattern)
		s.pattern, s.opaque = pattern, s.opaque || err != nil
	}
	for _, allowed := range values.Enum {
		text, isText := allowed.Object.(string)
		if s.enum == nil {
			s.enum = map[string]bool{}
		}
		s.enum[text] = true
		s.opaque = s.opaque || !isText || s.kind != "string"
	}
}

// understands reports whether values say nothing that a shape cannot judge.
func (s *shape) understands(values *structuralschema.ValueValidation) bool {
	// The two ways to write int-or-string repeat what intOrText says.
	choices := len(values.AnyOf) > 0 && !s.intOrText || len(values.AllOf) > 0 || len(values.OneOf) > 0 || values.Not != nil
	format := values.Format != "" && (s.kind != "integer" || values.Format != "int32" && values.Format != "int64")
	return !choices && !format && !values.UniqueItems && values.MultipleOf == nil &&
		!values.ExclusiveMinimum && !values.ExclusiveMaximum
}

// conforms reports whether the API server's validator surely finds no fault.
// False means that it has to be asked.
func (s *shape) conforms(value any) bool {
	if s == nil {
		return true
	}
	if s.opaque {
		return false
	}
	switch value := value.(type) {
	case map[string]any:
		return s.kind == "object" && s.conformsMap(value, "")
	case []any:
		return s.kind == "array" && s.conformsList(value)
	case string:
		return (s.kind == "string" || s.intOrText) && s.conformsText(value)
	case bool:
		return s.kind == "boolean"
	case int64:
		return s.conformsNumber(value)
	default:
		// Null and fractions.
		return false
	}
}

// conformsMap passes over one key of the value, if that is not empty.
func (s *shape) conformsMap(value map[string]any, except string) bool {
	if !within(int64(len(value)), s.leastKeys, s.mostKeys) {
		return false
	}
	for _, name := range s.required {
		if _, set := value[name]; !set {
			return false
		}
	}
	for name, item := range value {
		if except != "" && name == except {
			continue
		}
		field, known := s.fields[name]
		if !known {
			field = s.additional
		}
		if !field.conforms(item) {
			return false
		}
	}
	return true
}

func (s *shape) conformsList(value []any) bool {
	if !within(int64(len(value)), s.leastItems, s.mostItem) {
		return false
	}
	for _, item := range value {
		if !s.items.conforms(item) {
			return false
		}
	}
	return true
}

func (s *shape) conformsText(value string) bool {
	if s.leastSize != nil || s.mostSize != nil {
		if !within(int64(utf8.RuneCountInString(value)), s.leastSize, s.mostSize) {
			return false
		}
	}
	return (s.enum == nil || s.enum[value]) && (s.pattern == nil || s.pattern.MatchString(value))
}

func (s *shape) conformsNumber(value int64) bool {
	if s.kind != "integer" && s.kind != "number" && !s.intOrText {
		return false
	}
	// Beyond, float64 is no longer exact.
	const exact = 1 << 53
	if value < -exact || value > exact || s.isInt32 && int64(int32(value)) != value {
		return false
	}
	number := float64(value)
	return (s.least == nil || number >= *s.least) && (s.most == nil || number <= *s.most)
}

func within(count int64, least, most *int64) bool {
	return (least == nil || count >= *least) && (most == nil || count <= *most)
}

// knows reports whether pruning surely removes nothing from the value.
func (s *shape) knows(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		if s == nil || s.loose {
			return len(value) == 0
		}
		for name, item := range value {
			field, known := s.fields[name]
			if !known {
				field = s.additional
			}
			if field == nil || !field.knows(item) {
				return false
			}
		}
	case []any:
		for _, item := range value {
			if s == nil || !s.items.knows(item) {
				return false
			}
		}
	}
	return true
}

// fill does what the API server does when it decodes (apiextensions-apiserver,
// pkg/apiserver/schema/defaulting): nulls that the schema does not allow go or
// become the default, and what is absent becomes the default.
func (s *shape) fill(value any) {
	if s == nil {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, item := range value {
			field, known := s.fields[name]
			if !known {
				field = s.additional
			}
			if item == nil && field != nil && !field.nullable {
				item = field.inPlaceOfNull(value, name)
			}
			field.fill(item)
		}
		for name, standard := range s.defaults {
			if _, set := value[name]; !set {
				value[name] = runtime.DeepCopyJSONValue(standard)
				s.fields[name].fill(value[name])
			}
		}
	case []any:
		for i, item := range value {
			if item == nil && s.items != nil && !s.items.nullable {
				item = runtime.DeepCopyJSONValue(s.items.standard)
				value[i] = item
			}
			s.items.fill(item)
		}
	}
}

func (s *shape) inPlaceOfNull(parent map[string]any, name string) any {
	if s.standard == nil {
		delete(parent, name)
		return nil
	}
	standard := runtime.DeepCopyJSONValue(s.standard)
	parent[name] = standard
	return standard
}
