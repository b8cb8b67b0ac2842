package policies_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

// TestRulesOfOtherEngines runs rules as they are written for Gatekeeper and
// conftest, unchanged.
func TestRulesOfOtherEngines(t *testing.T) {
	pod := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"team"},"spec":{
		"containers":[{"name":"a","image":"evil/a"},{"name":"b","image":"evil/a"},{"name":"c","image":"good/c"}],"initContainers":[{"name":"i","image":"evil/i"}]}}`)
	tests := map[string]struct {
		rego string
		mods []func(*v1.WorkloadPolicySpec)
		want []string
	}{
		"Gatekeeper, with a library, parameters and details": {
			rego: `package k8sallowedrepos

import data.lib.images.starts

violation[{"msg": msg, "details": {"container": c.name}}] {
  c := input.review.object.spec[field][_]
  field == ["containers", "initContainers"][_]
  not starts(c.image, input.parameters.repos)
  msg := sprintf("image %v of %v is not allowed", [c.image, input.review.kind.kind])
}`,
			mods: []func(*v1.WorkloadPolicySpec){
				parameters(`{"repos":["good/"]}`),
				libs("package lib.images\n\nstarts(image, repos) {\n  any([ok | repo := repos[_]; ok := startswith(image, repo)])\n}"),
			},
			// Two containers, one message.
			want: []string{"Deny image evil/a of Pod is not allowed", "Deny image evil/i of Pod is not allowed"},
		},
		"Gatekeeper, without parameters": {
			rego: `package p
violation[{"msg": msg}] { max := object.get(input.parameters, "max", 2); n := count(input.review.object.spec.containers); n > max; msg := sprintf("%v > %v", [n, max]) }
violation[{"msg": "parameters are no object"}] { not is_object(input.parameters) }`,
			want: []string{"Deny 3 > 2"},
		},
		"Gatekeeper, with inventory": {
			rego: `package p
violation[{"msg": msg}] {
  other := data.inventory.namespace[ns][gv]["Pod"][name]
  re_match("^v1$", gv)
  not same(other, input.review)
  other.spec.host == "h"
  msg := sprintf("%v/%v has it", [ns, name])
}
same(a, b) { a.metadata.name == b.object.metadata.name; a.metadata.namespace == b.object.metadata.namespace }`,
			mods: []func(*v1.WorkloadPolicySpec){reading(podKind)},
			want: []string{"Deny x/other has it"},
		},
		"conftest": {
			rego: `package main

deny[msg] {
  input.kind == "Pod"
  c := input.spec.containers[_]
  startswith(c.image, "evil/")
  msg := sprintf("container %s", [c.name])
}

deny[{"msg": "an object", "metadata": {"id": "X-1"}}] { input.metadata.name == "p" }

warn[msg] { msg := "only a warning" }`,
			want: []string{"Deny an object", "Deny container a", "Deny container b", "Warn only a warning"},
		},
		"conftest, with names of rules that say more": {
			rego: `package main

import rego.v1

deny_images contains msg if { some c in input.spec.containers; denied(c.image); msg := sprintf("container %s", [c.name]) }

violation_names contains {"msg": "is called p"} if input.metadata.name == "p"

warn_of_3 contains "three" if count(input.spec.containers) == 3

denied(image) if startswith(image, deny_prefix)

deny_prefix := "evil/"

deny_all(image) if denied(image)

denials contains "not a rule of conftest" if true`,
			want: []string{"Deny container a", "Deny container b", "Deny is called p", "Warn three"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			mods := append(slices.Clone(tc.mods), func(spec *v1.WorkloadPolicySpec) {
				spec.Match.Resources = []v1.PolicyResources{{Kinds: []string{"Pod"}}}
			})
			engine := engineWith(t, policies.Options{}, policy("p", tc.rego, mods...))
			mustSet(t, engine.Inventory(), podKind, inventoryObject("team", "p", `{"host":"h"}`), inventoryObject("x", "other", `{"host":"h"}`))
			engine.Inventory().Synced(podKind)
			request := createRequest(pod)
			request.Kind = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
			verdict := engine.Snapshot().Judge(t.Context(), request)
			var got []string
			for _, v := range verdict.Violations {
				got = append(got, fmt.Sprintf("%s %s", v.Action, v.Message))
			}
			for _, e := range verdict.Errors {
				got = append(got, e.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			// A deletion shows what is deleted as the object.
			request.Operation, request.Object, request.OldObject = v1.OperationDelete, nil, pod
			deleting := policy("p", tc.rego, append(mods, func(spec *v1.WorkloadPolicySpec) {
				spec.Match.Operations = []v1.PolicyOperation{v1.OperationDelete}
			})...)
			if err := engine.Set(deleting); err != nil {
				t.Fatal(err)
			}
			if deleted := engine.Snapshot().Judge(t.Context(), request); len(deleted.Violations) != len(verdict.Violations) {
				t.Errorf("a deletion: got %v", deleted.Violations)
			}
		})
	}
}
