package check_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-dev/penstock/cmd/penstock/check"
)

// A kind in other letters is not judged, and nobody should take that for a pass.
func TestKindsThatAreMisspelt(t *testing.T) {
	const spelt = " is no kind that is known, and names are taken as they are spelt: write "
	tests := map[string]struct{ apiVersion, kind, want string }{
		"an upstream kind":            {"kubeflow.org/v1", "PytorchJob", "kind: PytorchJob.kubeflow.org" + spelt + "PyTorchJob"},
		"a kind in small letters":     {"apps/v1", "deployment", "kind: deployment.apps" + spelt + "Deployment"},
		"a kind by its resource":      {"apps/v1", "Deployments", "kind: Deployments.apps" + spelt + "Deployment"},
		"a kind in another group":     {"v1", "Deployment", "kind: Deployment of the core group is no kind that is known; Deployment is in group apps"},
		"one of ours":                 {"penstock.dev/v1", "Trainingjob", "kind: Trainingjob.penstock.dev" + spelt + "TrainingJob"},
		"another kind of the group":   {"kubeflow.org/v1", "Notebook", ""},
		"a kind of a group of others": {"example.com/v1", "deployment", ""},
		"a kind that is there":        {"apps/v1", "Deployment", ""},
	}
	checker, err := check.New(check.Options{Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		result := checker.Check(t.Context(), check.Object{JSON: []byte(`{"apiVersion":"` + tc.apiVersion + `","kind":"` + tc.kind + `","metadata":{"name":"a"}}`)})
		var want, got []string
		if tc.want != "" {
			want = []string{tc.want}
		}
		for _, warning := range result.Warnings {
			got = append(got, warning.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
