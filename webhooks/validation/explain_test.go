package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-dev/penstock/webhooks/validation"
)

// What the API server's code says of values that v1's schema does not allow
// gets its field and a fix.
func TestExplain(t *testing.T) {
	schema := trainingJobSchema(t)
	const worker = `roles: [{name: Worker, template: {spec: {containers: [{name: jax, image: a}]}}}]`
	tests := map[string]struct {
		spec string
		want []string
	}{
		"too small": {`{framework: JAX, runPolicy: {backoffLimit: -1}, ` + worker + `}`,
			[]string{"spec.runPolicy.backoffLimit: Invalid value: -1: must be at least 0: raise it, or leave the field out"}},
		"more than the bits hold": {`{framework: JAX, runPolicy: {backoffLimit: 99999999999}, ` + worker + `}`,
			[]string{"spec.runPolicy.backoffLimit: Invalid value: is too large or too small a number: write one of 32 bits, or leave the field out"}},
		"a word in place of a number": {`{framework: JAX, runPolicy: {backoffLimit: many}, ` + worker + `}`,
			[]string{"spec.runPolicy.backoffLimit: Invalid value: must be of type integer, and is of type string: write a number, without quotes"}},
		"a word that is none of a set": {`{framework: JAX, runPolicy: {cleanPodPolicy: Runnin}, ` + worker + `}`,
			[]string{`spec.runPolicy.cleanPodPolicy: Unsupported value: "Runnin": must be All, Running or None: did you mean Running?`}},
		"no template": {`{framework: JAX, roles: [{name: Worker}]}`,
			[]string{"spec.roles[0].template: Required value: the pods are made of it: write their template, with the containers in its spec"}},
		"a fraction of a processor": {`{framework: JAX, roles: [{name: Worker, template: {spec: {containers: [{name: jax, image: a, resources: {limits: {cpu: true}}}]}}}]}`,
			[]string{"spec.roles[0].template.spec.containers[0].resources.limits.cpu: Invalid value: must be of type integer or string, and is of type boolean: put it in quotes"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			content := contentOf(t, "{apiVersion: penstock.dev/v1, kind: TrainingJob, metadata: {name: a}, spec: "+tc.spec+"}")
			var got []string
			for _, err := range validation.Explain(validation.Distinct(schema.Validate(t.Context(), nil, content))) {
				if line := err.Error(); line != excuse {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("words (-want +got):\n%s", diff)
			}
		})
	}
}

const excuse = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
