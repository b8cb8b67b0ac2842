package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-dev/penstock/webhooks/validation"
)

func TestLookup(t *testing.T) {
	obj := contentOf(t, `
metadata: {annotations: {a.b/c: x}}
spec:
  nodeSelector: {example.com/pool: fast, plain: slow}
  roles:
  - {limits: {nvidia.com/gpu: 1}}
  - name: null`)
	tests := map[string]struct {
		want  any
		found bool
	}{
		"metadata.annotations[a.b/c]":             {want: "x", found: true},
		"metadata.annotations.a.b/c":              {want: "x", found: true},
		"spec.nodeSelector.example.com/pool":      {want: "fast", found: true},
		"spec.nodeSelector.plain":                 {want: "slow", found: true},
		"spec.roles[0].limits[nvidia.com/gpu]":    {want: int64(1), found: true},
		"spec.roles[1].name":                      {want: nil, found: true},
		"spec.roles[2].name":                      {},
		"spec.roles[-1]":                          {},
		"spec.roles.name":                         {},
		"spec.roles[0].limits[nvidia.com/gpu].to": {},
		"spec.absent[":                            {},
	}
	for path, tc := range tests {
		t.Run(path, func(t *testing.T) {
			got, found := validation.Lookup(obj, path)
			if found != tc.found || !cmp.Equal(got, tc.want) {
				t.Errorf("got %v, %v; want %v, %v", got, found, tc.want, tc.found)
			}
		})
	}
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"spec.roles[1].template", "a[b.c/d]", "a[", "[]", "..a", "a]b", ""} {
		f.Add(seed)
	}
	obj := map[string]any{"a": []any{map[string]any{"b.c": "d"}}, "": map[string]any{"": nil}}
	f.Fuzz(func(t *testing.T, path string) {
		validation.Lookup(obj, path)
		for _, step := range validation.ParsePath(path) {
			if !step.Bracketed && step.Key == "" {
				t.Errorf("%q has an empty step", path)
			}
		}
	})
}

func TestTolerated(t *testing.T) {
	invalid := func(path string) *field.Error { return field.Invalid(field.NewPath(path), nil, "is bad") }
	const stored = `
metadata: {name: long}
spec: {roles: [{name: Worker, image: a, args: [1]}], gang: {minAvailable: 9}}`
	tests := map[string]struct {
		old, obj string
		oldErrs  field.ErrorList
		errs     field.ErrorList
		want     field.ErrorList
	}{
		"a stored fault at an unchanged field is tolerated": {
			obj:     `spec: {roles: [{name: Worker, image: a, args: [2]}]}`,
			oldErrs: field.ErrorList{invalid("spec.roles[0].image")}, errs: field.ErrorList{invalid("spec.roles[0].image")},
		},
		"a stored fault at a changed field is not": {
			obj:     `spec: {roles: [{name: Worker, image: b}]}`,
			oldErrs: field.ErrorList{invalid("spec.roles[0].image")}, errs: field.ErrorList{invalid("spec.roles[0].image")},
			want: field.ErrorList{invalid("spec.roles[0].image")},
		},
		"a fault that the old object did not have is not": {
			obj:  stored,
			errs: field.ErrorList{invalid("metadata.name")}, want: field.ErrorList{invalid("metadata.name")},
		},
		"a fault of another type is not": {
			obj:     stored,
			oldErrs: field.ErrorList{invalid("metadata.name")},
			errs:    field.ErrorList{field.Required(field.NewPath("metadata.name"), "")},
			want:    field.ErrorList{field.Required(field.NewPath("metadata.name"), "")},
		},
		"a fault that moved down with its role is tolerated": {
			obj:     `spec: {roles: [{name: Master}, {name: Worker, image: a}]}`,
			oldErrs: field.ErrorList{invalid("spec.roles[0].image")}, errs: field.ErrorList{invalid("spec.roles[1].image")},
		},
		"a second twin is not tolerated for the sake of the first": {
			old:     `spec: {roles: [{name: Worker}, {name: Worker}]}`,
			obj:     `spec: {roles: [{name: Worker}, {name: Worker}, {name: Worker}]}`,
			oldErrs: field.ErrorList{invalid("spec.roles[1].name")},
			errs:    field.ErrorList{invalid("spec.roles[1].name"), invalid("spec.roles[2].name")},
			want:    field.ErrorList{invalid("spec.roles[2].name")},
		},
		"an absent field that stays absent is tolerated": {
			obj:     `spec: {roles: []}`,
			oldErrs: field.ErrorList{invalid("spec.runPolicy.backoffLimit")}, errs: field.ErrorList{invalid("spec.runPolicy.backoffLimit")},
		},
		"a fault without a field stands for the whole spec": {
			obj:     `{metadata: {name: other}, spec: {roles: [{name: Worker, image: b}]}}`,
			oldErrs: field.ErrorList{field.Invalid(nil, nil, "is bad")}, errs: field.ErrorList{field.Invalid(nil, nil, "is bad")},
			want: field.ErrorList{field.Invalid(nil, nil, "is bad")},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.old == "" {
				tc.old = stored
			}
			got := validation.Tolerated(tc.oldErrs, tc.errs, contentOf(t, tc.old), contentOf(t, tc.obj))
			if diff := cmp.Diff(words(tc.want), words(got)); diff != "" {
				t.Errorf("unexpected rest (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDistinct(t *testing.T) {
	at := func(path, detail string) *field.Error { return field.Invalid(field.NewPath(path), nil, detail) }
	needed := func(path, detail string) *field.Error { return field.Required(field.NewPath(path), detail) }
	twice := func(path string) *field.Error { return field.Duplicate(field.NewPath(path), nil) }
	twiceAndWhy := twice("spec.roles[1].name")
	twiceAndWhy.Detail = "join the two"
	tests := map[string]struct{ errs, want field.ErrorList }{
		"a rule on the struct repeats the invariant of its field": {
			errs: field.ErrorList{at("spec", "framework cannot change"), at("spec.framework", "framework cannot change")},
			want: field.ErrorList{at("spec.framework", "framework cannot change")},
		},
		"one fault twice": {
			errs: field.ErrorList{at("spec.a", "is bad"), at("spec.a", "is bad")},
			want: field.ErrorList{at("spec.a", "is bad")},
		},
		"the same words of two fields": {
			errs: field.ErrorList{at("spec.role", "is bad"), at("spec.roles[1]", "is bad")},
			want: field.ErrorList{at("spec.role", "is bad"), at("spec.roles[1]", "is bad")},
		},
		"the schema says less of the same fault": {
			errs: field.ErrorList{needed("spec.a", ""), twice("spec.roles[1]"), needed("spec.a", "add one"), twiceAndWhy},
			want: field.ErrorList{needed("spec.a", "add one"), twiceAndWhy},
		},
		"several faults of the schema alone": {
			errs: field.ErrorList{needed("spec.a", ""), needed("spec.b", ""), twice("spec.c[1]"), twice("spec.c[2]")},
			want: field.ErrorList{needed("spec.a", ""), needed("spec.b", ""), twice("spec.c[1]"), twice("spec.c[2]")},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(words(tc.want), words(validation.Distinct(tc.errs))); diff != "" {
				t.Errorf("unexpected rest (-want +got):\n%s", diff)
			}
		})
	}
}
