package policy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/junit"
	"github.com/penstock-dev/penstock/policies"
)

// WriteText writes the report for people: the tests that failed, or all of them,
// the coverage, and a line that counts.
func (r *TestReport) WriteText(w io.Writer, all bool) error {
	out := bufio.NewWriter(w)
	for _, result := range r.Results {
		if result.Outcome != Failed && !all {
			continue
		}
		word := map[string]string{Passed: "PASS", Failed: "FAIL", Skipped: "SKIP"}[result.Outcome]
		fmt.Fprintf(out, "%s %s: %s\n", word, result.File, result.Name)
		indented(out, result.Message)
		indented(out, result.Output)
	}
	if r.Coverage != nil {
		fmt.Fprint(out, r.Coverage.text())
	}
	fmt.Fprintln(out, r.Summary)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("failed to write the report: %w", err)
	}
	return nil
}

func indented(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(w, "  %s\n", policies.Printable(strings.TrimRight(line, "\n")))
	}
}

// String is the summary in one line, without counts of zero.
func (s TestSummary) String() string {
	tests := "tests"
	if s.Tests == 1 {
		tests = "test"
	}
	var parts []string
	for _, part := range []struct {
		count int
		word  string
	}{{s.Passed, Passed}, {s.Failed, Failed}, {s.Skipped, Skipped}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.word))
		}
	}
	line := fmt.Sprintf("%d %s", s.Tests, tests)
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	return line
}

// WriteJSON writes the report as JSON.
func (r *TestReport) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("failed to write the report: %w", err)
	}
	return nil
}

// WriteJUnit writes the report as JUnit's XML: a suite for each file, a case for
// each test, and a suite of what could not be run.
func (r *TestReport) WriteJUnit(w io.Writer) error {
	report := junit.Report{Name: "penstock policy test"}
	for _, result := range r.Results {
		one := junit.Case{
			Name: result.Name, File: result.File, Line: result.Line,
			Duration: time.Duration(result.Seconds * float64(time.Second)), Output: result.Output,
		}
		switch result.Outcome {
		case Failed:
			one.Outcome, one.Details = junit.Failed, result.Message
			one.Message, _, _ = strings.Cut(result.Message, "\n")
		case Skipped:
			one.Outcome = junit.Skipped
		}
		report.Suite(result.File).Add(one)
	}
	for _, err := range r.Errors {
		first, _, _ := strings.Cut(err, "\n")
		report.Suite("what could not be run").Add(junit.Case{Name: first, Outcome: junit.Errored, Message: first, Details: err})
	}
	return report.Write(w)
}
