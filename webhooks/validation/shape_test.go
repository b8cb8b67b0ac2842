package validation

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/config/crd"
)

const broadJob = `
apiVersion: penstock.dev/v1
kind: TrainingJob
metadata: {name: a, annotations: {a: b}}
spec:
  framework: PyTorch
  runPolicy: {suspend: false, cleanPodPolicy: None, activeDeadlineSeconds: 3600, backoffLimit: 3, managedBy: a.dev/b}
  pytorch: {processesPerNode: auto, maxRestarts: 3, rendezvous: {backend: c10d, port: 1234, options: [{key: a, value: b}]}}
  elastic: {replicas: 2, minReplicas: 1, maxReplicas: 4, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 5}}}]}
  gang: {minAvailable: 1, topology: {required: a/b}, minResources: {cpu: 1, memory: 1Gi}}
  roles:
  - name: Master
    replicas: 1
    topology: {preferred: x}
    template:
      metadata: {labels: {a: b}}
      spec:
        imagePullSecrets: [{}]
        nodeSelector: {a: b}
        tolerations: [{key: a, operator: Exists, tolerationSeconds: 5}]
        volumes: [{name: v, emptyDir: {sizeLimit: 1Gi}}, {name: w, iscsi: {iqn: a, lun: 1, targetPortal: b}}, {name: x, projected: {sources: [{configMap: {}}]}}]
        containers:
        - name: pytorch
          image: a
          env: [{name: A, value: b}, {name: C, valueFrom: {secretKeyRef: {key: a}}}]
          ports: [{containerPort: 1}, {containerPort: 1, protocol: UDP}]
          resources: {limits: {cpu: 500m, nvidia.com/gpu: 1}, requests: {cpu: "1"}}
          livenessProbe: {httpGet: {port: http, path: /}, grpc: {port: 1}, periodSeconds: 5}
          readinessProbe: {httpGet: {port: 80}}
status: {conditions: [{type: A}]}
`

// Shapes must never be surer than the API server's code: over many broken
// jobs, what conforms has no fault there, and the defaults are the same.
func TestShapeAgreesWithTheAPIServersCode(t *testing.T) {
	schema, good := schemaAndJob(t)
	random := rand.New(rand.NewPCG(1, 1))
	sure, repeating := 0, 0
	const rounds = 2000
	for round := range rounds {
		job := runtime.DeepCopyJSON(good)
		for range random.IntN(4) {
			breakAt(random, job)
		}
		filled, reference := runtime.DeepCopyJSON(job), runtime.DeepCopyJSON(job)
		schema.shape.fill(filled)
		defaulting.PruneNonNullableNullsWithoutDefaults(reference, schema.structural)
		defaulting.Default(reference, schema.structural)
		if diff := cmp.Diff(reference, filled); diff != "" {
			t.Fatalf("round %d: other defaults (-API server +shape):\n%s", round, diff)
		}
		if spec := job["spec"]; schema.shape.fields["spec"].knows(spec) {
			copied := runtime.DeepCopyJSONValue(spec)
			if unknown := schema.Prune(map[string]any{"spec": copied}); len(unknown) > 0 {
				t.Fatalf("round %d: all fields are known, but the API server prunes %v", round, unknown)
			}
		}
		if errs := listtype.ValidateListSetsAndMaps(nil, schema.structural, job); len(errs) > 0 != !schema.shape.distinct(job) {
			t.Fatalf("round %d: distinct is %v, but the API server says %v", round, schema.shape.distinct(job), errs)
		} else if len(errs) > 0 {
			repeating++
		}
		judged := maps.Clone(job)
		delete(judged, "status")
		if !schema.shape.conforms(judged) {
			continue
		}
		sure++
		if errs := schemavalidation.ValidateCustomResource(nil, judged, schema.values); len(errs) > 0 {
			t.Fatalf("round %d: conforms, but the API server says %v", round, errs)
		}
	}
	// A job left whole takes the quick way; so do some that were broken
	// where the schema asks for nothing.
	if sure < rounds/4 {
		t.Errorf("only %d of %d jobs conform", sure, rounds)
	}
	if repeating == 0 {
		t.Error("no job has an item twice")
	}
}

func TestShapeConforms(t *testing.T) {
	schema, good := schemaAndJob(t)
	if !schema.shape.conformsMap(good, "status") {
		t.Error("a good job does not conform: every write would take the slow way")
	}
	if schema.shape.conforms(good) {
		t.Error("a condition without its fields conforms")
	}
	if !schema.shape.fields["spec"].knows(good["spec"]) {
		t.Error("a good job has unknown fields: every write would take the slow way")
	}
}

func schemaAndJob(t *testing.T) (*Schema, map[string]any) {
	t.Helper()
	definition, err := crd.Get(v1.TrainingJobGroupKind)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := NewSchema(definition, "v1")
	if err != nil {
		t.Fatal(err)
	}
	json, err := yaml.YAMLToJSON([]byte(broadJob))
	if err != nil {
		t.Fatal(err)
	}
	var good map[string]any
	if err := utiljson.Unmarshal(json, &good); err != nil {
		t.Fatal(err)
	}
	return schema, good
}

// breakAt changes, adds or removes one thing at a random place.
func breakAt(random *rand.Rand, value any) {
	switch value := value.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(value))
		if len(keys) == 0 {
			value["name"] = oddValue(random)
			return
		}
		key := keys[random.IntN(len(keys))]
		switch random.IntN(8) {
		case 0:
			value[key] = oddValue(random)
		case 1:
			delete(value, key)
		case 2:
			value["strange"] = oddValue(random)
		default:
			if below := value[key]; isTree(below) {
				breakAt(random, below)
			} else {
				value[key] = oddValue(random)
			}
		}
	case []any:
		if len(value) == 0 {
			return
		}
		index := random.IntN(len(value))
		if random.IntN(6) == 0 {
			value[index] = runtime.DeepCopyJSONValue(value[random.IntN(len(value))])
			return
		}
		if random.IntN(6) == 0 || !isTree(value[index]) {
			value[index] = oddValue(random)
			return
		}
		breakAt(random, value[index])
	}
}

func isTree(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func oddValue(random *rand.Rand) any {
	values := []any{
		nil, true, "", "a", "1", "-5Gi", "a b", "Always", "Worker", strings.Repeat("é", 70),
		int64(0), int64(-1), int64(7), int64(70000), int64(1) << 33, int64(1) << 60, 1.5, 2.0,
	}
	switch choice := random.IntN(len(values) + 4); choice {
	case len(values):
		return map[string]any{}
	case len(values) + 1:
		return []any{}
	case len(values) + 2:
		return []any{nil, map[string]any{"containerPort": int64(1)}}
	case len(values) + 3:
		return map[string]any{"name": nil, "port": "x"}
	default:
		return values[choice]
	}
}
