package webhooks_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A typo in what a rule reads would turn the rule off without a word.
func TestWhatRulesReadAndIsNotThere(t *testing.T) {
	const (
		pods   = `{kinds: [Pod]}`
		custom = `{group: example.com, kinds: [Widget]}`
	)
	tests := map[string]struct {
		on, body, more string
		// refused and warned are what is said.
		refused, warned []string
	}{
		"what is there":                   {on: pods, body: "input.object.spec.a == input.parameters.b; input.user.username; input.review.object; input.spec"},
		"a parameter's parent":            {on: pods, body: "input.paramters.x", refused: []string{"2:29: rego_type_error: input.paramters is never there: write input.parameters"}},
		"the user":                        {on: pods, body: "not input.usr.username", refused: []string{"2:33: rego_type_error: input.usr is never there: write input.user"}},
		"a member of the user":            {on: custom, body: "input.user.name", refused: []string{"2:29: rego_type_error: input.user.name is never there: there are extra, groups, uid, username"}},
		"a member of the review":          {on: custom, body: "input.review.objct", refused: []string{"2:29: rego_type_error: input.review.objct is never there: write input.review.object"}},
		"as other engines call it":        {on: pods, body: "input.request.object", refused: []string{"2:29: rego_type_error: input.request is never there: write input.review"}},
		"a member of the object at top":   {on: pods, body: "input.sepc.containers", refused: []string{"2:29: rego_type_error: input.sepc is never there: write input.spec"}},
		"a member that other kinds have":  {on: pods, body: "input.webhooks", refused: []string{"2:29: rego_type_error: input.webhooks is never there: there are namespace, object, oldObject, operation, parameters, review, user, and at the top the members of the object"}},
		"a member of the kind":            {on: `{group: admissionregistration.k8s.io, kinds: [ValidatingWebhookConfiguration]}`, body: "input.webhooks"},
		"a member of one of the kinds":    {on: `{kinds: [Pod, ConfigMap]}`, body: "input.binaryData"},
		"a member of who knows what":      {on: custom, body: "input.webhooks"},
		"a member of who knows what, too": {on: `{group: "*", kinds: ["*"]}`, body: "input.webhooks"},
		"most likely a typo": {
			on: custom, body: "input.users",
			warned: []string{"spec.rego: 2:29: rego_type_error: input.users is there only if the object has a member users: otherwise write input.user"},
		},
		"a parameter that is read":       {on: pods, body: "input.parameters.maxGPUs", more: "parameters: {maxGPUs: 8},"},
		"a parameter that may be read":   {on: pods, body: "some k; input.parameters[k]", more: "parameters: {maxGpu: 8},"},
		"a parameter that is not read":   {on: pods, body: "input.parameters.maxGPUs", more: "parameters: {maxGpu: 8},", warned: []string{"spec.parameters.maxGpu: is read by no rule (rules read: maxGPUs)"}},
		"a parameter, and none are read": {on: pods, body: "input.object", more: "parameters: {maxGpu: 8},", warned: []string{"spec.parameters.maxGpu: is read by no rule (the rules read no parameters)"}},
		"a parameter of an override": {
			on: pods, body: "input.parameters.maxGPUs", more: "parameters: {maxGPUs: 8}, overrides: [{namespaceSelector: {matchLabels: {a: b}}, parameters: {maxGpus: 4}}],",
			warned: []string{"spec.overrides[0].parameters.maxGpus: is read by no rule (rules read: maxGPUs)"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rego, err := json.Marshal("package a\nviolation contains \"x\" if { " + tc.body + " }")
			if err != nil {
				t.Fatal(err)
			}
			request := create(t, policy(`{failurePolicy: Ignore, match: {resources: [`+tc.on+`]}, `+tc.more+` rego: `+string(rego)+`}`))
			response := gateOf(t, onlineOptions(t)).Validate(t.Context(), request)
			var want []string
			for _, one := range tc.refused {
				want = append(want, "spec.rego: Invalid value: "+one)
			}
			if diff := cmp.Diff(want, causesOf(response)); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.warned, response.Warnings); diff != "" {
				t.Errorf("warned (-want +got):\n%s", diff)
			}
		})
	}
}
