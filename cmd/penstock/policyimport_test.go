package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The golden file of a case is its name with .golden.txt.
func TestPolicyImport(t *testing.T) {
	tests := map[string]struct {
		args []string
		// stdin is the name of a file to read from standard input.
		stdin string
		want  exitCode
	}{
		"files":                {args: []string{"-f", "template.yaml", "-f", "constraints.yaml"}},
		"stdin":                {args: []string{"-f", "template.yaml", "-f", "-", "--failure-policy", "Fail"}, stdin: "constraints.yaml"},
		"lone":                 {args: []string{"-f", "template.yaml", "-f", "lone.yaml"}, want: 1},
		"broken":               {args: []string{"-f", "template.yaml", "-f", "constraints.yaml", "-f", "broken.yaml", "-f", "absent.yaml"}, want: 2},
		"system-namespaces":    {args: []string{"-f", "template.yaml", "-f", "constraints.yaml", "--failure-policy", "Fail", "--system-namespaces", "cni"}},
		"usage-no-file":        {want: 2},
		"usage-argument":       {args: []string{"template.yaml"}, want: 2},
		"usage-flag":           {args: []string{"-f", "template.yaml", "--strict"}, want: 2},
		"usage-failure-policy": {args: []string{"-f", "template.yaml", "--failure-policy", "Warn"}, want: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir("testdata/import")
			var stdin []byte
			if tc.stdin != "" {
				var err error
				if stdin, err = os.ReadFile(tc.stdin); err != nil {
					t.Fatal(err)
				}
			}
			got, code := runCommand(t, stdin, append([]string{"policy", "import"}, tc.args...)...)
			if code != tc.want {
				t.Errorf("exit code %d, want %d", code, tc.want)
			}
			compareGolden(t, name+".golden.txt", got)
		})
	}
}

// warnings finds what is written on standard error.
var warnings = regexp.MustCompile(`(?m)^Warning: .*\n`)

// What is imported is in force as it is written.
func TestImportedPoliciesJudge(t *testing.T) {
	t.Chdir("testdata/import")
	policies := filepath.Join(t.TempDir(), "policies.yaml")
	imported, code := runCommand(t, nil, "policy", "import", "-f", "template.yaml", "-f", "constraints.yaml")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, imported)
	}
	if err := os.WriteFile(policies, []byte(warnings.ReplaceAllString(imported, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	got, code := runCommand(t, nil, "check", "-f", "pods.yaml", "--policies", policies)
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	compareGolden(t, "judged.golden.txt", got)
}
