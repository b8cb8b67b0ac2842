package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReads(t *testing.T) {
	all := reads{user: true, namespace: true, review: true, options: true, document: true, managedFields: true}
	for body, want := range map[string]reads{
		`input.object.spec.roles[_].name`:                                     {},
		`input.object.metadata.labels.team`:                                   {},
		`input.object.metadata.managedFields[_]`:                              {managedFields: true},
		`input.object.metadata`:                                               {managedFields: true},
		`input.object`:                                                        {managedFields: true},
		`walk(input.object, [_, _])`:                                          {managedFields: true},
		`k := "metadata"; input.oldObject[k]`:                                 {managedFields: true, write: true},
		`k := "managedFields"; input.object.metadata[k]`:                      {managedFields: true},
		`m := input.object.metadata; m.managedFields`:                         {managedFields: true},
		`object.get(input.object, ["metadata", "managedFields"], 1) == 1`:     {managedFields: true},
		`input.review.object.metadata.name`:                                   {review: true},
		`input.review.oldObject.metadata`:                                     {review: true, managedFields: true, write: true},
		`input.review.operation == "CREATE"`:                                  {review: true},
		`input.review.dryRun`:                                                 {review: true},
		`input.review.options.fieldManager`:                                   {review: true, options: true, write: true},
		`input.review.userInfo.username`:                                      {review: true, user: true, write: true},
		`input.review.namespaceObject.metadata`:                               {review: true, namespace: true},
		`input.review`:                                                        {review: true, user: true, namespace: true, options: true, managedFields: true},
		`input.metadata.name`:                                                 {document: true},
		`input.metadata`:                                                      {document: true, managedFields: true},
		`input.user`:                                                          {user: true, write: true},
		`input.namespace.labels.a`:                                            {namespace: true},
		`input`:                                                               all,
		`input["object"].spec`:                                                {},
		`some x in ["object"]; input[x]`:                                      all,
		`is_object(input)`:                                                    all,
		`data.p.helper(input)`:                                                all,
		`r := input.review; r.object.spec.a`:                                  {review: true},
		`r := input.review; r.userInfo.username`:                              {review: true, user: true, write: true},
		`o := input; o.object.spec.a`:                                         {},
		`o := input; o.user.username`:                                         {user: true, write: true},
		`data.p.bad(input)`:                                                   {},
		`data.p.who(input) == "a"`:                                            {user: true, write: true},
		`data.p.is_update(input.review)`:                                      {review: true},
		`object.get(input, "parameters", {}).a`:                               {},
		`object.get(input, ["user", "username"], "") == "a"`:                  {user: true, write: true},
		`object.get(input, "user", {}).username`:                              {user: true, write: true},
		"data.p.reviewed.userInfo }\nreviewed := input.review if { true":      {review: true, user: true, write: true},
		"data.p.reviewed.object.spec.a }\nreviewed := input.review if { true": {review: true},
		`some k, v in input; k == "user"; v`:                                  all,
		`count([x | x := input.parameters[_]]) > 0; input.operation`:          {},
	} {
		compiled, faults := compileRule("package p\nimport data.penstock.workload\nhelper(x) if x\nbad(i) if i.object.spec.a\nwho(i) := i.user.username\nis_update(review) if review.operation == \"UPDATE\"\nviolation contains \"x\" if { " + body + " }")
		if faults != nil {
			t.Errorf("%s: %v", body, faults)
			continue
		}
		if diff := cmp.Diff(want, compiled.reads, cmp.AllowUnexported(reads{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

func TestManagedFieldsAreSkippedOnlyWhenAsked(t *testing.T) {
	const text = `{"spec":{"metadata":{"managedFields":[1]},"managedFields":2},"metadata":{"managedFields":[{"a":1}],"name":"x","labels":{"managedFields":"y"}},"managedFields":3}`
	whole, err := ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	without, err := parseJSON([]byte(text), true)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"metadata.managedFields":        false,
		"metadata.name":                 true,
		"metadata.labels.managedFields": true,
		"spec.metadata.managedFields":   true,
		"spec.managedFields":            true,
		"managedFields":                 true,
	} {
		if valueAt(whole, path) == nil {
			t.Errorf("%s is missing from the whole", path)
		}
		if got := valueAt(without, path) != nil; got != want {
			t.Errorf("%s is there: %t, want %t", path, got, want)
		}
	}
}
