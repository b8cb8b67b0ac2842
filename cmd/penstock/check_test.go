package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// checkDir holds manifests and, beside them, what is said of them.
const checkDir = "testdata/check"

// The golden file of a case is its name with .golden. and what it writes: txt,
// json, sarif or xml. It holds what the command writes and, as text, its errors.
func TestCheck(t *testing.T) {
	tests := map[string]struct {
		args []string
		// stdin is the name of a file to read from standard input.
		stdin string
		want  exitCode
	}{
		"good":                     {args: []string{"-f", "good.yaml"}},
		"good-json":                {args: []string{"-f", "good.yaml", "-o", "json"}},
		"all-faults-v1":            {args: []string{"-f", "faults-v1.yaml"}, want: 1},
		"all-faults-v1alpha1":      {args: []string{"-f", "faults-v1alpha1.yaml"}, want: 1},
		"all-faults-upstream":      {args: []string{"-f", "faults-upstream.yaml"}, want: 1},
		"all-faults-json":          {args: []string{"-f", "faults-v1alpha1.yaml", "-o", "json"}, want: 1},
		"list":                     {args: []string{"-f", "list.yaml", "-n", "team-b"}, want: 1},
		"list-json":                {args: []string{"-f", "list.yaml", "-o", "json"}, want: 1},
		"stdin":                    {args: []string{"-f", "-"}, stdin: "good.yaml"},
		"several-files":            {args: []string{"-f", "good.yaml", "-f", "faults-v1.yaml"}, want: 1},
		"folder":                   {args: []string{"-f", "folder"}},
		"folder-recursive":         {args: []string{"-f", "folder", "-R"}, want: 1},
		"ill-typed":                {args: []string{"-f", "ill-typed.yaml"}, want: 1},
		"unknown-field":            {args: []string{"-f", "unknown-field.yaml"}, want: 1},
		"null-role":                {args: []string{"-f", "null-role.yaml"}, want: 1},
		"multi-framework":          {args: []string{"-f", "multi-framework.yaml"}, want: 1},
		"forged-annotation":        {args: []string{"-f", "forged.yaml"}, want: 1},
		"update-tolerated":         {args: []string{"-f", "update-tolerated.yaml", "--old", "stored-suspended.yaml"}},
		"update-refused-json":      {args: []string{"-f", "update-refused.yaml", "--old", "stored.yaml", "-o", "json"}, want: 1},
		"update-of-upstream":       {args: []string{"-f", "upstream-changed.yaml", "--old", "upstream-stored.yaml"}, want: 1},
		"update-of-upstream-sarif": {args: []string{"-f", "upstream-changed.yaml", "--old", "upstream-stored.yaml", "--policies", "none", "-o", "sarif"}, want: 1},
		"unasked":                  {args: []string{"-f", "unasked.yaml", "--policies", "unasked-policies.yaml"}},
		"unasked-junit":            {args: []string{"-f", "unasked.yaml", "--policies", "unasked-policies.yaml", "-o", "junit"}},
		"nested-lists":             {args: []string{"-f", "nested.yaml", "--policies", "unasked-policies.yaml"}, want: 2},
		"nested-lists-json":        {args: []string{"-f", "nested.yaml", "--policies", "unasked-policies.yaml", "-o", "json"}, want: 2},
		"update-of-nothing":        {args: []string{"-f", "good.yaml", "--old", "stored.yaml"}, want: 2},
		"update-keeps-v1-field":    {args: []string{"-f", "kept.yaml", "--old", "kept-stored.yaml"}, want: 1},
		"repeated-key":             {args: []string{"-f", "repeated-key.yaml", "-f", "repeated-key.json"}, want: 1},
		"unreadable":               {args: []string{"-f", "unreadable.yaml", "-f", "empty.yaml", "-f", "absent.yaml"}, want: 2},
		"unreadable-json":          {args: []string{"-f", "unreadable.yaml", "-o", "json"}, want: 2},
		"template":                 {args: []string{"-f", "template.yaml", "-f", "template-of-nothing.yaml"}, want: 2},
		"foreign":                  {args: []string{"-f", "foreign.yaml"}, want: 1},
		"workload-policies":        {args: []string{"-f", "workloadpolicy.yaml"}, want: 1},
		"policies-unknown":         {args: []string{"-f", "good.yaml", "--policies", "policies.yaml"}},
		"policies-unknown-json":    {args: []string{"-f", "good.yaml", "--policies", "policies.yaml", "-o", "json"}},
		"policies-of-upstream":     {args: []string{"-f", "upstream.yaml", "--policies", "policies.yaml"}},
		"policies-refuse": {args: []string{"-f", "good.yaml", "--policies", "policies.yaml", "--namespace-file", "namespaces.yaml",
			"--user", "mallory", "--group", "team", "--now", "2031-06-01T00:00:00Z"}, want: 1},
		"policies-warn": {args: []string{"-f", "good.yaml", "--policies", "policies.yaml", "--namespace-file", "namespaces.yaml",
			"--user", "ada", "--now", "2030-06-01T00:00:00Z"}},
		"render":      {args: []string{"-f", "render.yaml", "--policies", "none", "--render"}, want: 1},
		"render-ray":  {args: []string{"-f", "render-ray.yaml", "--policies", "none", "--render"}},
		"render-json": {args: []string{"-f", "render.yaml", "--policies", "none", "--render", "-o", "json"}, want: 1},
		"explain": {args: []string{"-f", "good.yaml", "--explain", "--policies", "policies.yaml", "--namespace-file", "namespaces.yaml",
			"--user", "mallory", "--now", "2031-06-01T00:00:00Z"}, want: 1},
		"explain-json": {args: []string{"-f", "good.yaml", "--explain", "-o", "json", "--policies", "policies.yaml", "--user", "mallory",
			"--now", "2031-06-01T00:00:00Z"}, want: 1},
		"explain-secrets":         {args: []string{"-f", "secrets.yaml", "--explain", "--policies", "secrets-policy.yaml"}, want: 1},
		"policies-none":           {args: []string{"-f", "faults-v1alpha1.yaml", "--policies", "none"}, want: 1},
		"policies-broken":         {args: []string{"-f", "good.yaml", "--policies", "workloadpolicy.yaml"}, want: 2},
		"policies-absent":         {args: []string{"-f", "good.yaml", "--policies", "good.yaml"}, want: 2},
		"inventory-not-given":     {args: []string{"-f", "good.yaml", "--policies", "inventory-policies.yaml"}},
		"labels-not-given":        {args: []string{"-f", "labels.yaml", "--policies", "labels-policy.yaml"}, want: 1},
		"inventory":               {args: []string{"-f", "good.yaml", "--policies", "inventory-policies.yaml", "--inventory", "inventory.yaml"}, want: 1},
		"inventory-of-upstream":   {args: []string{"-f", "upstream.yaml", "--policies", "inventory-policies.yaml", "--inventory", "inventory.yaml"}, want: 1},
		"inventory-of-nothing":    {args: []string{"-f", "good.yaml", "--policies", "inventory-policies.yaml", "--inventory", "inventory-empty.yaml", "--namespace-file", "namespaces.yaml"}, want: 1},
		"inventory-nameless":      {args: []string{"-f", "good.yaml", "--inventory", "inventory-nameless.yaml"}, want: 2},
		"inventory-absent":        {args: []string{"-f", "good.yaml", "--inventory", "absent.yaml"}, want: 2},
		"options-unknown":         {args: []string{"-f", "good.yaml", "--policies", "options-policy.yaml", "--user", "ada"}},
		"service-account":         {args: []string{"-f", "good.yaml", "--policies", "groups-policy.yaml", "--user", "system:serviceaccount:ci:deployer"}, want: 1},
		"sarif":                   {args: []string{"-f", "upstream.yaml", "-f", "good.yaml", "-f", "unknown-field.yaml", "--policies", "inventory-policies.yaml", "--inventory", "inventory.yaml", "-o", "sarif"}, want: 1},
		"unreadable-sarif":        {args: []string{"-f", "unreadable.yaml", "--policies", "none", "-o", "sarif"}, want: 2},
		"junit":                   {args: []string{"-f", "folder", "-f", "foreign.yaml", "--policies", "inventory-policies.yaml", "--inventory", "inventory.yaml", "-o", "junit"}, want: 1},
		"unreadable-junit":        {args: []string{"-f", "unreadable.yaml", "-f", "absent.yaml", "--policies", "none", "-o", "junit"}, want: 2},
		"usage-no-file":           {want: 2},
		"usage-argument":          {args: []string{"good.yaml"}, want: 2},
		"usage-flag":              {args: []string{"-f", "good.yaml", "--strict"}, want: 2},
		"usage-output":            {args: []string{"-f", "good.yaml", "-o", "xml"}, want: 2},
		"usage-render":            {args: []string{"-f", "good.yaml", "--render", "-o", "sarif"}, want: 2},
		"usage-now":               {args: []string{"-f", "good.yaml", "--now", "tomorrow"}, want: 2},
		"usage-group-alone":       {args: []string{"-f", "good.yaml", "--group", "team"}, want: 2},
		"usage-no-namespace-file": {args: []string{"-f", "good.yaml", "--namespace-file", "good.yaml"}, want: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(checkDir)
			got, code := runCheck(t, readStdin(t, tc.stdin), tc.args...)
			if code != tc.want {
				t.Errorf("exit code %d, want %d", code, tc.want)
			}
			compareGolden(t, name+".golden."+extensionOf(tc.args), got)
		})
	}
}

// What is said to be the line of a rule of the library must be that.
func TestCheckExplainsLibrary(t *testing.T) {
	got, _ := runCheck(t, nil, "-f", filepath.Join(checkDir, "faults-v1.yaml"), "--explain")
	found := regexp.MustCompile(`(?m)^    (policies/library/.*\.rego):(\d+): (.*)$`).FindAllStringSubmatch(got, -1)
	if len(found) == 0 {
		t.Fatalf("no rule of the library is named:\n%s", got)
	}
	for _, match := range found {
		text, err := os.ReadFile(filepath.Join("..", "..", match[1]))
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.Atoi(match[2])
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(string(text), "\n"); number > len(lines) || strings.TrimSpace(lines[number-1]) != match[3] {
			t.Errorf("%s is not line %d of %s", match[3], number, match[1])
		}
	}
}

// An exception does not count from its end on: to the second what audit says,
// whose test has the same instants.
func TestCheckHoldsExceptionsToTheirEnd(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	err := os.WriteFile(policy, []byte(`apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: excepts}
spec:
  match: {resources: [{kinds: [Pod]}]}
  exceptions: [{namespaces: [team], until: "2031-06-01T12:00:00Z", reason: r}]
  rego: |
    package a
    violation contains {"msg": "no", "field": "spec.a"} if true
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	pod := []byte("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team}, spec: {containers: []}}")
	for now, want := range map[string]exitCode{
		"2030-06-01T12:00:00Z": 0, "2031-06-01T11:59:59Z": 0, "2031-06-01T12:00:00Z": 1, "2031-06-01T12:00:01Z": 1,
	} {
		if out, got := runCheck(t, pod, "-f", "-", "--policies", policy, "--now", now, "--system-namespaces", "cni"); got != want {
			t.Errorf("at %s: exit code %d, want %d:\n%s", now, got, want, out)
		}
	}
}

// A policy that every pod would wait for is refused as in the cluster, where it
// is judged and where it is to judge, unless the flag says what the manager's says.
func TestCheckKnowsSystemNamespaces(t *testing.T) {
	const spec = "spec:\n  match: {resources: [{kinds: [Pod]}]}\n  rego: \"package a\\nviolation contains \\\"no\\\"\"\n"
	t.Chdir(t.TempDir())
	if err := os.WriteFile("all-pods.yaml", []byte("apiVersion: penstock.dev/v1\nkind: WorkloadPolicy\nmetadata: {name: a}\n"+spec), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("cases", 0o700); err != nil {
		t.Fatal(err)
	}
	const cases = "name: a pod\nobject: {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team}, spec: {containers: []}}\nexpect: deny\nviolations: [{message: 'no'}]\n" +
		"---\nname: a pod of the network\nobject: {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: cni}, spec: {containers: []}}\nunasked: true\nexpect: allow\n"
	if err := os.WriteFile("cases/all-pods.yaml", []byte(cases), 0o600); err != nil {
		t.Fatal(err)
	}
	pods := []byte("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team}, spec: {containers: []}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: cni}, spec: {containers: []}}\n")
	for name, tc := range map[string]struct {
		args   []string
		stdin  []byte
		refuse exitCode
		named  string
	}{
		"judged":    {args: []string{"check", "-f", "all-pods.yaml"}, refuse: checkRefused, named: "1 object: 1 admitted"},
		"judging":   {args: []string{"check", "-f", "-", "--policies", "all-pods.yaml"}, stdin: pods, refuse: checkUsage, named: "Pod cni/a not judged: no policy is ever asked about namespace cni, as what the cluster needs to start runs there\n2 objects: 1 refused, 1 not judged"},
		"is tested": {args: []string{"policy", "test", "."}, refuse: checkUsage, named: "2 tests: 2 passed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, code := runCommand(t, tc.stdin, tc.args...)
			if code != tc.refuse || !strings.Contains(got, "spec.matchConditions: Required value: a policy on pods that fails closed") {
				t.Errorf("exit code %d:\n%s", code, got)
			}
			if got, _ := runCommand(t, tc.stdin, append(tc.args, "--system-namespaces", "dns,cni")...); !strings.Contains(got, tc.named) {
				t.Errorf("want %q in\n%s", tc.named, got)
			}
		})
	}
}

// runCheck gives what penstock check writes.
func runCheck(t *testing.T, stdin []byte, args ...string) (string, exitCode) {
	t.Helper()
	return runCommand(t, stdin, append([]string{"check"}, args...)...)
}
