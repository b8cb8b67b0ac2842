package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Cases go by what the cluster asks about: our own kinds everywhere, but where a
// policy has conditions, which entries evaluate that leave system namespaces and
// deletions alone; other kinds outside of these namespaces.
func TestCasesGoByWhatIsAskedAbout(t *testing.T) {
	dir := t.TempDir()
	policy := func(name, more string) string {
		return `apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: ` + name + `}
spec:
  failurePolicy: Ignore
  match: {resources: [{group: penstock.dev, kinds: [TrainingJob]}, {kinds: [Pod]}], operations: [CREATE, DELETE]}
` + more + `  rego: |
    package p
    violation contains "no" if true
`
	}
	const job = "{apiVersion: penstock.dev/v1, kind: TrainingJob, metadata: {name: a, namespace: NAMESPACE}, spec: {framework: PyTorch, roles: []}}"
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: NAMESPACE}, spec: {containers: []}}"
	denied := func(policy, object, namespace, more string) string {
		return "name: " + policy + "\npolicy: " + policy + "\nobject: " + strings.ReplaceAll(object, "NAMESPACE", namespace) + "\n" + more +
			"expect: deny\nviolations: [{field: '', message: \"no\"}]\n---\n"
	}
	unasked := func(policy, object, namespace, more string) string {
		return "name: " + policy + "\npolicy: " + policy + "\nobject: " + strings.ReplaceAll(object, "NAMESPACE", namespace) + "\n" + more + "unasked: true\nexpect: allow\n---\n"
	}
	const deletion = "operation: DELETE\n"
	for name, text := range map[string]string{
		"plain.yaml":       policy("plain", ""),
		"conditional.yaml": policy("conditional", "  matchConditions: [{name: c, expression: \"true\"}]\n"),
		"cases/cases.yaml": denied("plain", job, "cni", "") + denied("plain", job, "cni", deletion) + denied("plain", pod, "team", deletion) + unasked("plain", pod, "cni", "") +
			denied("conditional", job, "team", "") + unasked("conditional", job, "cni", "") + denied("conditional", job, "team", deletion) + unasked("conditional", job, "cni", deletion) +
			denied("conditional", pod, "team", deletion) + strings.TrimSuffix(unasked("conditional", pod, "cni", ""), "---\n"),
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, code := runCommand(t, nil, "policy", "test", dir, "--system-namespaces", "cni")
	if code != 0 || !strings.Contains(got, "10 tests: 10 passed") {
		t.Errorf("exit code %d\n%s", code, got)
	}
}
