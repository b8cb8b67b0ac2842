package webhooks_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A typo in a condition would have the policy asked about nothing.
func TestNamesInConditionsThatAreNotThere(t *testing.T) {
	const (
		pods        = `{kinds: [Pod]}`
		custom      = `{group: example.com, kinds: [Widget]}`
		deployments = `{group: apps, kinds: [Deployment], subresources: ["", scale]}`
		jobs        = `{group: penstock.dev, kinds: [TrainingJob]}`
	)
	tests := map[string]struct {
		on, expression, more, want string
	}{
		"what is there":                     {on: pods, expression: "has(object.spec.hostNetwork) && object.spec.hostNetwork"},
		"a field, in has":                   {on: pods, expression: "has(object.spec.hostnetwork) && object.spec.hostnetwork == true", want: "object.spec.hostnetwork: write object.spec.hostNetwork"},
		"a field of containers":             {on: pods, expression: "object.spec.containers.exists(c, has(c.resorces))", want: "c.resorces: write c.resources"},
		"an optional field":                 {on: pods, expression: "object.spec.?hostNetwrk.orValue(false) == true", want: "object.spec.hostNetwrk: write object.spec.hostNetwork"},
		"a field of the metadata":           {on: custom, expression: "has(object.metdata.labels)", want: "object.metdata: write object.metadata"},
		"a field of who knows what":         {on: custom, expression: "has(object.spec.hostnetwork)"},
		"a field of one of the kinds":       {on: `{kinds: [Pod, ReplicationController]}`, expression: "has(object.spec.template)"},
		"a field of Scales":                 {on: deployments, expression: "has(object.spec.replicas) || has(object.spec.template)"},
		"a field of neither":                {on: deployments, expression: "has(object.spec.templates)", want: "object.spec.templates: write object.spec.template"},
		"a field of ours":                   {on: jobs, expression: "has(object.spec.runPolicy.suspnd)", want: "object.spec.runPolicy.suspnd: write object.spec.runPolicy.suspend"},
		"a field of ours and of upstream's": {on: jobs, more: "upstreamKinds: Judge,", expression: "has(object.spec.runPolicy.suspnd)"},
		"a label":                           {on: pods, expression: "has(object.metadata.labels) && 'teem' in object.metadata.labels"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expression, err := json.Marshal(tc.expression)
			if err != nil {
				t.Fatal(err)
			}
			request := create(t, policy(`{failurePolicy: Ignore, match: {resources: [`+tc.on+`]}, matchConditions: [{name: a, expression: `+string(expression)+`}], `+tc.more+` rego: "package a\nviolation contains \"x\" if input.object.metadata.labels.a"}`))
			response := gateOf(t, onlineOptions(t)).Validate(t.Context(), request)
			var want []string
			if tc.want != "" {
				want = []string{"spec.matchConditions[0].expression: objects of the kinds that the policy matches have no " + tc.want}
			}
			if diff := cmp.Diff(want, response.Warnings); diff != "" || !response.Allowed {
				t.Errorf("causes %v, warnings (-want +got):\n%s", causesOf(response), diff)
			}
		})
	}
}

// What other engines have as a text may be an object here, which equals no text.
func TestObjectsComparedToTexts(t *testing.T) {
	const namespace = "spec.rego: 2:29: rego_type_error: input.namespace is an object, and never \"team\": write input.namespace.name"
	for body, want := range map[string][]string{
		`input.namespace == "team"`:                     {namespace},
		`"team" != input.namespace`:                     {namespace},
		`input.namespace in {"team", "teams"}`:          {namespace},
		`ns := input.namespace; not ns == "team"`:       {strings.Replace(namespace, "2:29", "2:52", 1)},
		`input.review.userInfo == "jo"`:                 {"spec.rego: 2:29: rego_type_error: input.review.userInfo is an object, and never \"jo\": write input.review.userInfo.username"},
		`input.review.kind == "Pod"`:                    {"spec.rego: 2:29: rego_type_error: input.review.kind is an object, and never \"Pod\": write input.review.kind.kind"},
		`input.namespace.name == "team"`:                nil,
		`input.review.namespace == "team"`:              nil,
		`input.namespace == input.parameters.namespace`: nil,
		`input.namespace.labels["a"] in ["team"]`:       nil,
	} {
		rego, err := json.Marshal("package a\nviolation contains \"x\" if { " + body + " }")
		if err != nil {
			t.Fatal(err)
		}
		more := ""
		if strings.Contains(body, "parameters") {
			more = ", parameters: {namespace: a}"
		}
		request := create(t, policy(`{failurePolicy: Ignore, match: {resources: [{group: example.com, kinds: [Widget]}]}, rego: `+string(rego)+more+`}`))
		response := gateOf(t, onlineOptions(t)).Validate(t.Context(), request)
		if diff := cmp.Diff(want, response.Warnings); diff != "" || !response.Allowed {
			t.Errorf("%s: allowed %t, warnings (-want +got):\n%s", body, response.Allowed, diff)
		}
	}
}
