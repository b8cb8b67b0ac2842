package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	report, err := policy.Test(t.Context(), policy.TestOptions{Paths: []string{root}, Run: regexp.MustCompile("suite.yaml: ")})
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range report.Results {
		if result.Outcome == policy.Failed {
			t.Errorf("%s: %s: %s", result.File, result.Name, result.Message)
		}
	}
	for _, err := range report.Errors {
		t.Error(err)
	}
	t.Log(report.Summary)
}

func TestSuite(t *testing.T) {
	report, err := policy.Test(t.Context(), policy.TestOptions{Paths: []string{"testdata/suite"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, result := range report.Results {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s: %s %s", result.Name, result.Outcome, result.Message)))
	}
	want := []string{
		"owned: allowed: passed",
		"owned: refused: passed",
		"owned: refused by what is stored: passed",
		"owned: a deletion: passed",
		"owned: skipped: skipped",
		`owned: fails: failed 1 violations match, want 2; there are: ["no owner"]`,
		"owned: no such file: failed testdata/suite/none.yaml: no such file or directory",
		"owned: a deletion of nothing: failed deletion-of-nothing.yaml: the AdmissionReview of a deletion needs request.oldObject",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if report, err = policy.Test(t.Context(), policy.TestOptions{Paths: []string{"../check"}}); err != nil || len(report.Errors) != 1 {
		t.Errorf("a folder without tests passes: %v, %v", report.Errors, err)
	}
}

// A suite that cannot be read, or says what nobody understands, must not pass
// for some other file.
func TestBrokenSuiteIsNamed(t *testing.T) {
	for name, suite := range map[string]string{
		"yaml":                   "tests: [\n",
		`unknown field "tets"`:   "tets: []\n",
		`unknown field "mesage"`: "tests: [{cases: [{assertions: [{mesage: x}]}]}]\n",
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{
			"sample.yaml": "a: {{ .Values.template }}\n",
			"suite.yaml":  "apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\nmetadata: {name: s}\n" + suite,
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		report, err := policy.Test(t.Context(), policy.TestOptions{Paths: []string{dir}})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Errors) != 1 || !strings.Contains(report.Errors[0], filepath.Join(dir, "suite.yaml")) || !strings.Contains(report.Errors[0], name) {
			t.Errorf("got %q, want the suite's path and %s", report.Errors, name)
		}
	}
}
