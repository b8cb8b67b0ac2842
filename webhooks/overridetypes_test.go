package webhooks_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOverridesKeepTheTypesOfParameters(t *testing.T) {
	const on = `{failurePolicy: Ignore, match: {resources: [{group: apps, kinds: [Deployment]}]}, rego: "package a\nviolation contains \"x\" if input.parameters", `
	const at, as = "spec.overrides[0].parameters.", ", as the rules compare it to what they compare that to"
	tests := map[string]struct {
		parameters, override string
		want                 []string
	}{
		"the same":    {parameters: `{a: 1, b: x, c: [1], d: {e: true}}`, override: `{a: 2.5, b: "", c: [], d: {e: false}}`},
		"a text":      {parameters: `{a: 1}`, override: `{a: "1"}`, want: []string{at + "a: is a text where spec.parameters.a is a number: write a number" + as}},
		"a number":    {parameters: `{a: "8h"}`, override: `{a: 8}`, want: []string{at + "a: is a number where spec.parameters.a is a text: write a text" + as}},
		"deeper":      {parameters: `{a: {b: [x], c: 1}}`, override: `{a: {b: x, c: 1}}`, want: []string{at + "a.b: is a text where spec.parameters.a.b is a list: write a list" + as}},
		"an object":   {parameters: `{a: {b: 1}}`, override: `{a: true}`, want: []string{at + "a: is true or false where spec.parameters.a is an object: write an object" + as}},
		"one more":    {parameters: `{a: 1}`, override: `{b: x}`},
		"none at all": {parameters: `{}`, override: `{b: x}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := on + `parameters: ` + tc.parameters + `, overrides: [{namespaceSelector: {matchLabels: {a: b}}, parameters: ` + tc.override + `}]}`
			options := onlineOptions(t)
			response := gateOf(t, options).Validate(t.Context(), create(t, policy(spec)))
			if !response.Allowed {
				t.Fatalf("refused: %v", response.Result)
			}
			if diff := cmp.Diff(tc.want, response.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
