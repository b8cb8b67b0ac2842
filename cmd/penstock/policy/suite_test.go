package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// What a constraint matches is part of what a suite tests: namespaces by the labels
// of those in the inventory, and names.
func TestSuiteGoesByTheMatch(t *testing.T) {
	const suite = `apiVersion: test.gatekeeper.sh/v1alpha1
kind: Suite
metadata: {name: s}
tests:
- name: prod
  template: template.yaml
  constraint: constraint.yaml
  cases:
  - {name: selected, object: prod.yaml, inventory: [namespaces.yaml], assertions: [{violations: yes}]}
  - {name: wrong, object: prod.yaml, inventory: [namespaces.yaml], assertions: [{violations: no}]}
  - {name: left out, object: test.yaml, inventory: [namespaces.yaml], assertions: [{violations: no}]}
  - {name: of another name, object: other.yaml, inventory: [namespaces.yaml], assertions: [{violations: no}]}
  - {name: no namespace, object: prod.yaml, assertions: [{violations: yes}]}
  - {name: a half, object: prod.yaml, inventory: [namespaces.yaml], assertions: [{violations: 1.5}]}
`
	object := func(name, namespace string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: " + namespace + "}}"
	}
	dir := t.TempDir()
	for file, text := range map[string]string{
		"suite.yaml": suite, "prod.yaml": object("a-1", "prod"), "test.yaml": object("a-1", "test"), "other.yaml": object("b", "prod"),
		"namespaces.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: prod, labels: {env: prod}}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: test, labels: {env: test}}}",
		"template.yaml": "apiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\nmetadata: {name: nay}\nspec:\n  crd: {spec: {names: {kind: Nay}}}\n  targets:\n" +
			"  - target: admission.k8s.gatekeeper.sh\n    rego: |\n      package nay\n      violation[{\"msg\": \"no\"}] { true }\n",
		"constraint.yaml": `{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: Nay, metadata: {name: nay}, spec: {match: {kinds: [{apiGroups: [""], kinds: [ConfigMap]}], name: a-*, namespaceSelector: {matchLabels: {env: prod}}}}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report, err := policy.Test(t.Context(), policy.TestOptions{Paths: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Clone(report.Errors)
	for _, result := range report.Results {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s: %s %s", result.Name, result.Outcome, result.Message)))
	}
	want := []string{
		"prod: selected: passed",
		`prod: wrong: failed 1 violations match, want no; there are: ["no"]`,
		"prod: left out: passed",
		"prod: of another name: passed",
		"prod: no namespace: failed policy nay could not be evaluated: the labels of namespace prod are not known: the inventory of the case has no Namespace prod: add it",
		`prod: a half: failed 1 violations match, want 1.5; there are: ["no"]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}
