package policies

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/penstock-dev/penstock/policies/library"
)

func TestLibraryIsCompiledInParts(t *testing.T) {
	const head = "package p\nimport data.penstock.workload\n"
	for name, tc := range map[string]struct {
		rego string
		want []string // nil for all of it
	}{
		"a value, with what it needs":     {head + "violation contains \"x\" if workload.pods_total > 3", []string{"pods_total", "roles"}},
		"a function":                      {head + "violation contains \"x\" if workload.quantity(\"1\") == 1", []string{"quantity"}},
		"by an alias":                     {"package p\nimport data.penstock.workload as w\nviolation contains \"x\" if w.quantity(\"1\") == 1", []string{"quantity"}},
		"by itself":                       {"package p\nimport data.penstock.workload.quantity\nviolation contains \"x\" if quantity(\"1\") == 1", []string{"quantity"}},
		"in full":                         {"package p\nviolation contains \"x\" if data.penstock.workload.quantity(\"1\") == 1", []string{"quantity"}},
		"a name that is told at run time": {head + "violation contains \"x\" if workload[input.parameters.name]", nil},
		"the whole":                       {head + "violation contains \"x\" if count(workload) > 0", nil},
		"all of data":                     {head + "violation contains \"x\" if { data[x].y; workload.quantity(\"1\") == 1 }", nil},
		"within a comprehension that is looked into": {head + "violation contains [x | x := workload.quantity(\"1\")][0] if true", []string{"quantity"}},
	} {
		module, err := ast.ParseModule(moduleName, tc.rego)
		if err != nil {
			t.Fatal(err)
		}
		got, all := map[string]bool{}, map[string]bool{}
		for file, part := range parsedLibrary().partFor(map[string]*ast.Module{moduleName: module}) {
			for _, rule := range part.Rules {
				got[ruleName(rule)] = true
			}
			for _, rule := range parsedLibrary().modules[file].Rules {
				all[ruleName(rule)] = true
			}
		}
		want := tc.want
		if want == nil {
			want = slices.Sorted(maps.Keys(all))
		}
		// What it needs, needs more.
		for _, name := range want {
			if !got[name] {
				t.Errorf("%s: %s is not compiled", name, name)
			}
		}
		if tc.want != nil && len(got) > len(all)/2 {
			t.Errorf("%s: %d of %d rules are compiled", name, len(got), len(all))
		}
	}
}

// TestPartsOfTheLibrarySayTheSame compiles every policy with all of the library,
// too, and judges the objects of all cases by both.
func TestPartsOfTheLibrarySayTheSame(t *testing.T) {
	loaded, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	objects := caseObjects(t)
	for i, policy := range loaded {
		part, err := Compile(policy)
		if err != nil {
			t.Fatal(err)
		}
		policy.Spec.Rego += "\nuses_all := data.penstock.workload\n"
		whole, err := Compile(policy)
		if err != nil {
			t.Fatal(err)
		}
		for at := i % 7; at < len(objects); at += 7 {
			with, without := findingsFor(t, part.rule, policy, objects[at], nil), findingsFor(t, whole.rule, policy, objects[at], nil)
			if diff := cmp.Diff(without, with, cmp.AllowUnexported(finding{})); diff != "" {
				t.Fatalf("%s of %v (-whole +part):\n%s", policy.Name, objects[at], diff)
			}
		}
	}
}
