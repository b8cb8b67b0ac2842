package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-dev/penstock/cmd/penstock/policy"
)

// TestGatekeeperLibrary runs the suites of a checkout of the public
// gatekeeper-library, whose folder the environment names.
func TestGatekeeperLibrary(t *testing.T) {
	root := os.Getenv("GATEKEEPER_LIBRARY")
	if root == "" {
		t.Skip("GATEKEEPER_LIBRARY names no checkout")
	}
	results, err := policy.RunSuites(t.Context(), []string{root})
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		if result.Err != nil {
			t.Errorf("%s: %s: %s: %v", result.File, result.Test, result.Case, result.Err)
		}
	}
	t.Logf("%d cases", len(results))
}

func TestSuite(t *testing.T) {
	results, err := policy.RunSuites(t.Context(), []string{"testdata/suite"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, result := range results {
		got = append(got, fmt.Sprintf("%s: %s: %t %v", result.Test, result.Case, result.Skipped, result.Err))
	}
	want := []string{
		"owned: allowed: false <nil>",
		"owned: refused: false <nil>",
		"owned: refused by what is stored: false <nil>",
		"owned: a deletion: false <nil>",
		"owned: skipped: true <nil>",
		`owned: fails: false 1 violations match, want 2; there are: ["no owner"]`,
		"owned: no such file: false testdata/suite/none.yaml: no such file or directory",
		"owned: a deletion of nothing: false deletion-of-nothing.yaml: the AdmissionReview of a deletion needs request.oldObject",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if _, err := policy.RunSuites(t.Context(), []string{"../check"}); err == nil {
		t.Error("a folder without suites passes")
	}
}

// A suite that cannot be read must not pass for some other file.
func TestBrokenSuiteIsNamed(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sample.yaml": "a: {{ .Values.template }}\n",
		"suite.yaml":  "apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\ntests: [\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := policy.RunSuites(t.Context(), []string{dir}); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "suite.yaml")) {
		t.Errorf("got %v, want the suite's path", err)
	}
}
