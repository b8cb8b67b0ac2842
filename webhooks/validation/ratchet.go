package validation

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Tolerated returns those of errs that an update has to answer for. A fault
// that was stored long ago, perhaps before its rule was, does not block an
// update that leaves it alone: it is left out if the same rules, run today on
// the old object, give a fault of the same type at the same field (oldErrs)
// and the content at that field has not changed. A fault without a field
// stands for the whole spec. Items of lists that have a name are the same item
// by that name, wherever they stand.
//
// Both objects are untyped content after the same pruning and defaulting.
func Tolerated(oldErrs, errs field.ErrorList, old, obj map[string]any) field.ErrorList {
	if len(errs) == 0 || len(oldErrs) == 0 {
		return errs
	}
	stored := make(map[string]string, len(oldErrs))
	for _, err := range oldErrs {
		path := scopeOf(err)
		stored[faultKey(err.Type, stablePath(old, path))] = path
	}
	var remaining field.ErrorList
	for _, err := range errs {
		path := scopeOf(err)
		oldPath, known := stored[faultKey(err.Type, stablePath(obj, path))]
		if !known || !sameAt(old, oldPath, obj, path) {
			remaining = append(remaining, err)
		}
	}
	return remaining
}

// Apart parts the faults of an update into those that its object has by itself,
// which alone holds, and those of the change: what must not be another than it was.
func Apart(errs, alone field.ErrorList) (own, change field.ErrorList) {
	known := make(map[string]bool, len(alone))
	for _, err := range alone {
		known[err.Error()] = true
	}
	for _, err := range errs {
		if known[err.Error()] {
			own = append(own, err)
		} else {
			change = append(change, err)
		}
	}
	return own, change
}

func scopeOf(err *field.Error) string {
	// field.Path prints the absent path as <nil>.
	if err.Field == "" || err.Field == "<nil>" {
		return "spec"
	}
	return err.Field
}

func faultKey(kind field.ErrorType, path string) string {
	return string(kind) + " " + path
}

func sameAt(old map[string]any, oldPath string, obj map[string]any, path string) bool {
	before, had := Lookup(old, oldPath)
	after, has := Lookup(obj, path)
	return had == has && equality.Semantic.DeepEqual(before, after)
}

// Distinct returns errs without those that another one makes needless: one that
// says the same words of a field further down (the CEL rules of a schema speak
// of the struct that they sit on, the invariants of the field itself), and one
// of the same type that says more (the schema only says Required or Duplicate).
func Distinct(errs field.ErrorList) field.ErrorList {
	var distinct field.ErrorList
	for i, err := range errs {
		needless := false
		for j, other := range errs {
			if i != j && covers(other, err, j < i) {
				needless = true
				break
			}
		}
		if !needless {
			distinct = append(distinct, err)
		}
	}
	return distinct
}

// covers reports whether err need not be said beside other. Of two that are
// equal the earlier stays.
func covers(other, err *field.Error, otherIsEarlier bool) bool {
	same, below := other.Field == err.Field, isBelow(other.Field, err.Field)
	switch {
	case other.Detail != "" && other.Type == field.ErrorTypeDuplicate && err.Type == field.ErrorTypeDuplicate && isFieldOf(other.Field, err.Field):
		// The schema says of the item what invariants say of its name.
		return true
	case err.Detail == "" && other.Detail != "":
		return other.Type == err.Type && (same || below)
	case err.Detail == other.Detail:
		return below && err.Detail != "" || same && other.Type == err.Type && otherIsEarlier
	default:
		return false
	}
}

// isFieldOf reports whether a path is that of a field of what is at parent.
func isFieldOf(path, parent string) bool {
	rest, below := strings.CutPrefix(path, parent+".")
	return below && rest != "" && !strings.ContainsAny(rest, ".[")
}

func isBelow(path, parent string) bool {
	rest, below := strings.CutPrefix(path, parent)
	return below && rest != "" && (rest[0] == '.' || rest[0] == '[')
}
