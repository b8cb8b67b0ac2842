package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/cmd/penstock/policy"
)

// TestImportAddsDefaults compares with what an API server stores of a constraint
// whose CustomResourceDefinition has the schema.
func TestImportAddsDefaults(t *testing.T) {
	const schema = `{type: object, properties: {
		num: {type: integer, default: 3}, big: {type: integer, default: 9007199254740993}, label: {type: string},
		deep: {type: object, properties: {a: {type: string, default: x}, b: {type: boolean, default: false}}},
		made: {type: object, default: {}, properties: {a: {type: string, default: y}}},
		list: {type: array, items: {type: object, properties: {a: {type: integer, default: 1}}}},
		more: {type: object, additionalProperties: {type: object, properties: {a: {type: integer, default: 2}}}},
		open: {type: string, nullable: true, default: z}}}`
	tests := map[string]struct {
		schema, spec, want, warn string
	}{
		"what is left out": {schema, `{parameters: {label: owner}}`, `{label: owner, num: 3, big: 9007199254740993, made: {a: y}, open: z}`, ""},
		"what is written":  {schema, `{parameters: {num: 4, big: 5, made: {a: b}, open: c}}`, `{num: 4, big: 5, made: {a: b}, open: c}`, ""},
		"nested": {
			schema, `{parameters: {big: 18446744073709551615, deep: {b: true}, list: [{}, {a: 5}], more: {k: {}}}}`,
			`{num: 3, big: 18446744073709551615, deep: {a: x, b: true}, list: [{a: 1}, {a: 5}], more: {k: {a: 2}}, made: {a: y}, open: z}`, "",
		},
		"null":                       {schema, `{parameters: {num: null, open: null}}`, `{num: 3, big: 9007199254740993, made: {a: y}}`, "spec.parameters.open is null"},
		"no parameters at all":       {schema, `{}`, ``, ""},
		"a default for all":          {strings.Replace(schema, "{type: object,", "{type: object, default: {label: l},", 1), `{}`, `{label: l, num: 3, big: 9007199254740993, made: {a: y}, open: z}`, ""},
		"no schema":                  {`null`, `{parameters: {label: owner}}`, `{label: owner}`, ""},
		"a schema that nobody takes": {`{type: object, $ref: "#/a", properties: {num: {default: 3}}}`, `{parameters: {label: owner}}`, `{label: owner}`, "template ownerlabel: no API server takes the schema"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			template := strings.Replace(ownerTemplate, "{kind: OwnerLabel}", "{kind: OwnerLabel}, validation: {openAPIV3Schema: "+tc.schema+"}", 1)
			imported := policy.Import([]policy.Document{document(t, ownerConstraint(tc.spec)), document(t, template)}, penstockv1.FailurePolicyIgnore)
			if len(imported.Errors) > 0 || len(imported.Policies) != 1 {
				t.Fatalf("errors %v", imported.Errors)
			}
			var got string
			if parameters := imported.Policies[0].Spec.Parameters; parameters != nil {
				got = string(parameters.Raw)
			}
			want, err := yaml.YAMLToJSON([]byte(tc.want))
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" {
				want = nil
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
			if said := strings.Join(imported.Warnings, "\n"); !strings.Contains(said, tc.warn) || (strings.Contains(said, "null") || strings.Contains(said, "schema")) != (tc.warn != "") {
				t.Errorf("warnings %q, want %q", imported.Warnings, tc.warn)
			}
		})
	}
}
