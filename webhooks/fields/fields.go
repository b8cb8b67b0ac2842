// Package fields knows which fields objects have, by the schemas of Penstock's
// kinds and the Go types of Kubernetes'. It is pure, and asks no cluster.
package fields

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/config/crd"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// Of gives what says whether objects of a kind may have a field: by the
// schema of Penstock's kinds, and the Go types of Kubernetes'. Of other kinds it
// is not known, and sure is false, but for what all have.
func Of(kind schema.GroupVersionKind) func(path string) (known, sure bool) {
	return func(path string) (known, sure bool) {
		steps := validation.ParsePath(path)
		if len(steps) == 0 {
			return false, true
		}
		if clientgoscheme.Scheme.Recognizes(kind) {
			object, err := clientgoscheme.Scheme.New(kind)
			if err != nil {
				return false, false
			}
			return inType(reflect.TypeOf(object).Elem(), steps)
		}
		switch steps[0].Key {
		case "apiVersion", "kind":
			return len(steps) == 1, true
		case "metadata":
			return inType(reflect.TypeFor[metav1.ObjectMeta](), steps[1:])
		}
		if root := crdSchemas()[kind]; root != nil {
			return inSchema(root, steps)
		}
		return false, false
	}
}

// Always reports whether an object of a kind has what is at a path, where it has
// what that is in: the API server writes it even where it is empty. It knows that
// of the types of Kubernetes alone.
func Always(kind schema.GroupVersionKind, path []string) bool {
	object, err := clientgoscheme.Scheme.New(kind)
	if err != nil || len(path) == 0 {
		return false
	}
	at := reflect.TypeOf(object).Elem()
	for i, step := range path {
		for at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		if i == len(path)-1 {
			break
		}
		if step == Any {
			step = "0"
		}
		inside, has := below(at, validation.Step{Key: step})
		if !has {
			return false
		}
		at = inside
	}
	if at.Kind() != reflect.Struct {
		return false
	}
	member, has := structField(at, path[len(path)-1])
	_, options, _ := strings.Cut(member.Tag.Get("json"), ",")
	return has && (!strings.Contains(options, "omit") || options == "omitempty" && member.Type.Kind() == reflect.Struct)
}

// Any stands in the paths of Misspelt for the elements of a list, and for the
// members of a map.
const Any = "*"

// Misspelt finds in a path of steps the first that objects of none of some kinds
// have, and what they have instead: of the kinds that know most of the path.
// There is none where one of the kinds has the field, or is not known.
func Misspelt(kinds []schema.GroupVersionKind, path []string) (at int, instead []string, misspelt bool) {
	at = -1
	for _, kind := range kinds {
		known, names, sure := knownSteps(kind, path)
		if !sure || known == len(path) {
			return 0, nil, false
		}
		if known > at {
			at, instead = known, nil
		}
		if known == at {
			instead = append(instead, names...)
		}
	}
	return at, instead, at >= 0
}

// knownSteps says how many steps of a path objects of a kind have, and which
// names there are beside the first that they have not.
func knownSteps(kind schema.GroupVersionKind, path []string) (known int, names []string, sure bool) {
	of := Of(kind)
	steps := ""
	for i, step := range path {
		if step == Any {
			step = "0" // an index, or a key like any other
		}
		next := steps + "[" + step + "]"
		found, sure := of(next)
		if !sure {
			return 0, nil, false
		}
		if !found {
			return i, namesAt(kind, steps), true
		}
		steps = next
	}
	return len(path), nil, true
}

// namesAt lists the names of the fields that objects of a kind have at a path.
func namesAt(kind schema.GroupVersionKind, path string) []string {
	steps := validation.ParsePath(path)
	if clientgoscheme.Scheme.Recognizes(kind) {
		object, err := clientgoscheme.Scheme.New(kind)
		if err != nil {
			return nil
		}
		return namesInType(reflect.TypeOf(object).Elem(), steps)
	}
	if len(steps) > 0 && steps[0].Key == "metadata" {
		return namesInType(reflect.TypeFor[metav1.ObjectMeta](), steps[1:])
	}
	node := crdSchemas()[kind]
	for _, step := range steps {
		if node == nil {
			return nil
		}
		property, has := node.Properties[step.Key]
		switch {
		case has:
			node = &property
		case node.Items != nil:
			node = node.Items.Schema
		case node.AdditionalProperties != nil:
			node = node.AdditionalProperties.Schema
		default:
			node = nil
		}
	}
	if node == nil {
		return nil
	}
	return slices.Collect(maps.Keys(node.Properties))
}

func namesInType(at reflect.Type, steps []validation.Step) []string {
	for len(steps) > 0 || at.Kind() == reflect.Pointer {
		if at.Kind() == reflect.Pointer {
			at = at.Elem()
			continue
		}
		next, has := below(at, steps[0])
		if !has {
			return nil
		}
		at, steps = next, steps[1:]
	}
	if at.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for member := range at.Fields() {
		name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		switch {
		case name != "" && name != "-":
			names = append(names, name)
		case member.Anonymous:
			names = append(names, namesInType(member.Type, nil)...)
		}
	}
	return names
}

// crdSchemas are the schemas of Penstock's kinds.
var crdSchemas = sync.OnceValue(func() map[schema.GroupVersionKind]*apiextensionsv1.JSONSchemaProps {
	found := map[schema.GroupVersionKind]*apiextensionsv1.JSONSchemaProps{}
	// Manifests that cannot be read have kept the process from starting.
	definitions, _ := crd.All()
	for _, definition := range definitions {
		for _, version := range definition.Spec.Versions {
			kind := schema.GroupVersionKind{Group: v1.GroupName, Version: version.Name, Kind: definition.Spec.Names.Kind}
			if version.Schema != nil && definition.Spec.Group == v1.GroupName {
				found[kind] = version.Schema.OpenAPIV3Schema
			}
		}
	}
	return found
})

func inSchema(node *apiextensionsv1.JSONSchemaProps, steps []validation.Step) (known, sure bool) {
	for len(steps) > 0 {
		step := steps[0]
		property, has := node.Properties[step.Key]
		switch {
		case has:
			node = &property
		case node.Items != nil && node.Items.Schema != nil:
			if !isIndex(step) {
				return false, true
			}
			node = node.Items.Schema
		case node.AdditionalProperties != nil && node.AdditionalProperties.Schema != nil:
			if node = node.AdditionalProperties.Schema; node.Type != "object" && node.Type != "array" {
				return true, true // A key may hold dots.
			}
		case node.XPreserveUnknownFields != nil && *node.XPreserveUnknownFields || node.AdditionalProperties != nil && node.AdditionalProperties.Allows:
			return false, false
		default:
			return false, true
		}
		steps = steps[1:]
	}
	return true, true
}

func isIndex(step validation.Step) bool {
	_, err := strconv.ParseUint(step.Key, 10, 31)
	return err == nil
}

// marshals are types whose JSON is their own: a value without members, or
// anything.
var marshals = reflect.TypeFor[interface{ MarshalJSON() ([]byte, error) }]()

func inType(at reflect.Type, steps []validation.Step) (known, sure bool) {
	for len(steps) > 0 {
		if at.Kind() == reflect.Pointer {
			at = at.Elem()
			continue
		}
		if writesItself(at) {
			// Quantities, times and numbers or strings have no members; raw JSON may.
			raw := strings.HasPrefix(at.Name(), "Raw") || at.Name() == "JSON" || strings.HasPrefix(at.Name(), "Fields")
			return false, !raw
		}
		if at.Kind() == reflect.Interface {
			return false, false
		}
		below, has := below(at, steps[0])
		if !has {
			return false, true
		}
		if at.Kind() == reflect.Map && isLeaf(below) {
			return true, true // A key may hold dots.
		}
		at, steps = below, steps[1:]
	}
	return true, true
}

// below is the type of what is at a step in a value of a type.
func below(at reflect.Type, step validation.Step) (reflect.Type, bool) {
	switch at.Kind() {
	case reflect.Struct:
		return memberOf(at, step.Key)
	case reflect.Slice:
		return at.Elem(), at.Elem().Kind() != reflect.Uint8 && isIndex(step)
	case reflect.Map:
		return at.Elem(), true
	default:
		return nil, false
	}
}

// isLeaf reports whether values of a type have nothing in them.
func isLeaf(at reflect.Type) bool {
	return at.Kind() == reflect.String || at.Kind() == reflect.Slice && at.Elem().Kind() == reflect.Uint8 || writesItself(at)
}

// writesItself reports whether the JSON of a type is not that of its members.
func writesItself(at reflect.Type) bool {
	return at.Implements(marshals) || reflect.PointerTo(at).Implements(marshals)
}

// memberOf finds the type of a member by its JSON name, in what is embedded too.
func memberOf(at reflect.Type, name string) (reflect.Type, bool) {
	found, has := structField(at, name)
	return found.Type, has
}

func structField(at reflect.Type, name string) (reflect.StructField, bool) {
	for member := range at.Fields() {
		tag, options, _ := strings.Cut(member.Tag.Get("json"), ",")
		if tag == name && name != "" {
			return member, true
		}
		if tag == "" && (member.Anonymous || strings.Contains(options, "inline")) && member.Type.Kind() == reflect.Struct {
			if found, has := structField(member.Type, name); has {
				return found, true
			}
		}
	}
	return reflect.StructField{}, false
}
