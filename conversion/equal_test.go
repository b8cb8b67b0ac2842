package conversion

import (
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
)

// A change anywhere in a spec, but in what pod templates do not carry, has to be
// seen.
func TestEqualSpecsSeesEveryField(t *testing.T) {
	for name, spec := range map[string]func() any{
		"v1":       func() any { return new(v1.TrainingJobSpec) },
		"v1alpha1": func() any { return new(v1alpha1.TrainingJobSpec) },
	} {
		t.Run(name, func(t *testing.T) {
			fields := 0
			var visit func(value reflect.Value)
			a, b := spec(), spec()
			check := func(value reflect.Value, to reflect.Value) {
				fields++
				was := reflect.ValueOf(value.Interface())
				value.Set(to)
				if equal := equalSpecs(reflect.ValueOf(a), reflect.ValueOf(b)); equal != reflect.DeepEqual(a, b) {
					t.Errorf("%s: got %t for %+v and %+v", value.Type(), equal, a, b)
				}
				value.Set(was)
			}
			visit = func(value reflect.Value) {
				if value.Type() == podTemplateType {
					check(value, reflect.ValueOf(template("other")))
					return
				}
				switch value.Kind() {
				case reflect.Struct:
					for i := range value.NumField() {
						if value.Type().Field(i).IsExported() {
							visit(value.Field(i))
						}
					}
				case reflect.Pointer, reflect.Slice, reflect.Map:
					check(value, reflect.Zero(value.Type()))
					visitElements(value, visit)
				case reflect.String:
					check(value, reflect.ValueOf(value.String()+"x").Convert(value.Type()))
				case reflect.Bool:
					check(value, reflect.ValueOf(!value.Bool()).Convert(value.Type()))
				case reflect.Int32, reflect.Int64:
					check(value, reflect.ValueOf(value.Int()+1).Convert(value.Type()))
				default:
					t.Fatalf("a spec holds a %s", value.Type())
				}
			}
			fill(rand.New(rand.NewPCG(1, 1)), reflect.ValueOf(a).Elem())
			fill(rand.New(rand.NewPCG(1, 1)), reflect.ValueOf(b).Elem())
			if !equalSpecs(reflect.ValueOf(a), reflect.ValueOf(b)) {
				t.Fatal("what was made alike is not equal")
			}
			visit(reflect.ValueOf(b).Elem())
			if fields < 30 {
				t.Errorf("only %d fields were changed", fields)
			}
		})
	}
}

func template(carried string) corev1.PodTemplateSpec {
	var template corev1.PodTemplateSpec
	template.Name = carried
	return template
}

// visitElements visits what can be set in place of a pointer or a slice.
func visitElements(value reflect.Value, visit func(reflect.Value)) {
	switch value.Kind() {
	case reflect.Pointer:
		visit(value.Elem())
	case reflect.Slice:
		for i := range value.Len() {
			visit(value.Index(i))
		}
	}
}

// fill sets every field of a spec to something.
func fill(r *rand.Rand, value reflect.Value) {
	if value.Type() == podTemplateType {
		value.Set(reflect.ValueOf(template("carried")))
		return
	}
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				fill(r, value.Field(i))
			}
		}
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(r, value.Elem())
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(r, value.Index(0))
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
		key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		fill(r, key)
		fill(r, element)
		value.SetMapIndex(key, element)
	case reflect.String:
		value.SetString(string(rune('a' + r.IntN(26))))
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32, reflect.Int64:
		value.SetInt(r.Int64N(100))
	}
}
