package main

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/cmd/penstock/policy"
)

const policyTestDir = "testdata/policytest"

// The golden file of a case is its name with .golden. and what it writes, as
// those of TestCheck.
func TestPolicyTest(t *testing.T) {
	tests := map[string]struct {
		args []string
		want exitCode
	}{
		"good":               {args: []string{"good", "-v", "--coverage"}},
		"good-json":          {args: []string{"good", "--coverage", "-o", "json"}},
		"good-junit":         {args: []string{"good", "-o", "junit"}},
		"failing":            {args: []string{"failing", "--coverage"}, want: 1},
		"failing-json":       {args: []string{"failing", "-o", "json"}, want: 1},
		"failing-junit":      {args: []string{"failing", "-o", "junit"}, want: 1},
		"suite":              {args: []string{"suite", "-v", "--coverage"}, want: 1},
		"suite-part":         {args: []string{"suite", "--coverage", "--run", "owned: allowed"}},
		"broken":             {args: []string{"broken"}, want: 2},
		"broken-junit":       {args: []string{"broken", "-o", "junit"}, want: 2},
		"elsewhere":          {args: []string{"elsewhere"}, want: 2},
		"files":              {args: []string{"files", "-v", "--coverage"}},
		"idle":               {args: []string{"idle"}, want: 2},
		"used":               {args: []string{"used", "-v"}},
		"untested":           {args: []string{"untested", "good", "--coverage"}},
		"nothing":            {args: []string{"untested"}, want: 2},
		"absent":             {args: []string{"absent"}, want: 2},
		"file":               {args: []string{"good/cases/more/jobs.yml", "good/names_test.rego", "-v"}},
		"file-no-test":       {args: []string{"good/max-gpus.yaml"}, want: 2},
		"run":                {args: []string{"good", "failing", "suite", "-v", "--run", "names_test.rego|nine GPUs|owned: allowed|test_fails#"}, want: 1},
		"run-nothing":        {args: []string{"good", "--run", "test_nobody_wrote"}, want: 2},
		"threshold":          {args: []string{"good", "--threshold", "100"}},
		"threshold-below":    {args: []string{"good", "--run", "test_fits", "--threshold", "90.5"}, want: 1},
		"usage-no-path":      {want: 2},
		"usage-run":          {args: []string{"good", "--run", "("}, want: 2},
		"usage-threshold":    {args: []string{"good", "--threshold", "101"}, want: 2},
		"usage-no-threshold": {args: []string{"good", "--threshold", "much"}, want: 2},
		"usage-timeout":      {args: []string{"good", "--timeout", "0s"}, want: 2},
		"usage-output":       {args: []string{"good", "-o", "xml"}, want: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(policyTestDir)
			got, code := runCommand(t, nil, append([]string{"policy", "test"}, tc.args...)...)
			if code != tc.want {
				t.Errorf("exit code %d, want %d", code, tc.want)
			}
			compareGolden(t, name+".golden."+extensionOf(tc.args), took.ReplaceAllString(got, "${1}0.000"))
		})
	}
}

// took finds how long something took.
var took = regexp.MustCompile(`(time="|"seconds": )[0-9.e-]+`)

// The library's own tests and cases pass by this command, as it is written and
// as a user would write it: manifests that are to be applied, with tests beside.
func TestLibraryPassesPolicyTest(t *testing.T) {
	const source = "../../policies/library"
	manifests := t.TempDir()
	if err := os.CopyFS(manifests, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob(filepath.Join(manifests, "*", "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range folders {
		folder := filepath.Dir(file)
		for _, name := range []string{"policy.yaml", "policy.rego", "pods.yaml", "pods.cel"} {
			if err := os.Remove(filepath.Join(folder, name)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		for _, name := range []string{filepath.Base(folder), filepath.Base(folder) + "-pods"} {
			text, err := os.ReadFile(filepath.Join("../../config/policies", name+".yaml"))
			if os.IsNotExist(err) {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(folder, name+".yaml"), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	counted := map[string]policy.TestSummary{}
	for _, root := range []string{source, manifests} {
		report, err := policy.Test(t.Context(), policy.TestOptions{Paths: []string{root}, Coverage: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range report.Results {
			if result.Outcome != policy.Passed {
				t.Errorf("%s: %s: %s: %s", result.File, result.Name, result.Outcome, result.Message)
			}
		}
		for _, err := range report.Errors {
			t.Error(err)
		}
		counted[root] = report.Summary
		if len(report.Coverage.Policies) < len(folders) {
			t.Errorf("%d policies are covered, want %d at least", len(report.Coverage.Policies), len(folders))
		}
		for _, one := range report.Coverage.Policies {
			// The shared library is computed natively, and held to its text elsewhere.
			if one.Percent < 80 && !strings.HasSuffix(one.Policy, "/lib") {
				t.Errorf("the tests of %s cover %.1f%% of it: %v", one.Policy, one.Percent, one.NotCovered)
			}
		}
	}
	if counted[source] != counted[manifests] || counted[source].Tests < 250 {
		t.Errorf("the same tests are counted differently: %v", counted)
	}
}

// TestPolicyTestJUnit reads the XML as a CI system does.
func TestPolicyTestJUnit(t *testing.T) {
	t.Chdir(policyTestDir)
	args := []string{"policy", "test", "failing", "good", "broken", "-o"}
	asXML, _ := runCommand(t, nil, append(args, "junit")...)
	asJSON, _ := runCommand(t, nil, append(args, "json")...)
	var report policy.TestReport
	if err := json.Unmarshal([]byte(asJSON), &report); err != nil {
		t.Fatal(err)
	}
	var suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(asXML), &suites); err != nil {
		t.Fatal(err)
	}
	got := [...]int{suites.Tests, suites.Failures, suites.Errors, suites.Skipped}
	want := [...]int{report.Summary.Tests + len(report.Errors), report.Summary.Failed, len(report.Errors), report.Summary.Skipped}
	if got != want || slices.Contains(want[:], 0) {
		t.Errorf("junit counts %v tests, failures, errors and skipped, json %v", got, want)
	}
	for _, suite := range suites.Suites {
		for _, one := range suite.Cases {
			if one.Failure != nil && one.Failure.Message == "" {
				t.Errorf("a failure of %s has no message", suite.Name)
			}
		}
	}
}

// What takes longer than it may fails, and says why.
func TestPolicyTestTimeout(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("cases", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"slow.yaml": "apiVersion: penstock.dev/v1\nkind: WorkloadPolicy\nmetadata: {name: slow}\nspec:\n  match: {resources: [{group: batch, kinds: [Job]}]}\n  rego: |\n" +
			"    package slow\n    violation contains \"no\" if {\n      some a in numbers.range(1, 10000)\n      some b in numbers.range(1, 10000)\n      a * b == input.object.spec.completions\n    }\n",
		"slow_test.rego":  "package slow_test\n\nimport data.slow\n\ntest_slow if count(slow.violation) == 0 with input as {\"object\": {\"spec\": {\"completions\": 0}}}\n",
		"cases/slow.yaml": "name: slow\nobject: {apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {completions: 0}}\nexpect: allow\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, code := runCommand(t, nil, "policy", "test", ".", "--timeout", "50ms")
	if code != checkRefused || !strings.Contains(got, "2 tests: 2 failed") {
		t.Errorf("exit code %d:\n%s", code, got)
	}
	for _, want := range []string{"slow_test.test_slow\n  did not finish within 50ms", "policy slow could not be evaluated: it did not finish within 50ms"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
}
