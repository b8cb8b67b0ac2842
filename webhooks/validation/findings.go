package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// findings collects the faults of one thing.
type findings struct {
	errs field.ErrorList
}

func (f *findings) invalid(path *field.Path, value any, detail string) {
	f.errs = append(f.errs, field.Invalid(path, value, detail))
}

func (f *findings) required(path *field.Path, detail string) {
	f.errs = append(f.errs, field.Required(path, detail))
}

func (f *findings) forbidden(path *field.Path, detail string) {
	f.errs = append(f.errs, field.Forbidden(path, detail))
}

func (f *findings) duplicate(path *field.Path, value any, detail string) {
	fault := field.Duplicate(path, value)
	fault.Detail = detail
	f.errs = append(f.errs, fault)
}

// between holds a number to a range.
func (f *findings) between(path *field.Path, value, least, most int64, fix string) {
	if value < least || value > most {
		f.invalid(path, value, fmt.Sprintf("must be from %d to %d: %s", least, most, fix))
	}
}

func (f *findings) atLeast(path *field.Path, value, least int64, fix string) {
	if value < least {
		f.invalid(path, value, fmt.Sprintf("must be at least %d: %s", least, fix))
	}
}

// label holds a name to the form of a DNS label, and subdomain to that of
// several with dots between them. What is empty is left to others.
func (f *findings) label(path *field.Path, value string) {
	if value != "" && len(validation.IsDNS1123Label(value)) > 0 {
		f.invalid(path, value, "must be a DNS label: use at most 63 lower-case letters, digits and -, with a letter or digit at both ends")
	}
}

func (f *findings) subdomain(path *field.Path, value string) {
	if value != "" && len(validation.IsDNS1123Subdomain(value)) > 0 {
		f.invalid(path, value, "must be the name of an object: use at most 253 lower-case letters, digits, - and dots, with a letter or digit at both ends")
	}
}

// named is subdomain of a name that must be there.
func (f *findings) named(path *field.Path, value, what string) {
	if value == "" {
		f.required(path, "name "+what)
	}
	f.subdomain(path, value)
}

const keyForm = "must be a key: write it as team or example.com/team, of letters, digits, -, _ and dots, with a letter or digit at both ends"

func (f *findings) key(path *field.Path, value string) {
	if len(validation.IsQualifiedName(value)) > 0 {
		f.invalid(path, value, keyForm)
	}
}

func (f *findings) labelValue(path *field.Path, value string) {
	if len(validation.IsValidLabelValue(value)) > 0 {
		f.invalid(path, value, "must be the value of a label: use at most 63 letters, digits, -, _ and dots, with a letter or digit at both ends")
	}
}

func (f *findings) labels(path *field.Path, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if len(validation.IsQualifiedName(key)) > 0 {
			f.invalid(path.Key(key), key, keyForm)
		}
		f.labelValue(path.Key(key), labels[key])
	}
}

// relative holds a path to what lies below the place that it starts from.
func (f *findings) relative(path *field.Path, value string) {
	if strings.HasPrefix(value, "/") || slices.Contains(strings.Split(value, "/"), "..") || strings.HasPrefix(value, "..") {
		f.invalid(path, value, "must be a path without a slash at its start and without ..: write it as data/train")
	}
}

// oneOf holds a word to a set; the empty word is left to its default.
func oneOf[T ~string](f *findings, path *field.Path, value T, allowed ...T) {
	if value == "" || slices.Contains(allowed, value) {
		return
	}
	f.errs = append(f.errs, notAmong(path, value, texts(allowed)))
}

// notAmong is the fault of a word that is none of a set.
func notAmong[T ~string](path *field.Path, value T, allowed []string) *field.Error {
	fault := field.NotSupported(path, value, allowed)
	fault.Detail = choice(string(value), allowed)
	return fault
}

func choice(value string, allowed []string) string {
	names := strings.Join(allowed, ", ")
	if last := len(allowed) - 1; last > 0 {
		names = strings.Join(allowed[:last], ", ") + " or " + allowed[last]
	}
	if near := Nearest(value, allowed); near != "" {
		return fmt.Sprintf("must be %s: did you mean %s?", names, near)
	}
	return fmt.Sprintf("must be %s: write one of these, or leave it out", names)
}

// exactlyOne counts what is set of alternatives, of which one must be.
func (f *findings) exactlyOne(path *field.Path, what string, set []string) {
	switch {
	case len(set) == 0:
		f.required(path, what)
	case len(set) > 1:
		f.forbidden(path.Child(set[1]), fmt.Sprintf("must not stand beside %s: keep the one that is meant", set[0]))
	}
}

// members gives the names of what is set, in a fixed order.
func members(all ...member) []string {
	var set []string
	for _, m := range all {
		if m.set {
			set = append(set, m.name)
		}
	}
	return set
}

type member struct {
	name string
	set  bool
}
