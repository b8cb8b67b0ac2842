package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

func compiledPolicy(t *testing.T, rego string, libs ...string) *Policy {
	t.Helper()
	policy := &v1.WorkloadPolicy{}
	policy.Name, policy.Spec.Rego, policy.Spec.Libs = "p", rego, libs
	policy.Spec.Match.Resources = []v1.PolicyResources{{Kinds: []string{"Pod"}}}
	compiled, err := Compile(policy)
	if err != nil {
		t.Fatalf("%s: %v", rego, err)
	}
	return compiled
}

func TestUnknownReads(t *testing.T) {
	for body, want := range map[string]string{
		"input.object.spec.paramters":                                    "",
		"input.parameters.anything":                                      "",
		"input.paramters.most > 1":                                       "4:3 input.paramters",
		`input["usr"].username == "a"`:                                   "4:3 input.usr",
		"not input.usr.username":                                         "4:7 input.usr",
		"input.user.name == 1":                                           "4:3 input.user.name",
		"input.namespace.label.a":                                        "4:3 input.namespace.label",
		"input.review.objct.metadata":                                    "4:3 input.review.objct",
		"input.review.object.metadata":                                   "",
		"input.review.kind.kind == 1":                                    "",
		"input.review.kind.name == 1":                                    "4:3 input.review.kind.name",
		"input.review.userInfo.user == 1":                                "4:3 input.review.userInfo.user",
		"input.review.namespaceObject.labels":                            "4:3 input.review.namespaceObject.labels",
		"input.review.requestKind.kind == 1":                             "",
		"input.review.requestKind.resource == 1":                         "4:3 input.review.requestKind.resource",
		"input.review._unstable.namespace.metadata.labels.a":             "",
		"input.review._unstable.namespaces":                              "4:3 input.review._unstable.namespaces",
		`input.user.extra["a"]`:                                          "",
		"some x in [1]; input[x].y":                                      "",
		"some x in [1]; input.review[x].y":                               "",
		"x := {y | y := input.paramters.a[_]}; count(x) > 0":             "4:18 input.paramters",
		"count(input.revew.object) > 0; input.oldObjct":                  "4:9 input.revew; 4:34 input.oldObjct",
		`object.get(input, "parmeters", {}) == {}`:                       "4:3 input.parmeters",
		`object.get(input, "parameters", {}) == {}`:                      "",
		`object.get(input, ["review", "objct"], {}) == {}`:               "4:3 input.review.objct",
		"r := input.review; r.objct.metadata":                            "4:22 input.review.objct",
		"f(input.review)":                                                "12:3 input.review.uzer",
		"data.inventry.cluster":                                          "4:3 data.inventry",
		"data.lib.foo.bar":                                               "4:3 data.lib.foo",
		"data.lib.known.bar":                                             "4:3 data.lib.known.bar",
		"data.lib.known.yes":                                             "",
		"data.p.halper":                                                  "4:3 data.p.halper",
		"data.p.h(1)":                                                    "",
		"data.penstock.wrkload.containers":                               "4:3 data.penstock.wrkload",
		"data.parameters.x":                                              "4:3 data.parameters",
		"workload.contaners[_]":                                          "4:3 data.penstock.workload.contaners",
		"some c in workload.containers; c.spec.imagee":                   "",
		"g(workload.devices[_])":                                         "16:3 workload.devices[_].amuonts",
		"g(workload.devices[_]); g(workload.roles[_])":                   "16:3 workload.devices[_].amuonts",
		"k(workload.devices[_]); k(workload.containers[_])":              "",
		"k(workload.runs[_])":                                            "20:3 workload.runs[_].spec",
		"count(workload.unsound_devices) > 0":                            "",
		"h(1) with input as {\"parmeters\": 1}; input.parmeters":         "",
		"every c in input.objekt.spec.containers { c.image != input.x }": "4:14 input.objekt; 4:56 input.x",
	} {
		rego := "package p\nh(x) if x\nviolation contains \"x\" if {\n  " + body + "\n}\nimport data.penstock.workload\nimport data.lib.known\nuses if known.yes\nuses if workload.roles\n\nf(r) if {\n  r.uzer\n}\n\ng(d) if {\n  d.amuonts\n}\n\nk(c) if {\n  c.spec\n}"
		var got []string
		for _, one := range compiledPolicy(t, rego, "package lib.known\nyes := true").UnknownReads() {
			got = append(got, fmt.Sprintf("%d:%d %s", one.Line, one.Column, one.Path()))
		}
		if diff := cmp.Diff(want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

func TestUnknownReadsOfLibsAndImports(t *testing.T) {
	policy := compiledPolicy(t, "package p\nimport input.revieww as r\nimport data.lib.a\nviolation contains \"x\" if { r.object; a.b }",
		"package lib.a\nb if input.paramters.c")
	var got []string
	for _, one := range policy.UnknownReads() {
		got = append(got, fmt.Sprintf("%s:%d %s", one.Module(), one.Line, one.Path()))
	}
	if diff := cmp.Diff([]string{"policy.rego:4 input.revieww", "libs/1.rego:2 input.paramters"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestParameterReads(t *testing.T) {
	for body, want := range map[string]string{
		"input.object.spec.a > 1":                                    "",
		"input.parameters.a > input.parameters.b.c":                  "a b",
		`input.parameters["a"]`:                                      "a",
		`object.get(input.parameters, "a", 1) > 1`:                   "a",
		`object.get(input.parameters, ["a", "b"], 1) > 1`:            "a",
		`object.get(input.parameters, "a", input.parameters.b) > 1`:  "a b",
		`count(object.get(input.parameters, "a", [])) > 1`:           "a",
		"p := input.parameters; p.a > p.b":                           "a b",
		`p := input.parameters; object.get(p, "a", 1)`:               "a",
		"p := input.parameters; h(p)":                                "unknown",
		"x := [y | p := input.parameters; y := p.a]; x":              "a",
		"some k; input.parameters[k] == 1":                           "unknown",
		"some k, v in input.parameters; k != v":                      "unknown",
		`k := "a"; input.parameters[k]`:                              "unknown",
		`k := "a"; object.get(input.parameters, k, 1)`:               "unknown",
		"h(input.parameters)":                                        "unknown",
		"h(input)":                                                   "unknown",
		`h(1) with input.parameters as {"b": 1}`:                     "unknown",
		"some k; input[k].a":                                         "unknown",
		`object.get(input, "parameters", {}).a`:                      "unknown",
		"every c in input.parameters.cs { c != input.parameters.d }": "cs d",
	} {
		rego := "package p\nh(x) if x\nviolation contains \"x\" if {\n  " + body + "\n}"
		names, known := compiledPolicy(t, rego).ParameterReads()
		got := strings.Join(names, " ")
		if !known {
			got = "unknown"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}
