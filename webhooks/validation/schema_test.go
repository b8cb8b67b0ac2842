package validation_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/config/crd"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

var schemaOnce = sync.OnceValues(func() (*validation.Schema, error) {
	definition, err := crd.Get(v1.TrainingJobGroupKind)
	if err != nil {
		return nil, err
	}
	return validation.NewSchema(definition, "v1")
})

func trainingJobSchema(t testing.TB) *validation.Schema {
	t.Helper()
	schema, err := schemaOnce()
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// contentOf reads YAML as the API server's decoder leaves it.
func contentOf(t testing.TB, text string) map[string]any {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("failed to decode the test's content: %v\n%s", err, text)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(json, &content); err != nil {
		t.Fatalf("failed to decode the test's content: %v\n%s", err, text)
	}
	return content
}

const head = "apiVersion: penstock.dev/v1\nkind: TrainingJob\nmetadata: {name: a, namespace: b}\n"

// The wanted words are those that kube-apiserver 1.37 answers with.
func TestSchemaValidate(t *testing.T) {
	const container = `{template: {spec: {containers: [{name: pytorch, image: a}]}}, name: Master}`
	tests := map[string]struct {
		old  string
		obj  string
		want []string
	}{
		"a good job": {obj: head + `spec: {framework: PyTorch, roles: [` + container + `]}`},
		"faults of value": {
			obj: head + `spec: {framework: Torch, roles: [{name: Master, replicas: -1, template: {spec: {containers: [{image: a}]}}}], elastic: {replicas: -2}}`,
			want: []string{
				`spec.elastic.replicas: Invalid value: -2: spec.elastic.replicas in body should be greater than or equal to 0`,
				`spec.framework: Unsupported value: "Torch": supported values: "PyTorch", "TensorFlow", "MPI", "PaddlePaddle", "XGBoost", "JAX"`,
				`spec.roles[0].replicas: Invalid value: -1: spec.roles[0].replicas in body should be greater than or equal to 0`,
				`spec.roles[0].template.spec.containers[0].name: Required value`,
				`.spec.elastic.replicas: Invalid value: -2: should be a non-negative integer`,
				`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
			},
		},
		"a role twice": {
			obj:  head + `spec: {framework: PyTorch, roles: [` + container + `, ` + container + `]}`,
			want: []string{`spec.roles[1]: Duplicate value: {"name":"Master"}: is in the list already: change or remove one of the two`},
		},
		"a fault of type": {
			obj: head + `spec: {framework: PyTorch, roles: {}}`,
			want: []string{
				`spec.roles: Invalid value: "object": spec.roles in body must be of type array: "object"`,
				`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
			},
		},
		"a rule": {
			obj:  head + `spec: {framework: PyTorch, mpi: {}, roles: [` + container + `]}`,
			want: []string{`spec.mpi: Invalid value: mpi is only for framework MPI: remove it or change framework`},
		},
		"a rule on a change": {
			old:  head + `spec: {framework: JAX, runPolicy: {managedBy: a/b}, roles: [` + container + `]}`,
			obj:  head + `spec: {framework: PyTorch, runPolicy: {managedBy: a/c}, roles: [` + container + `]}`,
			want: []string{`spec.framework: Invalid value: framework cannot change: make a new job instead`, `spec.runPolicy.managedBy: Invalid value: managedBy cannot change: make a new job instead`},
		},
		"a fault that was stored and has not changed": {
			old: head + `spec: {framework: PyTorch, roles: [` + container + `], gang: {minAvailable: 0}}`,
			obj: head + `spec: {framework: PyTorch, roles: [` + container + `], gang: {minAvailable: 0}, runPolicy: {suspend: true}}`,
		},
		"a status that the request does not write": {
			obj: head + `spec: {framework: PyTorch, roles: [` + container + `]}` + "\nstatus: {phase: Nonsense}",
		},
		"another kind": {
			obj: "apiVersion: penstock.dev/v1alpha1\nkind: Job\n",
			want: []string{
				`kind: Invalid value: "Job": must be TrainingJob`,
				`apiVersion: Invalid value: "penstock.dev/v1alpha1": must be penstock.dev/v1`,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var old map[string]any
			if tc.old != "" {
				old = contentOf(t, tc.old)
			}
			got := words(trainingJobSchema(t).Validate(t.Context(), old, contentOf(t, tc.obj)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSchemaDefaultAndPrune(t *testing.T) {
	obj := contentOf(t, head+`
spec:
  framework: PyTorch
  colour: red
  elastic: null
  roles:
  - name: Master
    template:
      metadata: {creationTimestamp: null, labels: {a: b}}
      spec:
        imagePullSecrets: [{}]
        containers: [{name: pytorch, image: a, imge: b, ports: [{containerPort: 1, protocol: null}]}]`)
	schema := trainingJobSchema(t)
	unknown := schema.Prune(obj)
	wantUnknown := []string{"spec.colour", "spec.roles[0].template.spec.containers[0].imge"}
	if diff := cmp.Diff(wantUnknown, unknown); diff != "" {
		t.Errorf("unexpected unknown fields (-want +got):\n%s", diff)
	}
	schema.Default(obj)
	want := contentOf(t, head+`
spec:
  framework: PyTorch
  roles:
  - name: Master
    template:
      metadata: {creationTimestamp: null, labels: {a: b}}
      spec:
        imagePullSecrets: [{name: ""}]
        containers: [{name: pytorch, image: a, ports: [{containerPort: 1, protocol: TCP}]}]`)
	if diff := cmp.Diff(want, obj); diff != "" {
		t.Errorf("unexpected content (-want +got):\n%s", diff)
	}
}

func TestSchemaStrict(t *testing.T) {
	obj := contentOf(t, head+`
spec:
  framework: PyTorch
  roles:
  - name: Master
    template:
      apiVersion: v1
      kind: Pod
      metadata: {creationTimestamp: "2026-01-01T00:00:00Z", lables: {}}
      spec:
        nodeSelector: {example.com/pool: a}
        strange: null
        bananas: 1
        containers: [{name: pytorch, imge: b, resources: {limit: {cpu: 1}}, Image: a}]
status: {nonsense: 1}`)
	want := []string{
		`spec.roles[0].template.metadata.lables: Forbidden: unknown field, did you mean "labels"?`,
		`spec.roles[0].template.spec.bananas: Forbidden: unknown field: remove it`,
		`spec.roles[0].template.spec.containers[0].Image: Forbidden: unknown field, did you mean "image"?`,
		`spec.roles[0].template.spec.containers[0].imge: Forbidden: unknown field, did you mean "image"?`,
		`spec.roles[0].template.spec.containers[0].resources.limit: Forbidden: unknown field, did you mean "limits"?`,
	}
	if diff := cmp.Diff(want, words(trainingJobSchema(t).Strict(obj))); diff != "" {
		t.Errorf("unexpected faults (-want +got):\n%s", diff)
	}
	if errs := trainingJobSchema(t).Strict(map[string]any{"spec": "x"}); len(errs) > 0 {
		t.Errorf("what is no object has no fields: %v", errs)
	}
}

func TestSchemaUnknownFields(t *testing.T) {
	obj := contentOf(t, `
apiVersion: penstock.dev/v1
kind: TrainingJob
metadata: {name: a, lables: {a: b}, annotations: {any: thing}}
spec: {framework: PyTorch, rolez: [], roles: [{name: Master, template: {spec: {containers: [{name: pytorch, imge: a}]}}}]}
extra: 1
`)
	before := runtime.DeepCopyJSON(obj)
	got, err := trainingJobSchema(t).UnknownFields(obj)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"metadata.lables", "extra", "spec.roles[0].template.spec.containers[0].imge", "spec.rolez"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unknown fields (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, obj); diff != "" {
		t.Errorf("the object was changed:\n%s", diff)
	}
	if _, err := trainingJobSchema(t).UnknownFields(contentOf(t, "metadata: {labels: {a: 1}}")); err == nil {
		t.Error("metadata of a wrong type was decoded")
	}
}

func TestSchemaValidateMeta(t *testing.T) {
	tests := map[string]struct {
		obj  string
		want []string
	}{
		"good metadata":    {obj: `metadata: {name: a, namespace: b}`},
		"a generated name": {obj: `metadata: {generateName: a-, namespace: b}`},
		"no metadata": {obj: `spec: {}`, want: []string{
			`metadata.name: Required value: name or generateName is required`,
			`metadata.namespace: Required value`,
		}},
		"a bad label": {obj: `metadata: {name: a, namespace: b, labels: {x: "a b"}}`, want: []string{
			`metadata.labels: Invalid value: "a b": a valid label must be an empty string or consist of alphanumeric characters, ` +
				`'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', ` +
				`regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
		}},
		"no object": {obj: `metadata: x`, want: []string{
			`metadata: Invalid value: "x": expected map[string]interface{}, got string`,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := words(trainingJobSchema(t).ValidateMeta(t.Context(), nil, contentOf(t, tc.obj)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewSchemaOfEveryVersion(t *testing.T) {
	crds, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range crds {
		for _, version := range definition.Spec.Versions {
			if _, err := validation.NewSchema(definition, version.Name); err != nil {
				t.Error(err)
			}
		}
		if _, err := validation.NewSchema(definition, "v9"); err == nil {
			t.Error("an unknown version has a schema")
		}
	}
	if _, err := validation.NewSchema(&apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}}}}, "v1"); err == nil {
		t.Error("a version without a schema has one")
	}
}
