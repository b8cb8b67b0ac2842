package webhooks_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A rule on deletions that is never asked about any would be off without a word.
func TestOperationsThatAreNeverAskedAbout(t *testing.T) {
	tests := map[string]struct {
		more, body string
		want       []string
	}{
		"deletions, by default": {body: `input.operation == "DELETE"`, want: []string{
			"spec.match.operations: the rule looks for DELETE (spec.rego, line 2), and the policy is asked about CREATE and UPDATE alone, as it is when operations are left out: write operations: [CREATE, UPDATE, DELETE], or those of them that it is for",
		}},
		"deletions and connections of a policy on creations": {more: ", operations: [CREATE]", body: `input.review.operation in {"CREATE", "DELETE", "CONNECT"}`, want: []string{
			"spec.match.operations: the rule looks for DELETE and CONNECT (spec.rego, line 2), and the policy is asked about CREATE alone: write operations: [CREATE, DELETE, CONNECT], or those of them that it is for",
		}},
		"deletions, which are asked about": {more: `, exclude: {users: ["system:serviceaccount:kube-system:namespace-controller"]}, operations: [CREATE, DELETE]`, body: `input.operation == "DELETE"`},
		"deletions, which are left out":    {body: `input.operation != "DELETE"`},
		"updates":                          {body: `input.operation == "UPDATE"`},
		"the old object alone": {body: "input.oldObject.metadata.labels.locked", want: []string{
			"spec.match.operations: the rule looks at input.oldObject and never at the object, and the policy is asked about CREATE and UPDATE alone, as it is when operations are left out: write operations: [DELETE] if it is for deletions, [UPDATE] if it is for updates",
		}},
		"the old object alone, of creations": {more: ", operations: [CREATE]", body: "input.oldObject.metadata.labels.locked", want: []string{
			"spec.match.operations: the rule looks at input.oldObject and never at the object, and the policy is asked about CREATE alone, with which there is none: write operations: [DELETE] if it is for deletions, [UPDATE] if it is for updates",
		}},
		"the old object alone, of creations and deletions": {more: `, exclude: {users: ["system:serviceaccount:kube-system:namespace-controller"]}, operations: [CREATE, DELETE]`, body: "input.oldObject.metadata.labels.locked"},
		"the old object alone, of updates and deletions":   {more: `, exclude: {users: ["system:serviceaccount:kube-system:namespace-controller"]}, operations: [UPDATE, DELETE]`, body: "input.oldObject.metadata.labels.locked"},
		"the old object alone, of updates":                 {more: ", operations: [UPDATE]", body: "input.oldObject.metadata.labels.locked"},
		"both objects":                                     {body: "input.oldObject.metadata.labels.locked != input.object.metadata.labels.locked"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rego, err := json.Marshal("package a\nviolation contains \"x\" if { " + tc.body + " }")
			if err != nil {
				t.Fatal(err)
			}
			request := create(t, policy(`{failurePolicy: Ignore, match: {resources: [{kinds: [Pod]}]`+tc.more+`}, rego: `+string(rego)+`}`))
			response := gateOf(t, onlineOptions(t)).Validate(t.Context(), request)
			if diff := cmp.Diff(tc.want, response.Warnings); diff != "" || !response.Allowed {
				t.Errorf("allowed: %t, warnings (-want +got):\n%s", response.Allowed, diff)
			}
		})
	}
}

// A comparison with what is no operation holds for no request.
func TestOperationsThatAreNone(t *testing.T) {
	const fix = ": there are CREATE, UPDATE, DELETE, CONNECT"
	tests := map[string]struct {
		rego string
		want []string
	}{
		"a letter that is missing":  {`violation contains "x" if input.operation == "DELET"`, []string{`spec.rego: line 2: the operation is never "DELET": write "DELETE"`}},
		"in small letters":          {`violation contains "x" if input.review.operation == "create"`, []string{`spec.rego: line 2: the operation is never "create": write "CREATE"`}},
		"what another engine says":  {`violation contains "x" if input.operation == "PATCH"`, []string{`spec.rego: line 2: the operation is never "PATCH"` + fix}},
		"among others":              {`violation contains "x" if input.operation in {"CREATE", "UPDATED"}`, []string{`spec.rego: line 2: the operation is never "UPDATED": write "UPDATE"`}},
		"what is left out":          {`violation contains "x" if { input.operation != "UPDAT"; not input.operation == "CREAT" }`, []string{`spec.rego: line 2: the operation is never "CREAT": write "CREATE"`, `spec.rego: line 2: the operation is never "UPDAT": write "UPDATE"`}},
		"by a variable, a function": {"violation contains \"x\" if { op := input.operation; made(op) }\nmade(op) if op == \"MAKE\"", []string{`spec.rego: line 3: the operation is never "MAKE"` + fix}},
		"one that is":               {`violation contains "x" if { input.operation in ["CREATE", "UPDATE"]; input.operation == "UPDATE" }`, nil},
		"the audit of Gatekeeper":   {`violation contains "x" if input.review.operation == ""`, nil},
		"in small letters, made so": {`violation contains "x" if lower(input.operation) == "create"`, nil},
		"a part of it":              {`violation contains "x" if startswith(input.operation, "CRE")`, nil},
		"in a message":              {`violation contains msg if { input.object.metadata.labels.a == "b"; msg := sprintf("%s of it", [input.operation]) }`, nil},
		"by a table":                {`violation contains "x" if {"CREATE": "made", "UPDATE": "changed"}[input.operation] == "made"`, nil},
		"of the object":             {`violation contains "x" if input.object.spec.operation == "DELET"`, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rego, err := json.Marshal("package a\n" + tc.rego)
			if err != nil {
				t.Fatal(err)
			}
			request := create(t, policy(`{failurePolicy: Ignore, match: {resources: [{group: example.com, kinds: [Widget]}]}, rego: `+string(rego)+`}`))
			response := gateOf(t, onlineOptions(t)).Validate(t.Context(), request)
			if diff := cmp.Diff(tc.want, response.Warnings); diff != "" || !response.Allowed {
				t.Errorf("causes %v, warnings (-want +got):\n%s", causesOf(response), diff)
			}
		})
	}
}

// A policy on connections that is asked about creations and updates would be off
// as well.
func TestSubresourcesThatAreNeverAskedAbout(t *testing.T) {
	const byDefault = "and the policy is asked about CREATE and UPDATE alone"
	tests := map[string]struct {
		match string
		want  []string
	}{
		"exec, by default": {match: `{resources: [{kinds: [Pod], subresources: [exec, attach]}]}`, want: []string{
			"spec.match.resources[0].subresources[0]: subresource exec is never judged: it comes with CONNECT, " + byDefault + ": write operations: [CONNECT]",
			"spec.match.resources[0].subresources[1]: subresource attach is never judged: it comes with CONNECT, " + byDefault + ": write operations: [CONNECT]",
		}},
		"portforward, beside the pod": {match: `{resources: [{kinds: [Pod], subresources: ["", portforward]}]}`, want: []string{
			"spec.match.resources[0].subresources[1]: subresource portforward is never judged: it comes with CONNECT, " + byDefault + ": write operations: [CREATE, UPDATE, CONNECT]",
		}},
		"exec, by its operation": {match: `{resources: [{kinds: [Pod], subresources: [exec, attach]}], operations: [CONNECT]}`},
		"logs": {match: `{resources: [{kinds: [Pod], subresources: [log]}]}`, want: []string{
			"spec.match.resources[0].subresources[0]: subresource log is never judged: it is only read, and the API server asks about no reads: leave it out",
		}},
		"connections to no subresource": {match: `{resources: [{kinds: [Pod]}], operations: [CONNECT]}`, want: []string{
			"spec.match.operations: connections come by subresources, of which the policy names none: name them, as in subresources: [exec, attach, portforward, proxy], or leave CONNECT out",
		}},
		"the deletion of a scale": {match: `{resources: [{group: apps, kinds: [Deployment], subresources: [scale]}], operations: [DELETE]}`, want: []string{
			"spec.match.resources[0].subresources[0]: subresource scale is never judged: it comes with UPDATE, and the policy is asked about DELETE alone: write operations: [UPDATE]",
		}},
		"a resource with it": {match: `{resources: [{group: apps, kinds: [Deployment], subresources: ["", deployments/scale]}]}`, want: []string{
			"spec.match.resources[0].subresources[1]: no subresource is called deployments/scale: name it without the resource: write \"scale\"",
		}},
		"everything": {match: `{resources: [{group: "*", kinds: ["*"], subresources: ["", "*"]}], exclude: {groups: ["system:serviceaccounts:kube-system"]}, operations: [CREATE, UPDATE, DELETE, CONNECT]}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := create(t, policy(`{failurePolicy: Ignore, match: `+tc.match+`, rego: "package a\nviolation contains \"x\" if input.object.metadata.labels.never"}`))
			response := gateOf(t, onlineOptions(t)).Validate(t.Context(), request)
			if diff := cmp.Diff(tc.want, response.Warnings); diff != "" || !response.Allowed {
				t.Errorf("allowed: %t, warnings (-want +got):\n%s", response.Allowed, diff)
			}
		})
	}
}
