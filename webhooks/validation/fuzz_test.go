package validation_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

var seeds = []string{
	`{"spec":{"framework":"PyTorch","roles":[{"name":"master","template":{"spec":{"containers":[{"name":"pytorch","image":"a"}]}}}]}}`,
	`{"spec":{"framework":"JAX","elastic":{"minReplicas":-1},"roles":[{"name":"Worker","replicas":2147483647},{"name":"worker"}]}}`,
	`{"spec":{"framework":"MPI","mpi":{"mainContainer":"x"},"roles":[null,{"name":""}],"gang":{"minAvailable":0,"topology":{}}}}`,
	`{"spec":{"framework":"TensorFlow","roles":[{"name":"Chief"},{"name":"Master","template":{"spec":{"hostNetwork":true,"containers":[{"ports":[{},{}]}]}}}]}}`,
	`{"apiVersion":"penstock.dev/v1","kind":"TrainingJob","metadata":null,"spec":{"roles":{},"framework":1}}`,
	`{"metadata":{"generateName":"é-"}}`,
	`{}`,
}

// FuzzTrainingJob holds the laws of the typed path for whatever decodes.
func FuzzTrainingJob(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		job := &v1.TrainingJob{}
		if json.Unmarshal(text, job) != nil {
			return
		}
		defaulting.DefaultTrainingJob(job)
		first, err := json.Marshal(job)
		if err != nil {
			return
		}
		defaulting.DefaultTrainingJob(job)
		if second, _ := json.Marshal(job); string(first) != string(second) {
			t.Errorf("defaulting twice differs:\n%s\n%s", first, second)
		}
		for _, err := range validation.ValidateTrainingJob(nil, job) {
			if err.Detail == "" {
				t.Errorf("%v says nothing", err)
			}
		}
		validation.ValidateTrainingJob(job, job)
	})
}

// FuzzSchema holds the laws of the untyped path for whatever is an object.
func FuzzSchema(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	schema := trainingJobSchema(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		var obj map[string]any
		if utiljson.Unmarshal(text, &obj) != nil || obj == nil {
			return
		}
		ctx := t.Context()
		unknown := schema.Strict(obj)
		schema.ValidateMeta(ctx, nil, obj)
		schema.Prune(obj)
		if left := schema.Strict(obj); len(left) > 0 {
			t.Errorf("what was pruned is still there: %v, before %v", left, unknown)
		}
		schema.Default(obj)
		errs := schema.Validate(ctx, nil, obj)
		if rest := validation.Tolerated(errs, errs, obj, runtime.DeepCopyJSON(obj)); len(rest) > 0 {
			t.Errorf("faults of an unchanged object are not tolerated: %v", rest)
		}
	})
}
