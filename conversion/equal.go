package conversion

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

// carriedIn is the field of a pod template that its JSON rides in.
var (
	podTemplateType = reflect.TypeFor[corev1.PodTemplateSpec]()
	carriedIn       = fieldNamed(podTemplateType, "Name").Index
)

func fieldNamed(of reflect.Type, name string) reflect.StructField {
	field, _ := of.FieldByName(name)
	return field
}

// equalSpecs reports whether two specs of one type are deeply equal. Of a pod
// template it compares what is carried, and not the hundred empty fields around
// it: that is nearly all of what reflect.DeepEqual would take.
func equalSpecs(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Struct:
		return equalStructs(a, b)
	case reflect.Slice:
		return equalLists(a, b)
	case reflect.Map:
		return equalMaps(a, b)
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return a.UnsafePointer() == b.UnsafePointer() || equalSpecs(a.Elem(), b.Elem())
	default:
		return a.Equal(b)
	}
}

func equalStructs(a, b reflect.Value) bool {
	if a.Type() == podTemplateType {
		return a.FieldByIndex(carriedIn).String() == b.FieldByIndex(carriedIn).String()
	}
	for i := range a.NumField() {
		if !equalSpecs(a.Field(i), b.Field(i)) {
			return false
		}
	}
	return true
}

func equalLists(a, b reflect.Value) bool {
	if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
		return false
	}
	if a.UnsafePointer() == b.UnsafePointer() {
		return true
	}
	for i := range a.Len() {
		if !equalSpecs(a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

func equalMaps(a, b reflect.Value) bool {
	if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
		return false
	}
	if a.UnsafePointer() == b.UnsafePointer() {
		return true
	}
	for entries := a.MapRange(); entries.Next(); {
		other := b.MapIndex(entries.Key())
		if !other.IsValid() || !equalSpecs(entries.Value(), other) {
			return false
		}
	}
	return true
}
