package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a cluster would warn the author of a policy of is said where the policy is
// read offline, too.
func TestWarningsOfPolicies(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"policies/deletions.yaml": `apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: deletions}
spec:
  failurePolicy: Ignore
  match: {resources: [{group: apps, kinds: [deployment]}, {kinds: [Pod]}]}
  rego: |
    package deletions
    violation contains "is kept" if input.operation == "DELETE"
`,
		"policies/cases/deletions.yaml": "name: a pod\nobject: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: []}}\nexpect: allow\n",
		"pod.yaml":                      "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: []}}\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	want := []string{
		"Warning: policies/deletions.yaml: document 1: policy deletions: spec.match.resources[0].kinds[0]: deployment.apps is not served, and names are taken as they are spelt: write Deployment",
		"Warning: policies/deletions.yaml: document 1: policy deletions: spec.match.operations: the rule looks for DELETE (spec.rego, line 2)",
	}
	for name, args := range map[string][]string{
		"check":       {"check", "-f", "pod.yaml", "--policies", "policies/deletions.yaml"},
		"policy test": {"policy", "test", "policies"},
	} {
		stdout, stderr, code := runStreams(t, nil, args...)
		if code != 0 || strings.Contains(stdout, "Warning") {
			t.Errorf("%s: exit code %d\n%s", name, code, stdout)
		}
		for _, line := range want {
			if !strings.Contains(stderr, line) {
				t.Errorf("%s: got\n%swant %s in it", name, stderr, line)
			}
		}
	}
	stdout, _, _ := runStreams(t, nil, "policy", "test", "policies", "-o", "json")
	if !strings.Contains(stdout, `"warnings": [
    "policies/deletions.yaml: document 1: policy deletions: spec.match`) {
		t.Errorf("policy test -o json:\n%s", stdout)
	}
}
