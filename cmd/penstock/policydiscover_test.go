package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoTestIsPassedOver: what somebody wrote as a test is run, or is an error.
func TestNoTestIsPassedOver(t *testing.T) {
	const policy = `apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: p}
spec:
  match: {resources: [{kinds: [ConfigMap]}]}
  rego: |
    package p
    violation contains "no" if input.object.data.bad
`
	const object = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team}, data: {}}`
	tests := map[string]struct {
		file, text string
		want       string
	}{
		"a case in flow style":            {"cases/flow.yaml", "{name: a, policy: p, object: " + object + ", expect: deny, violations: [{field: '', message: no}]}\n", "1 failed"},
		"a case that is indented":         {"cases/indented.yaml", "  name: a\n  policy: p\n  object: " + object + "\n  expect: deny\n  violations: [{field: '', message: no}]\n", "1 failed"},
		"a case in JSON":                  {"cases/a.json", `{"name":"a","policy":"p","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"team"}},"expect":"deny","violations":[{"field":"","message":"no"}]}`, "1 failed"},
		"cases in a list":                 {"cases/list.yaml", "- name: a\n  policy: p\n  object: " + object + "\n  expect: deny\n", "list.yaml: line 1: cases in a list are not read: make each a document of its own, with --- between them"},
		"Rego of another name":            {"test_p.rego", "package p_test\n\ntest_never if false\n", "test_p.rego: test_never is never run: tests lie in files that end in _test.rego, beside the policy"},
		"a test in a policy's Rego":       {"more.yaml", strings.ReplaceAll(policy, "name: p", "name: more") + "    test_never if false\n", "more.yaml: test_never is never run"},
		"a second document of suites":     {"suite.yaml", "apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\n---\napiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\n", "suite.yaml: line 4: a file of a suite is one document"},
		"a test of a suite without cases": {"suite.yaml", "apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\ntests: [{name: empty, template: none.yaml, cases: []}]\n", `suite.yaml: test "empty" has no cases: add one, or remove the test`},
		"a suite behind another":          {"suite.yaml", object + "\n---\napiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\n", "suite.yaml: line 3: a file of a suite is one document"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"p.yaml": policy, tc.file: tc.text} {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, code := runCommand(t, nil, "policy", "test", dir)
			if code == 0 || !strings.Contains(got, tc.want) {
				t.Errorf("exit code %d, want %q in\n%s", code, tc.want, got)
			}
		})
	}
}
