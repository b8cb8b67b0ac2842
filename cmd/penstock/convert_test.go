package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// convertDir holds manifests and, beside them, what becomes of them.
const convertDir = "testdata/convert"

// The golden file of a case is its name with .golden.txt. It holds what the
// command writes to standard output and then to standard error.
func TestConvert(t *testing.T) {
	tests := map[string]struct {
		args  []string
		stdin string
		want  exitCode
	}{
		"upstream":             {args: []string{"-f", "upstream.yaml"}, want: 1},
		"upstream-json":        {args: []string{"-f", "upstream.yaml", "-o", "json"}, want: 1},
		"upstream-to-v1alpha1": {args: []string{"-f", "upstream.yaml", "--to", "v1alpha1"}, want: 1},
		"two-frameworks":       {args: []string{"-f", "alpha.yaml"}, want: 1},
		"list-to-v1alpha1":     {args: []string{"-f", "hub.yaml", "--to", "v1alpha1"}, want: 1},
		"restored":             {args: []string{"-f", "kept.yaml"}},
		"same-version":         {args: []string{"-f", "kept.yaml", "--to", "v1alpha1", "-o", "json"}},
		"stdin":                {args: []string{"-f", "-"}, stdin: "numbers.json"},
		"folder":               {args: []string{"-f", "folder"}},
		"wrong":                {args: []string{"-f", "wrong.yaml"}, want: 2},
		"usage-no-file":        {want: 2},
		"usage-argument":       {args: []string{"kept.yaml"}, want: 2},
		"usage-version":        {args: []string{"-f", "kept.yaml", "--to", "v2"}, want: 2},
		"usage-output":         {args: []string{"-f", "kept.yaml", "-o", "text"}, want: 2},
		"usage-flag":           {args: []string{"-f", "kept.yaml", "--from", "v1"}, want: 2},
		"absent":               {args: []string{"-f", "nowhere.yaml"}, want: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(convertDir)
			out, errs, code := runConvert(t, readStdin(t, tc.stdin), tc.args...)
			if code != tc.want {
				t.Errorf("exit code %d, want %d", code, tc.want)
			}
			compareGolden(t, name+".golden.txt", out+errs)
		})
	}
}

func runConvert(t *testing.T, stdin []byte, args ...string) (stdout, stderr string, code exitCode) {
	t.Helper()
	return runStreams(t, stdin, append([]string{"convert"}, args...)...)
}

// What was converted is judged as what it was made of, and converts there and
// back to itself.
func TestConvertKeepsTheMeaning(t *testing.T) {
	const samples = "../../config/samples"
	hub, errs, code := runConvert(t, nil, "-f", samples, "-R")
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, errs)
	}
	if strings.Contains(hub, "penstock.dev/restore") {
		t.Errorf("a v1 manifest needs no annotation to keep what it says:\n%s", hub)
	}
	if diff := cmp.Diff(verdicts(t, nil, "-f", samples, "-R"), verdicts(t, []byte(hub), "-f", "-")); diff != "" {
		t.Errorf("verdicts before and after (-before +after):\n%s", diff)
	}
	alpha, errs, code := runConvert(t, []byte(hub), "-f", "-", "--to", "v1alpha1")
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, errs)
	}
	again, errs, code := runConvert(t, []byte(alpha), "-f", "-")
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, errs)
	}
	if diff := cmp.Diff(documentsOf(t, hub), documentsOf(t, again)); diff != "" {
		t.Errorf("there and back (-was +is):\n%s", diff)
	}
}

// verdicts says of each object whether it is admitted.
func verdicts(t *testing.T, stdin []byte, args ...string) map[string]bool {
	t.Helper()
	text, _ := runCheck(t, stdin, append(args, "-o", "json")...)
	var report struct {
		Results []struct {
			Name    string
			Allowed bool
		}
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, object := range report.Results {
		found[object.Name] = object.Allowed
	}
	if len(found) < 10 {
		t.Fatalf("too few objects: %v", found)
	}
	return found
}

func documentsOf(t *testing.T, text string) []any {
	t.Helper()
	var all []any
	for document := range strings.SplitSeq(text, "---\n") {
		var value any
		if err := yaml.Unmarshal([]byte(document), &value); err != nil {
			t.Fatal(err)
		}
		all = append(all, value)
	}
	return all
}
