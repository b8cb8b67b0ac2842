package regotest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/regotest"
)

// timeout is far more than a test takes.
const timeout = 30 * time.Second

const rule = `package short_names

import data.lib.names

violation contains "has a long name" if names.long(input.object.metadata.name)

violation contains "has no name" if {
	not input.object.metadata.name
}
`

const lib = `package lib.names

long(name) if count(name) > 8

unused := 1
`

func TestRun(t *testing.T) {
	tests := map[string]struct {
		rego string
		want []string
		fail string
	}{
		"results": {
			rego: `package short_names_test
import data.short_names
named(name) := {"object": {"metadata": {"name": name}}}
test_short if count(short_names.violation) == 0 with input as named("short")
test_long if {
	found := short_names.violation with input as named("much-too-long")
	print(count(found))
	found == set()
}
test_each[name] if {
	some name in ["a", "abcdefghi"]
	count(short_names.violation) == 0 with input as named(name)
}
test_long if true
todo_test_later if false
test_errs if regex.match(input.x, input.y) with input as {"x": "(", "y": ""}`,
			want: []string{
				"4 short_names_test.test_short: true 0",
				"5 short_names_test.test_long: false 8 1",
				"10 short_names_test.test_each/a: true 0",
				"10 short_names_test.test_each/abcdefghi: false 12",
				"14 short_names_test.test_long#01: true 0",
				"15 short_names_test.todo_test_later: false 0",
				"16 short_names_test.test_errs: false 16",
			},
		},
		"the policy's own package": {
			rego: "package short_names\ntest_long if violation with input as {\"object\": {}}",
			want: []string{"2 short_names.test_long: true 0"},
		},
		"a builtin that policies may not call": {
			rego: "package x_test\nimport data.short_names\ntest_x if http.send({})", fail: "x_test.rego 3 builtin http.send is not allowed in a policy",
		},
		"Rego that does not parse": {rego: "package x_test\ntest_x if {", fail: "x_test.rego 2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			modules, faults := policies.Parse(rule, lib)
			if faults != nil {
				t.Fatal(faults)
			}
			suite, faults := regotest.Parse(modules, map[string]string{"x_test.rego": tc.rego})
			var results []regotest.Result
			if faults == nil {
				results, faults = suite.Run(t.Context(), suite.Tests(), regotest.NewCoverage(), timeout)
			}
			var failed string
			for _, fault := range faults {
				failed += fmt.Sprintln(fault.File, fault.Line, fault.Message)
			}
			if !strings.Contains(failed, tc.fail) || (failed == "") != (tc.fail == "") {
				t.Errorf("got %q, want %q", failed, tc.fail)
			}
			var got []string
			for _, r := range results {
				name := r.Name
				if r.Case != "" {
					name += "/" + r.Case
				}
				got = append(got, strings.TrimSpace(fmt.Sprintf("%d %s: %t %d %s", r.Line, name, r.Passed, r.FailedAt, r.Output)))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

// An engine and a suite cover the same lines.
func TestCoverage(t *testing.T) {
	modules, faults := policies.Parse(rule, lib)
	if faults != nil {
		t.Fatal(faults)
	}
	suite, faults := regotest.Parse(modules, map[string]string{
		"x_test.rego": "package x_test\nimport data.short_names\ntest_long if short_names.violation with input as {\"object\": {\"metadata\": {\"name\": \"much-too-long\"}}}",
	})
	if faults != nil {
		t.Fatal(faults)
	}
	coverage := regotest.NewCoverage()
	if results, faults := suite.Run(t.Context(), suite.Tests(), coverage, timeout); faults != nil || !results[0].Passed {
		t.Fatal(results, faults)
	}
	want := []regotest.Lines{
		{Module: "policy.rego", Count: 3, NotCovered: []int{7}},
		{Module: "libs/1.rego", Count: 2, NotCovered: []int{5}},
	}
	if diff := cmp.Diff(want, coverage.Of(modules)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestConcerns(t *testing.T) {
	modules, faults := policies.Parse(rule, lib)
	if faults != nil {
		t.Fatal(faults)
	}
	for text, want := range map[string]bool{
		"package x_test\nimport data.short_names":              true,
		"package x_test\nimport data.short_names as s":         true,
		"package x_test\ntest_x if data.short_names.violation": true,
		"package short_names":                                  true,
		"package x_test\nimport data.short_name":               false,
		"package short_names_test":                             false,
		"package":                                              false,
	} {
		if got := regotest.Concerns(modules, text); got != want {
			t.Errorf("%q: got %t", text, got)
		}
	}
}
