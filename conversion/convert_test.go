package conversion

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
)

func fromYAML(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func convertYAML(t *testing.T, text string, to schema.GroupVersion) map[string]any {
	t.Helper()
	converted, err := Convert(fromYAML(t, text), to)
	if err != nil {
		t.Fatal(err)
	}
	return mustTree(t, converted).(map[string]any)
}

func TestConvert(t *testing.T) {
	tests := map[string]struct {
		object, want string
		to           schema.GroupVersion
	}{
		"a PyTorchJob's spec becomes roles": {
			object: `
apiVersion: penstock.dev/v1alpha1
kind: TrainingJob
metadata: {name: a}
spec:
  nprocPerNode: "2"
  runPolicy: {backoffLimit: 3, schedulingPolicy: {queue: q, minAvailable: 2}}
  elasticPolicy: {minReplicas: 1, maxReplicas: 4, rdzvBackend: c10d, maxRestarts: 10}
  pytorchReplicaSpecs:
    Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch}]}}}
    Master: {restartPolicy: OnFailure, template: {metadata: {creationTimestamp: null}}}
`,
			to: v1.GroupVersion,
			want: `
apiVersion: penstock.dev/v1
kind: TrainingJob
metadata: {name: a}
spec:
  framework: PyTorch
  roles:
  - {name: Master, restartPolicy: OnFailure, template: {metadata: {creationTimestamp: null}}}
  - {name: Worker, replicas: 2, template: {spec: {containers: [{name: pytorch}]}}}
  runPolicy: {backoffLimit: 3}
  gang: {queueName: q, minAvailable: 2}
  elastic: {replicas: 2, minReplicas: 1, maxReplicas: 4}
  pytorch: {processesPerNode: "2", maxRestarts: 10, rendezvous: {backend: c10d}}
`,
		},
		"what v1alpha1 cannot say is kept in the annotation": {
			object: `
apiVersion: penstock.dev/v1
kind: TrainingJob
metadata: {name: a, annotations: {x: y}}
spec:
  framework: JAX
  roles:
  - {name: Worker, topology: {required: rack}}
status: {phase: Running}
`,
			to: v1alpha1.GroupVersion,
			want: `
apiVersion: penstock.dev/v1alpha1
kind: TrainingJob
metadata: {name: a, annotations: {x: y, penstock.dev/restore: '{"set":{"/roles/Worker/topology":{"required":"rack"}}}'}}
spec: {jaxReplicaSpecs: {Worker: {}}}
status: {phase: Running}
`,
		},
		"an object without metadata or spec gets metadata": {
			object: `{apiVersion: penstock.dev/v1, kind: TrainingJob}`,
			to:     v1alpha1.GroupVersion,
			want:   `{apiVersion: penstock.dev/v1alpha1, kind: TrainingJob, metadata: {}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := convertYAML(t, tc.object, tc.to)
			if diff := cmp.Diff(mustTree(t, fromYAML(t, tc.want)), any(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConvertCarriesIllTypedValues(t *testing.T) {
	tests := map[string]struct {
		spec string
		// at is where v1 says the value, so that v1 cannot be decoded either.
		at   []string
		want any
	}{
		"a count in words":              {`{pytorchReplicaSpecs: {Worker: {replicas: three}}}`, []string{"roles", "Worker", "replicas"}, "three"},
		"a null":                        {`{pytorchReplicaSpecs: {Worker: {replicas: null, restartPolicy: 5}}}`, []string{"roles", "Worker", "restartPolicy"}, json.Number("5")},
		"a run policy that is a number": {`{runPolicy: 5, jaxReplicaSpecs: {}}`, []string{"runPolicy"}, json.Number("5")},
		"a limit too large for 32 bits": {`{runPolicy: {backoffLimit: 3000000000}}`, []string{"runPolicy", "backoffLimit"}, json.Number("3000000000")},
		"slots in words":                {`{slotsPerWorker: two, mpiReplicaSpecs: {}}`, []string{"mpi", "slotsPerWorker"}, "two"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := "{apiVersion: penstock.dev/v1alpha1, kind: TrainingJob, metadata: {name: a}, spec: " + tc.spec + "}"
			converted, err := Convert(fromYAML(t, object), v1.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			spec := mustTree(t, converted).(map[string]any)["spec"]
			if got, _ := lookUp(spec, tc.at); got != tc.want {
				t.Errorf("v1 says %v at %v, want %v", got, tc.at, tc.want)
			}
			if err := json.Unmarshal(converted, &v1.TrainingJob{}); err == nil {
				t.Error("v1 decodes, so defaulting would lose the value")
			}
			back, err := Convert(converted, v1alpha1.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(mustTree(t, fromYAML(t, object)), mustTree(t, back)); diff != "" {
				t.Errorf("there and back (-want +got):\n%s", diff)
			}
		})
	}
}

// An edit is made to the v1alpha1 form of a v1 object, as another client would.
func TestEditThroughV1alpha1(t *testing.T) {
	const stored = `
apiVersion: penstock.dev/v1
kind: TrainingJob
metadata: {name: a}
spec:
  framework: PyTorch
  roles:
  - {name: Worker, replicas: 2, topology: {required: rack}}
  - {name: Master, replicas: 1, topology: {preferred: zone}}
  gang: {scheduler: volcano, minAvailable: 3}
  elastic: {replicas: 3, maxReplicas: 4}
`
	tests := map[string]struct {
		edit func(object map[string]any)
		want string
	}{
		"no edit changes nothing": {
			edit: func(map[string]any) {},
			want: stored,
		},
		"an edit wins and the fields of others stay": {
			edit: func(object map[string]any) {
				worker := at(object, "spec", "pytorchReplicaSpecs", "Worker")
				worker["replicas"] = 4
				at(object, "spec", "runPolicy", "schedulingPolicy")["minAvailable"] = 5
			},
			want: strings.NewReplacer("replicas: 3", "replicas: 4", "minAvailable: 3", "minAvailable: 5").Replace(stored),
		},
		"a role that is removed stays gone, with its fields": {
			edit: func(object map[string]any) {
				delete(at(object, "spec", "pytorchReplicaSpecs"), "Master")
			},
			want: strings.Replace(stored, "  - {name: Master, replicas: 1, topology: {preferred: zone}}\n", "", 1),
		},
		"a gang that is removed takes its scheduler along": {
			edit: func(object map[string]any) {
				delete(at(object, "spec"), "runPolicy")
			},
			want: strings.Replace(stored, "  gang: {scheduler: volcano, minAvailable: 3}\n", "", 1),
		},
		"elastic that is removed does not come back": {
			edit: func(object map[string]any) {
				delete(at(object, "spec"), "elasticPolicy")
			},
			want: strings.NewReplacer("  elastic: {replicas: 3, maxReplicas: 4}\n", "", "replicas: 2", "replicas: 3").Replace(stored),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := convertYAML(t, stored, v1alpha1.GroupVersion)
			tc.edit(object)
			edited, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Convert(edited, v1.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(mustTree(t, fromYAML(t, tc.want)), mustTree(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func at(object map[string]any, names ...string) map[string]any {
	for _, name := range names {
		object = object[name].(map[string]any)
	}
	return object
}

func TestForgedAnnotation(t *testing.T) {
	const spec = `{jaxReplicaSpecs: {Worker: {replicas: 2, template: {spec: {}}}}}`
	plain := convertYAML(t, "{apiVersion: penstock.dev/v1alpha1, kind: TrainingJob, metadata: {name: a}, spec: "+spec+"}", v1.GroupVersion)
	tests := map[string]string{
		"no JSON":                        `{`,
		"no object":                      `5`,
		"an unknown member":              `{"status":{"phase":"Succeeded"}}`,
		"the status":                     `{"set":{"/status/phase":"Succeeded"}}`,
		"an ill-typed value":             `{"set":{"/roles/Worker/topology":"rack"}}`,
		"an unknown field":               `{"set":{"/roles/Worker/nonsense":1}}`,
		"another template":               `{"set":{"/roles/Worker/template":{"spec":{"hostNetwork":true}}}}`,
		"another count":                  `{"set":{"/roles/Worker/replicas":1000}}`,
		"another role":                   `{"set":{"/roles":[{"name":"Worker"},{"name":"Miner"}]}}`,
		"a role that is not there":       `{"set":{"/roles/Master/topology":{"required":"rack"}}}`,
		"another framework":              `{"set":{"/framework":"MPI"}}`,
		"the whole spec":                 `{"set":{"":{}}}`,
		"a removal":                      `{"unset":["/roles"]}`,
		"more than anybody could need":   `{"set":{"/roles/Worker/topology":{"required":"` + strings.Repeat("x", 300<<10) + `"}}}`,
		"a pointer that is none":         `{"set":{"roles":1}}`,
		"an order of roles that are not": `{"order":["Master"]}`,
	}
	for name, forged := range tests {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(forged)
			if err != nil {
				t.Fatal(err)
			}
			object := `{apiVersion: penstock.dev/v1alpha1, kind: TrainingJob, metadata: {name: a, annotations: {penstock.dev/restore: ` +
				string(raw) + `}}, spec: ` + spec + `}`
			if diff := cmp.Diff(plain, convertYAML(t, object, v1.GroupVersion)); diff != "" {
				t.Errorf("the annotation got through (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConvertRefusesWhatItDoesNotKnow(t *testing.T) {
	tests := map[string]struct {
		object string
		to     schema.GroupVersion
	}{
		"an unknown kind":            {`{"apiVersion":"penstock.dev/v1","kind":"Job"}`, v1alpha1.GroupVersion},
		"an unknown version":         {`{"apiVersion":"penstock.dev/v2","kind":"TrainingJob"}`, v1.GroupVersion},
		"an unknown desired version": {`{"apiVersion":"penstock.dev/v1","kind":"TrainingJob"}`, schema.GroupVersion{Group: "penstock.dev", Version: "v3"}},
		"another group":              {`{"apiVersion":"penstock.dev/v1","kind":"TrainingJob"}`, schema.GroupVersion{Group: "batch", Version: "v1alpha1"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Convert([]byte(tc.object), tc.to)
			if _, ok := errors.AsType[*UnknownVersionError](err); !ok {
				t.Errorf("got %v, want an UnknownVersionError", err)
			}
		})
	}
}

// Ill-typed values come by the thousand only from somebody who means harm.
func TestConvertIsBoundedForHostileObjects(t *testing.T) {
	roles := map[string]any{}
	for i := range 20_000 {
		roles[strings.Repeat("x", i%7)+string(rune('a'+i%26))+json.Number(rune('0'+i%10)).String()+strings.Repeat("y", i%97)] = map[string]any{"replicas": "many"}
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "penstock.dev/v1alpha1", "kind": "TrainingJob", "spec": map[string]any{"jaxReplicaSpecs": roles},
	})
	if err != nil {
		t.Fatal(err)
	}
	converted, err := Convert(raw, v1.GroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(converted, &v1.TrainingJob{}); err == nil {
		t.Error("v1 decodes, so defaulting would lose the values")
	}
}

// A string of one NUL is what stands for a carried value while a spec is
// written; an object may hold one of its own.
func TestConvertKeepsStringsOfOneNUL(t *testing.T) {
	object := []byte(`{"apiVersion":"penstock.dev/v1alpha1","kind":"TrainingJob","metadata":{},"spec":{"nprocPerNode":"\u0000","pytorchReplicaSpecs":{"Worker":{"template":{"spec":{"nodeName":"\u0000"}}}}}}`)
	hub, err := Convert(object, v1.GroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Convert(hub, v1alpha1.GroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mustTree(t, object), mustTree(t, back)); diff != "" {
		t.Errorf("there and back (-want +got):\n%s", diff)
	}
}
