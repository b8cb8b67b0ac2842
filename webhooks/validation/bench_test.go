package validation_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-dev/penstock/webhooks/defaulting"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// jobOf4kB is a job of two roles of the size that people write.
func jobOf4kB(t testing.TB) map[string]any {
	var env strings.Builder
	for i := range 18 {
		fmt.Fprintf(&env, "{name: VARIABLE_%d, value: a value of some length %d}, ", i, i)
	}
	template := `template: {metadata: {labels: {team: vision}}, spec: {
    tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}],
    volumes: [{name: shm, emptyDir: {medium: Memory}}],
    containers: [{name: pytorch, image: registry.example/train:1, command: [python, train.py], env: [` + env.String() + `],
      volumeMounts: [{name: shm, mountPath: /dev/shm}],
      resources: {limits: {cpu: 8, memory: 64Gi, nvidia.com/gpu: 8}}}]}}`
	job := jobOf(t, head+`spec: {framework: PyTorch, roles: [{name: Master, `+template+`}, {name: Worker, replicas: 4, `+template+`}]}`)
	return toContent(t, job)
}

func BenchmarkSchemaValidate(b *testing.B) {
	schema, obj := trainingJobSchema(b), jobOf4kB(b)
	schema.Default(obj)
	text, _ := json.Marshal(obj)
	changed := runtime.DeepCopyJSON(obj)
	changed["spec"].(map[string]any)["runPolicy"].(map[string]any)["suspend"] = true
	ctx := b.Context()
	b.ReportMetric(float64(len(text)), "B/object")
	b.Run("create", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if errs := schema.Validate(ctx, nil, obj); len(errs) > 0 {
				b.Fatal(errs)
			}
		}
	})
	b.Run("update", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if errs := schema.Validate(ctx, obj, changed); len(errs) > 0 {
				b.Fatal(errs)
			}
		}
	})
	b.Run("strict", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			schema.Strict(obj)
		}
	})
	b.Run("default", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			schema.Default(obj)
		}
	})
}

func BenchmarkTrainingJob(b *testing.B) {
	job := sensible(1)
	b.Run("default", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			defaulting.DefaultTrainingJob(job)
		}
	})
	b.Run("validate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			validation.ValidateTrainingJob(job, job)
		}
	})
}
