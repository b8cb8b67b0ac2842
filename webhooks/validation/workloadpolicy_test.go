package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/config/crd"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

func TestValidateWorkloadPolicy(t *testing.T) {
	const rule = `rego: "package a", match: {resources: [{group: penstock.dev, kinds: [TrainingJob]}]}`
	const dropped = "client-side kubectl apply and kubectl edit drop what is null before Penstock sees it: "
	tests := map[string]struct {
		spec string
		want []string
	}{
		"a whole policy": {spec: `{rego: "package a", action: Warn, parameters: {max: 8},
  match: {resources: [{group: penstock.dev, kinds: [TrainingJob], subresources: [scale]}, {kinds: [Pod]}],
    namespaceSelector: {matchLabels: {a: b}}, exclude: {namespaces: [kube-*, team, "*"]}},
  matchConditions: [{name: example.com/gpu, expression: "true"}],
  overrides: [{namespaceSelector: {}, unset: [max]}],
  exceptions: [{namespaces: [a], names: [b], until: "2027-01-01T00:00:00Z", reason: r}],
  inventory: [{apiVersion: v1, kind: Namespace}, {apiVersion: apps/v1, kind: Deployment}]}`},
		"nothing": {spec: `{}`, want: []string{
			`spec.match.resources: Required value: a policy without would judge nothing: name groups and kinds`,
			`spec.rego: Required value: a policy is its rule: write a module with a set called violation`,
		}},
		"a group with its version, without kinds": {spec: `{rego: a, match: {resources: [{group: apps/v1}]}}`, want: []string{
			`spec.match.resources[0].group: Invalid value: "apps/v1": must be an API group without a version: write penstock.dev, leave it out for the core group, or write * for all`,
			`spec.match.resources[0].kinds: Required value: name at least one kind of the group`,
		}},
		"a selector that is none": {
			spec: `{rego: a, match: {resources: [{kinds: [Pod]}], objectSelector: {matchExpressions: [{key: a, operator: Is}]}}}`,
			want: []string{`spec.match.objectSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator`},
		},
		"patterns": {
			spec: `{rego: a, match: {resources: [{kinds: [Pod]}], exclude: {namespaces: ["a*b", "*-system", "team-*", "*"], users: ["system:*", 'CORP\ada'], groups: ["{a}"]}},
				exceptions: [{namespaces: ["team-*"], names: ["z*", "*.old", "system:x"], reason: r}, {namespaces: ["*"], names: ["z*"], reason: r}]}`,
		},
		"patterns that nothing fits": {
			spec: `{rego: a, match: {resources: [{kinds: [Pod]}], exclude: {namespaces: ["team-?", "A*", "team_*"]}}, exceptions: [{namespaces: ["[a-z]"], names: [team/z, "z?", "[ab]*"], reason: r}]}`,
			want: []string{
				`spec.match.exclude.namespaces[0]: Invalid value: "team-?": must be the name of a namespace, in which * may stand for any characters, as in team-*`,
				`spec.match.exclude.namespaces[1]: Invalid value: "A*": must be the name of a namespace, in which * may stand for any characters, as in team-*`,
				`spec.match.exclude.namespaces[2]: Invalid value: "team_*": must be the name of a namespace, in which * may stand for any characters, as in team-*`,
				`spec.exceptions[0].namespaces[0]: Invalid value: "[a-z]": must be the name of a namespace, in which * may stand for any characters, as in team-*`,
				`spec.exceptions[0].names[0]: Invalid value: "team/z": must be the name of an object, in which * may stand for any characters: its namespace stands in namespaces`,
				`spec.exceptions[0].names[1]: Invalid value: "z?": must be the name of an object, in which only * stands for other characters`,
				`spec.exceptions[0].names[2]: Invalid value: "[ab]*": must be the name of an object, in which only * stands for other characters`,
			},
		},
		"match conditions": {spec: `{` + rule + `, matchConditions: [{name: "a b", expression: "true"}, {name: c, expression: " "}, {name: c, expression: "object.("}, {name: penstock-d, expression: "'yes'"}]}`, want: []string{
			`spec.matchConditions[0].name: Invalid value: "a b": must be a qualified name: use letters, digits, -, _ and ., with a domain and / before it if need be`,
			`spec.matchConditions[1].expression: Required value: write a CEL expression over object, oldObject, request and authorizer, or remove the condition`,
			`spec.matchConditions[2].name: Duplicate value: "c": must be unique in the policy: rename one of them`,
			"spec.matchConditions[2].expression: Invalid value: \"object.(\": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.('\n | object.(\n | .......^",
			`spec.matchConditions[3].name: Invalid value: "penstock-d": names that begin with penstock- are Penstock's: choose another`,
			`spec.matchConditions[3].expression: Invalid value: "'yes'": must evaluate to bool but got string`,
		}},
		"parameters that are no object": {spec: `{` + rule + `, parameters: [1]}`, want: []string{
			`spec.parameters: Invalid value: "[1]": must be an object: put the value under a key that the rule reads as input.parameters.<key>`,
		}},
		"nulls": {
			spec: `{` + rule + `, parameters: {a: null, b: {c: [{d: null}, null]}}, overrides: [{namespaceSelector: {}, parameters: {x: 1}}, {namespaceSelector: {}, parameters: {x: null, z: {a.b/c: null}}}]}`,
			want: []string{
				"spec.parameters.a: Invalid value: null: " + dropped + "leave it out, or give it a value",
				"spec.parameters.b.c[0].d: Invalid value: null: " + dropped + "leave it out, or give it a value",
				"spec.parameters.b.c[1]: Invalid value: null: " + dropped + "leave it out, or give it a value",
				`spec.overrides[1].parameters.x: Invalid value: null: ` + dropped + `to remove the parameter there, write overrides[1].unset: ["x"]`,
				`spec.overrides[1].parameters.z[a.b/c]: Invalid value: null: ` + dropped + `to remove the parameter there, write overrides[1].unset: ["z[a.b/c]"]`,
			},
		},
		"what is unset": {spec: `{` + rule + `, parameters: {maxGPUs: 8, limits: {nvidia.com/gpu: 1}, frameworks: {MPI: 2}},
  overrides: [{namespaceSelector: {}, unset: [maxGPUs, "limits[nvidia.com/gpu]", frameworks.MPI, limits.nvidia.com/gpu], parameters: {more: 1}}, {namespaceSelector: {}, unset: [more]}]}`},
		"what is unset and not there": {
			spec: `{` + rule + `, parameters: {maxGPUs: 8, frameworks: {MPI: 2}}, overrides: [{namespaceSelector: {}, unset: [maxGPU, frameworks.mpi, other, later]}, {namespaceSelector: {}, parameters: {later: 1}}]}`,
			want: []string{
				`spec.overrides[0].unset[0]: Invalid value: "maxGPU": is a parameter of neither the policy nor an override before: write maxGPUs`,
				`spec.overrides[0].unset[1]: Invalid value: "frameworks.mpi": is a parameter of neither the policy nor an override before: write frameworks.MPI`,
				`spec.overrides[0].unset[2]: Invalid value: "other": is a parameter of neither the policy nor an override before: there are frameworks, frameworks.MPI, maxGPUs`,
				`spec.overrides[0].unset[3]: Invalid value: "later": is a parameter of neither the policy nor an override before: there are frameworks, frameworks.MPI, maxGPUs`,
			},
		},
		"what is unset of nothing": {spec: `{` + rule + `, overrides: [{namespaceSelector: {}, unset: [a]}]}`, want: []string{
			`spec.overrides[0].unset[0]: Invalid value: "a": is a parameter of neither the policy nor an override before: the policy has no parameters`,
		}},
		"a match condition of an unknown type": {spec: `{` + rule + `, matchConditions: [{name: a, expression: "object.spec.?hostNetwork.orValue(false)"}]}`, want: []string{
			`spec.matchConditions[0].expression: Invalid value: "object.spec.?hostNetwork.orValue(false)": must evaluate to bool but got dyn, as the types of the object's fields are not known: compare it, as in (…) == true`,
		}},
		"a match condition on the namespace": {spec: `{` + rule + `, matchConditions: [{name: a, expression: "namespaceObject.metadata.labels.a == 'b'"}, {name: b, expression: "object.metadata.namespaceObject == 'namespaceObject'"}]}`, want: []string{
			`spec.matchConditions[0].expression: Invalid value: "namespaceObject.metadata.labels.a == 'b'": namespaceObject is not there in the match conditions of webhooks, and would fail every request: select by match.namespaceSelector`,
		}},
		"an override of nothing for nobody": {spec: `{` + rule + `, overrides: [{}]}`, want: []string{
			`spec.overrides[0].namespaceSelector: Required value: select the namespaces that the override is for`,
			`spec.overrides[0]: Required value: an override without parameters, unset and action changes nothing: give one of these or remove it`,
		}},
		"exceptions": {spec: `{` + rule + `, exceptions: [{names: [a], reason: r}, {reason: r}, {namespaces: [a, "*"], reason: r}, {namespaces: ["**"], names: [a, "*"], reason: r}]}`, want: []string{
			`spec.exceptions[0].namespaces: Required value: names alone are those of cluster-scoped objects, and the policy matches none: add the namespaces that the named objects live in`,
			`spec.exceptions[1].namespaces: Required value: an exception for every object would switch the policy off: name namespaces, or cluster-scoped objects by names, or set action to Audit`,
			`spec.exceptions[2].namespaces[1]: Invalid value: "*": an exception for every object would switch the policy off: name namespaces, or names of objects, or set action to Audit`,
			`spec.exceptions[3].namespaces[0]: Invalid value: "**": an exception for every object would switch the policy off: name namespaces, or names of objects, or set action to Audit`,
		}},
		"exceptions of objects that live in no namespace": {
			spec: `{rego: package a, match: {resources: [{kinds: [Node, PersistentVolume]}]}, exceptions: [{names: ["gpu-*"], reason: r}, {namespaces: ["*"], names: [a], reason: r}, {names: ["*"], reason: r}]}`,
			want: []string{
				`spec.exceptions[1].namespaces: Forbidden: what the policy matches lives in no namespace, so that the exception would never count: leave namespaces out and give the names of the objects`,
				`spec.exceptions[2].namespaces: Required value: an exception for every object would switch the policy off: name cluster-scoped objects, or namespaces, or set action to Audit`,
			},
		},
		"exceptions of who knows which objects": {
			spec: `{rego: package a, match: {resources: [{group: example.com, kinds: [Widget]}, {kinds: [Node]}]}, exceptions: [{names: [a], reason: r}, {namespaces: [a], names: [a], reason: r}]}`,
		},
		"exceptions of namespaces": {
			spec: `{rego: package a, match: {resources: [{kinds: [Namespace]}]}, exceptions: [{namespaces: [a], reason: r}, {names: [a], reason: r}]}`,
		},
		"inventory": {spec: `{` + rule + `, inventory: [{apiVersion: a/b/c, kind: X}, {apiVersion: v1}]}`, want: []string{
			`spec.inventory[0].apiVersion: Invalid value: "a/b/c": must be group/version, or a version of the core group: write penstock.dev/v1 or v1`,
			`spec.inventory[1].kind: Required value: name the kind that the rule reads`,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			policy := &v1.WorkloadPolicy{}
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &policy.Spec); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, words(validation.ValidateWorkloadPolicy(policy))); diff != "" {
				t.Errorf("unexpected faults (-want +got):\n%s", diff)
			}
		})
	}
	if errs := validation.ValidateWorkloadPolicy(nil); len(errs) > 0 {
		t.Errorf("nothing is at fault: %v", errs)
	}
}

func TestWorkloadPolicySchema(t *testing.T) {
	definition, err := crd.Get(v1.WorkloadPolicyGroupKind)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := validation.NewSchema(definition, "v1")
	if err != nil {
		t.Fatal(err)
	}
	obj := contentOf(t, `
apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: a}
spec:
  rego: package a
  parameters: {anything: [goes, {x: null}]}
  match: {resources: [{kinds: [Pod]}]}
  exceptions: [{until: "2027-01-01T00:00:00Z", reason: r}]`)
	if unknown := schema.Prune(obj); len(unknown) > 0 {
		t.Errorf("unknown fields: %v", unknown)
	}
	want := []string{`spec.exceptions[0]: Invalid value: an exception for every object would switch the policy off: name namespaces, or cluster-scoped objects by names`}
	if diff := cmp.Diff(want, words(schema.Validate(t.Context(), nil, obj))); diff != "" {
		t.Errorf("unexpected faults (-want +got):\n%s", diff)
	}
	if errs := schema.ValidateMeta(t.Context(), nil, obj); len(errs) > 0 {
		t.Errorf("a cluster-scoped object needs no namespace: %v", errs)
	}
}

// kubectl keeps a copy of what was applied, in which is what it has dropped.
func TestNullsThatKubectlDropped(t *testing.T) {
	const applied = `{"spec":{"parameters":{"a":null},"overrides":[{"parameters":{"b":{"c":null},"d":null}}]}}`
	policy := &v1.WorkloadPolicy{}
	spec := `{rego: "package a", match: {resources: [{kinds: [Pod]}]}, parameters: {b: {c: 1}}, overrides: [{namespaceSelector: {}, parameters: {b: {}, d: null}}]}`
	if err := yaml.UnmarshalStrict([]byte(spec), &policy.Spec); err != nil {
		t.Fatal(err)
	}
	policy.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": applied}
	const at = "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]: Forbidden: kubectl apply has dropped the null that was written at "
	want := []string{
		`spec.overrides[0].parameters.d: Invalid value: null: client-side kubectl apply and kubectl edit drop what is null before Penstock sees it: to remove the parameter there, write overrides[0].unset: ["d"]`,
		at + `spec.parameters.a: leave it out, or give it a value`,
		at + `spec.overrides[0].parameters.b.c: to remove the parameter there, write overrides[0].unset: ["b.c"]`,
	}
	if diff := cmp.Diff(want, words(validation.ValidateWorkloadPolicy(policy))); diff != "" {
		t.Errorf("unexpected faults (-want +got):\n%s", diff)
	}
	for _, other := range []string{"", "no JSON", `[]`, `{"spec":{"parameters":[null],"overrides":[{"parameters":null}]}}`} {
		policy.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = other
		if got := words(validation.ValidateWorkloadPolicy(policy)); len(got) != 1 {
			t.Errorf("%s: got %q", other, got)
		}
	}
}
