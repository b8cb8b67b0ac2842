package check

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/penstock-dev/penstock/policies"
)

// WriteText writes the report for people: a line for each object, below it one
// for each thing to say of it, and a line that counts.
func (r Report) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	several := map[string]bool{}
	for _, result := range r.Results {
		several[result.File] = several[result.File] || result.Document > 1 || len(result.Items) > 0
	}
	for _, result := range r.Results {
		at := result.File
		if several[result.File] {
			at = place(result.File, result.Document, result.Items)
		}
		fmt.Fprintf(out, "%s: %s %s %s\n", at, policies.Printable(result.Kind), policies.Printable(result.fullName()), result.verdict())
		for _, fault := range result.Faults {
			fmt.Fprintf(out, "  %s\n", fault)
			fault.Explanation.write(out)
		}
		for _, warning := range result.Warnings {
			fmt.Fprintf(out, "  warning: %s\n", warning)
			warning.Explanation.write(out)
		}
		for _, note := range result.Notes {
			fmt.Fprintf(out, "  note: %s\n", note)
		}
	}
	for _, line := range r.notEvaluated() {
		fmt.Fprintf(out, "not evaluated: %s\n", line)
	}
	fmt.Fprintln(out, r.Summary)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("failed to write the report: %w", err)
	}
	return nil
}

// notEvaluated says once of each policy that was not evaluated for some objects
// for how many, and why.
func (r Report) notEvaluated() []string {
	type lack struct {
		NotEvaluated
		count int
	}
	var lacks []*lack
	for _, result := range r.Results {
		for _, one := range result.NotEvaluated {
			i := slices.IndexFunc(lacks, func(l *lack) bool {
				return l.Policy == one.Policy && l.missing == one.missing && l.partly == one.partly
			})
			switch {
			case i < 0:
				lacks = append(lacks, &lack{NotEvaluated: one, count: 1})
				continue
			case lacks[i].Reason != one.Reason:
				// Only labels are of one object rather than another.
				lacks[i].Reason = "it depends on the labels of namespaces, which are not known: give --namespace-file"
				if one.partly {
					lacks[i].Reason = "in part, as " + lacks[i].Reason
				}
			}
			lacks[i].count++
		}
	}
	slices.SortStableFunc(lacks, func(a, b *lack) int { return cmp.Compare(a.Policy, b.Policy) })
	lines := make([]string, len(lacks))
	for i, lack := range lacks {
		of := ""
		if len(r.Results) > 1 {
			of = fmt.Sprintf(" for %d of %s", lack.count, counted(len(r.Results), "object"))
		}
		lines[i] = fmt.Sprintf("policy %s%s: %s", lack.Policy, of, lack.Reason)
	}
	return lines
}

func (r *Result) fullName() string { return fullName(r.Namespace, r.Name) }

func fullName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func (r *Result) verdict() string {
	switch {
	case !r.Judged:
		return "not judged: " + r.NotJudged
	case r.Allowed:
		return "admitted"
	default:
		return "refused"
	}
}

// String is the fault in one line.
func (f Fault) String() string {
	if f.Field == "" {
		return policies.Printable(f.Message)
	}
	return policies.Printable(f.Field + ": " + f.Message)
}

// String is the summary in one line, without counts of zero.
func (s Summary) String() string {
	var parts []string
	for _, part := range []struct {
		count int
		word  string
	}{
		{s.Admitted, "admitted"}, {s.Refused, "refused"}, {s.NotJudged, "not judged"},
	} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.word))
		}
	}
	line := counted(s.Objects, "object")
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	if s.Warnings > 0 {
		line += "; " + counted(s.Warnings, "warning")
	}
	return line
}

func counted(count int, thing string) string {
	if count == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", count, thing)
}
