package check

import (
	"fmt"
	"io"
	"strings"

	"github.com/penstock-dev/penstock/cmd/penstock/junit"
)

// WriteJUnit writes the report as JUnit's XML: a suite for each file, a case for
// each object. A refusal is a failure, what could not be read an error, and what
// is not judged is skipped.
func (r Report) WriteJUnit(w io.Writer) error {
	report := junit.Report{Name: "penstock check"}
	for _, result := range r.Results {
		report.Suite(result.File).Add(result.junit())
	}
	for _, unreadable := range r.Errors {
		name := "the file"
		if unreadable.Document > 0 {
			name = fmt.Sprintf("document %d", unreadable.Document)
		}
		report.Suite(unreadable.File).Add(junit.Case{Name: name, File: unreadable.File, Line: unreadable.Line, Outcome: junit.Errored, Message: unreadable.Message})
	}
	return report.Write(w)
}

func (r *Result) junit() junit.Case {
	made := junit.Case{Name: r.Kind + " " + r.fullName(), File: r.File, Line: r.Line}
	var output, details strings.Builder
	for _, warning := range r.Warnings {
		fmt.Fprintf(&output, "warning: %s\n", warning)
		warning.Explanation.write(&output)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&output, "note: %s\n", note)
	}
	for _, policy := range r.NotEvaluated {
		fmt.Fprintf(&output, "not evaluated: policy %s: %s\n", policy.Policy, policy.Reason)
	}
	made.Output = output.String()
	switch {
	case !r.Judged:
		made.Outcome, made.Message = junit.Skipped, r.NotJudged
	case !r.Allowed:
		for _, fault := range r.Faults {
			fmt.Fprintf(&details, "%s:%d: %s\n", r.File, fault.Line, fault)
			fault.Explanation.write(&details)
		}
		made.Outcome, made.Details = junit.Failed, details.String()
		made.Message = "refused: " + counted(len(r.Faults), "fault")
		if len(r.Faults) == 1 {
			made.Message = "refused: " + r.Faults[0].String()
		}
	}
	return made
}
