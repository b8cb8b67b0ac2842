package check_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock-dev/penstock/cmd/penstock/check"
)

// Whatever is read gets an answer, and a refusal says why.
func FuzzCheck(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "check", "*.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("{apiVersion: v1, kind: List, items: [{apiVersion: penstock.dev/v1, kind: TrainingJob, metadata: 1, spec: []}]}"))
	f.Add([]byte("{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: [a], labels: {a: 1}}, spec: {tfReplicaSpecs: {Worker: 1}}}"))
	checker := newChecker(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, unreadable := check.Read("fuzz.yaml", text)
		var results []check.Result
		for _, object := range objects {
			result := checker.Check(t.Context(), object)
			if result.Allowed != (len(result.Faults) == 0) {
				t.Errorf("allowed is %t with %d faults: %v", result.Allowed, len(result.Faults), result.Faults)
			}
			results = append(results, result)
			_ = checker.Store(t.Context(), object)
		}
		report := check.NewReport(results, unreadable)
		if report.WriteText(io.Discard) != nil || report.WriteJSON(io.Discard) != nil {
			t.Error("the report cannot be written")
		}
	})
}
