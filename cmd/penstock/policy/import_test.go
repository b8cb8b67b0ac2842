package policy_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/cmd/penstock/policy"
)

// ownerTemplate asks for a label, and reads the inventory.
const ownerTemplate = `
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata:
  name: ownerlabel
  annotations:
    description: "Somebody must own it."
    metadata.gatekeeper.sh/requires-sync-data: |
      "[[{"groups": [""], "versions": ["v1"], "kinds": ["Namespace"]}, {"groups": ["example.com"], "versions": ["v1", "v2"], "kinds": ["Team"]}]]"
spec:
  crd: {spec: {names: {kind: OwnerLabel}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    operations: [CREATE, DELETE]
    rego: |
      package ownerlabel
      import data.lib.get.label
      violation[{"msg": msg}] {
      	not label(input.review.object, input.parameters.label)   
      	data.inventory.cluster["v1"]["Namespace"][_].metadata.labels.owned
      	msg := sprintf("no %v", [input.parameters.label])
      }
    libs:
    - |
      package lib.get
      label(object, name) = value { value := object.metadata.labels[name] }
`

func document(t *testing.T, text string) policy.Document {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return policy.Document{Place: "in.yaml", JSON: raw}
}

func ownerConstraint(spec string) string {
	return "apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: OwnerLabel\nmetadata: {name: owned}\nspec: " + spec
}

func TestImport(t *testing.T) {
	tests := map[string]struct {
		spec string
		more []string
		// want are parts of the policy's YAML, warn and fail of what is said.
		want []string
		warn []string
		fail string
	}{
		"all that a constraint says": {
			spec: `{enforcementAction: warn, parameters: {label: owner}, match: {kinds: [{apiGroups: ["", apps], kinds: [Pod, Deployment]}], scope: Namespaced, namespaces: [a, b],
				excludedNamespaces: [kube-system, x-*, "*-system"], labelSelector: {matchLabels: {l: "1"}}, namespaceSelector: {matchLabels: {tier: "1"}}, name: "p-*"}}`,
			want: []string{
				"name: owned", "description: Somebody must own it.", "action: Warn", "failurePolicy: Ignore", "  parameters:\n    label: owner",
				"kinds:\n      - Pod\n      subresources:\n      - \"\"\n      - ephemeralcontainers\n      - resize",
				"- group: apps\n      kinds:\n      - Pod\n      - Deployment", "operations:\n    - CREATE\n    - DELETE",
				"key: kubernetes.io/metadata.name\n        operator: In\n        values:\n        - a\n        - b", "tier: \"1\"", "objectSelector:\n      matchLabels:\n        l: \"1\"",
				"- kube-system\n      - x-*\n      - '*-system'", "name: namespaced", `object.metadata.?name.orValue(object.metadata.?generateName.orValue('')).startsWith("p-")`,
				"rego: |\n    package ownerlabel", "libs:\n  - |\n    package lib.get",
				"- apiVersion: v1\n    kind: Namespace\n  - apiVersion: example.com/v1\n    kind: Team\n  - apiVersion: example.com/v2\n    kind: Team",
			},
			warn: []string{"one of several kinds in the inventory", "became matchConditions"},
		},
		"what is synced": {
			spec: `{enforcementAction: dryrun}`,
			more: []string{"apiVersion: syncset.gatekeeper.sh/v1alpha1\nkind: SyncSet\nspec: {gvks: [{group: \"\", version: v1, kind: Namespace}, {group: apps, version: v1, kind: Deployment}]}"},
			want: []string{"action: Audit", "inventory:\n  - apiVersion: v1\n    kind: Namespace\n  libs", "- group: '*'\n      kinds:\n      - '*'"},
		},
		"scoped, with more than one action": {
			spec: `{enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: validation.gatekeeper.sh}]}, {action: warn, enforcementPoints: [{name: "*"}]}]}`,
			want: []string{"action: Deny"}, warn: []string{"one of several"},
		},
		"pods among all kinds": {
			spec: `{match: {kinds: [{apiGroups: ["*"], kinds: ["*"]}]}}`,
			want: []string{"resources:\n    - kinds:\n      - Pod\n      subresources:\n      - ephemeralcontainers\n      - resize\n    - group: '*'\n      kinds:\n      - '*'"}, warn: []string{"one of several"},
		},
		"pods of any group": {
			spec: `{match: {kinds: [{apiGroups: ["*"], kinds: [Pod]}]}}`,
			want: []string{"resources:\n    - kinds:\n      - Pod\n      subresources:\n      - ephemeralcontainers\n      - resize\n    - group: '*'\n      kinds:\n      - Pod"}, warn: []string{"one of several"},
		},
		"namespaces, of objects in none too": {
			spec: `{match: {namespaces: [a]}}`,
			want: []string{"- a\n    operations:\n    - CREATE\n    - DELETE\n    resources:\n    - group: '*'\n      kinds:\n      - '*'\n    - kinds:\n      - Pod\n      subresources:\n      - ephemeralcontainers\n      - resize\n  rego"}, warn: []string{"one of several"},
		},
		"a name": {
			spec: `{match: {name: p}}`, want: []string{`object.metadata.?name.orValue('') == "p"`}, warn: []string{"one of several", "became matchConditions"},
		},
		"scoped": {
			spec: `{enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: audit.gatekeeper.sh}]}, {action: warn, enforcementPoints: [{name: validation.gatekeeper.sh}]}]}`,
			want: []string{"action: Warn"}, warn: []string{"one of several"},
		},
		"parameters that are null": {
			spec: `{parameters: {label: owner, big: 9007199254740993, none: null, deep: [{a: null, b: 1}]}}`,
			want: []string{"big: 9007199254740993", "deep:\n    - b: 1\n    label: owner\n  rego"},
			warn: []string{"policy owned: spec.parameters.deep[0].a is null, which no policy may hold, and is left out", "policy owned: spec.parameters.none is null", "one of several"},
		},
		"no parameters at all":    {spec: `{parameters: null}`, want: []string{"name: owned"}, warn: []string{"one of several"}},
		"a list that holds null":  {spec: `{parameters: {labels: [a, null]}}`, fail: "constraint owned: spec.parameters.labels[1] is null, which no policy may hold: remove it"},
		"scoped elsewhere":        {spec: `{enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: audit.gatekeeper.sh}]}]}`, fail: "has nothing for validation.gatekeeper.sh"},
		"an action nobody knows":  {spec: `{enforcementAction: explode}`, fail: `spec.enforcementAction "explode" is not known`},
		"a pattern of namespaces": {spec: `{match: {namespaces: ["team-*"]}}`, fail: `spec.match.namespaces: "team-*" is a pattern`},
		"expanded objects":        {spec: `{match: {source: Generated}}`, fail: "spec.match.source Generated"},
		"a part nobody knows":     {spec: `{match: {weather: fine}}`, fail: `spec.match: json: unknown field "weather"`},
		"a template in CEL": {
			spec: `{}`, more: []string{"apiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\nmetadata: {name: cel}\nspec: {crd: {spec: {names: {kind: Cel}}}, targets: [{target: admission.k8s.gatekeeper.sh, code: [{engine: K8sNativeValidation}]}]}"},
			want: []string{"name: owned"}, warn: []string{"one of several"}, fail: "template cel has no Rego: rules in CEL cannot be imported",
		},
		"a constraint without template": {
			spec: `{}`, more: []string{"apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: Other\nmetadata: {name: lone}"},
			want: []string{"name: owned"}, warn: []string{"one of several"}, fail: "constraint lone has no template: add the ConstraintTemplate of kind Other",
		},
		"something else": {
			spec: `{}`, more: []string{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}"},
			want: []string{"name: owned"}, warn: []string{"v1 ConfigMap is left out", "one of several"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			documents := []policy.Document{document(t, ownerConstraint(tc.spec)), document(t, ownerTemplate)}
			for _, more := range tc.more {
				documents = append(documents, document(t, more))
			}
			imported := policy.Import(documents, penstockv1.FailurePolicyIgnore)
			var out bytes.Buffer
			if err := imported.WriteYAML(&out); err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				// An empty group is left out.
				want = strings.ReplaceAll(want, "- group: \"\"\n", "- kinds:\n      - Pod\n")
				if !strings.Contains(out.String(), want) {
					t.Errorf("the policy lacks %q:\n%s", want, out.String())
				}
			}
			if len(tc.want) == 0 && out.Len() > 0 {
				t.Errorf("a policy is made:\n%s", out.String())
			}
			var failed string
			if len(imported.Errors) > 0 {
				failed = imported.Errors[0].Error()
			}
			if len(imported.Errors) > 1 || !strings.Contains(failed, tc.fail) || (failed == "") != (tc.fail == "") {
				t.Errorf("errors %v, want %q", imported.Errors, tc.fail)
			}
			for i, want := range tc.warn {
				if len(imported.Warnings) != len(tc.warn) || !strings.Contains(imported.Warnings[i], want) {
					t.Errorf("warnings %q, want %q", imported.Warnings, tc.warn)
					break
				}
			}
			var strict penstockv1.WorkloadPolicy
			if out.Len() > 0 {
				if err := yaml.UnmarshalStrict(out.Bytes(), &strict); err != nil {
					t.Error(err)
				} else if diff := cmp.Diff(imported.Policies[0], &strict); diff != "" {
					t.Errorf("the YAML does not say the policy (-policy +YAML):\n%s", diff)
				}
			}
		})
	}
}

// Ephemeral containers come by updates: a rule that leaves these alone lets any in,
// whatever subresources the policy names.
func TestImportSaysThatUpdatesAreSpared(t *testing.T) {
	for body, told := range map[string]string{
		`not is_update(input.review)`:              "not is_update(input.review)",
		`not data.lib.u.is_update(input.review)`:   "not data.lib.u.is_update(input.review)",
		`input.review.operation == "CREATE"`:       `.operation == "CREATE"`,
		`input.review.object.metadata.name == "a"`: "",
	} {
		template := strings.Replace(ownerTemplate, `not label(input.review.object, input.parameters.label)`, body, 1)
		for kind, pods := range map[string]bool{"Pod": true, "Service": false} {
			imported := policy.Import([]policy.Document{document(t, template), document(t, ownerConstraint(`{match: {kinds: [{apiGroups: [""], kinds: [`+kind+`]}]}}`))}, penstockv1.FailurePolicyIgnore)
			said := strings.Join(imported.Warnings, "\n")
			if want := pods && told != ""; strings.Contains(said, "says nothing of updates ("+told+")") != want || strings.Contains(said, "of updates") != want {
				t.Errorf("%s of a %s: warnings %q", body, kind, imported.Warnings)
			}
		}
	}
}

// A template may be for all operations. Connections come by subresources, which a
// constraint does not name.
func TestImportOfAllOperations(t *testing.T) {
	all := strings.Replace(ownerTemplate, "operations: [CREATE, DELETE]", `operations: ["*"]`, 1)
	if all == ownerTemplate {
		t.Fatal("the template has other operations")
	}
	imported := policy.Import([]policy.Document{document(t, all), document(t, ownerConstraint("{}"))}, penstockv1.FailurePolicyIgnore)
	if len(imported.Policies) != 1 {
		t.Fatalf("got %+v", imported)
	}
	want := []penstockv1.PolicyOperation{penstockv1.OperationCreate, penstockv1.OperationUpdate, penstockv1.OperationDelete}
	if diff := cmp.Diff(want, imported.Policies[0].Spec.Match.Operations); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}
