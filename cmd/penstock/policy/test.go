package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// TestOptions say which tests to run.
type TestOptions struct {
	// Paths are folders, which are searched with those below, and files of tests.
	Paths []string
	// Run, if set, selects the tests whose file and name, with a colon and a
	// blank between them, it matches.
	Run *regexp.Regexp
	// Coverage tells which lines of the policies are evaluated.
	Coverage bool
	// Timeout is how long one test in Rego, or one policy for a case, may take;
	// DefaultTimeout when 0.
	Timeout time.Duration
	// SystemNamespaces are what the manager's flag of that name says.
	SystemNamespaces []string
}

// DefaultTimeout is long: a machine that is busy must not fail a test.
const DefaultTimeout = 30 * time.Second

// The outcomes of a test.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped"
)

// A TestResult is what became of one test. Its JSON is stable, as that of TestReport.
type TestResult struct {
	// Kind is rego, case or suite.
	Kind string `json:"kind"`
	// File and Line are where the test is written; Line is 0 in a suite.
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
	// Message says why it failed, in one or more lines.
	Message string `json:"message,omitempty"`
	// Output is what Rego's print wrote.
	Output  string  `json:"output,omitempty"`
	Seconds float64 `json:"seconds"`
}

// A TestReport is what is said of all tests. Its JSON is stable: members are
// added, not renamed or removed, and lists are always present.
type TestReport struct {
	Results []TestResult `json:"results"`
	// Errors are what could not be read or run.
	Errors []string `json:"errors"`
	// Warnings are what the cluster would warn the authors of the policies of.
	Warnings []string        `json:"warnings"`
	Coverage *CoverageReport `json:"coverage,omitempty"`
	Summary  TestSummary     `json:"summary"`
}

// TestSummary counts.
type TestSummary struct {
	Tests   int `json:"tests"`
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
}

// testRun is the work of running tests.
type testRun struct {
	options TestOptions
	reader  *policyReader
	report  *TestReport
	// found counts the tests, selected or not.
	found int
	// templates are those of suites, with the Rego of each.
	templates []*world
}

// Test runs tests written in Rego, cases and suites. What could not be read or
// run is in the report's Errors; that there are no tests is one, too.
func Test(ctx context.Context, options TestOptions) (*TestReport, error) {
	options.Timeout = cmp.Or(options.Timeout, DefaultTimeout)
	reader, err := newPolicyReader(options.SystemNamespaces)
	if err != nil {
		return nil, err
	}
	r := &testRun{options: options, reader: reader, report: &TestReport{Results: []TestResult{}, Errors: []string{}, Warnings: []string{}}}
	if options.Coverage {
		r.report.Coverage = &CoverageReport{Policies: []RegoCoverage{}}
	}
	found, errs := findTests(options.Paths)
	for _, err := range errs {
		r.fail(err)
	}
	for _, folder := range found.folders() {
		r.runFolder(ctx, folder)
	}
	for _, file := range found.suites {
		r.runSuite(ctx, file)
	}
	for _, template := range r.templates {
		r.report.Coverage.add(template)
	}
	r.finish()
	return r.report, nil
}

func (r *testRun) fail(err error) { r.report.Errors = append(r.report.Errors, err.Error()) }

// selects reports whether a test is to be run.
func (r *testRun) selects(file, name string) bool {
	r.found++
	return r.options.Run == nil || r.options.Run.MatchString(file+": "+name)
}

func (r *testRun) add(result TestResult) { r.report.Results = append(r.report.Results, result) }

// runFolder runs what is about the policies of a folder.
func (r *testRun) runFolder(ctx context.Context, found *foundFolder) {
	folder, err := r.reader.read(ctx, found.path)
	if err != nil {
		r.fail(err)
		return
	}
	r.report.Warnings = append(r.report.Warnings, folder.warnings...)
	if r.options.Coverage {
		for _, world := range folder.worlds {
			world.measure()
		}
	}
	r.runRego(ctx, folder, found.rego)
	for _, file := range found.cases {
		r.runCases(ctx, folder, file)
	}
	if r.options.Coverage {
		for _, world := range folder.worlds {
			r.report.Coverage.add(world)
		}
	}
}

func (r *testRun) finish() {
	report := r.report
	switch {
	case len(report.Results) > 0 || len(report.Errors) > 0:
	case r.found > 0:
		r.fail(fmt.Errorf("--run %q matches none of the %d tests: it is matched against FILE: NAME, as -v writes them", r.options.Run, r.found))
	default:
		r.fail(fmt.Errorf("found no test in %s: tests are *_test.rego and cases/*.yaml beside policies, and suites of test.gatekeeper.sh",
			strings.Join(r.options.Paths, ", ")))
	}
	summary := &report.Summary
	summary.Tests = len(report.Results)
	for _, result := range report.Results {
		switch result.Outcome {
		case Passed:
			summary.Passed++
		case Failed:
			summary.Failed++
		default:
			summary.Skipped++
		}
	}
	if report.Coverage != nil {
		report.Coverage.total()
	}
}

// result makes the result of a test that began at a time.
func resultOf(kind, file string, line int, name string, began time.Time, problems []string) TestResult {
	result := TestResult{Kind: kind, File: file, Line: line, Name: name, Outcome: Passed, Seconds: time.Since(began).Seconds()}
	if len(problems) > 0 {
		result.Outcome, result.Message = Failed, strings.Join(problems, "\n")
	}
	return result
}

// problemsOf are the lines of an error.
func problemsOf(err error) []string {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var lines []string
		for _, one := range joined.Unwrap() {
			lines = append(lines, one.Error())
		}
		return lines
	}
	return slices.Collect(strings.SplitSeq(err.Error(), "\n"))
}
