package policy

import (
	"fmt"
	"strings"
)

// A CoverageReport tells which lines of policies were evaluated by tests in Rego
// and by cases. Lines are those that hold a rule's head or an expression.
type CoverageReport struct {
	Policies []RegoCoverage `json:"policies"`
	Lines    int            `json:"lines"`
	Covered  int            `json:"covered"`
	// Percent is 100 where there are no lines.
	Percent float64 `json:"percent"`
}

// RegoCoverage is that of one policy, or of policies that have the same Rego.
type RegoCoverage struct {
	Policy     string       `json:"policy"`
	Lines      int          `json:"lines"`
	Covered    int          `json:"covered"`
	Percent    float64      `json:"percent"`
	NotCovered []LinesOfOne `json:"notCovered"`
}

// LinesOfOne are lines of one file that were not evaluated, or in part only,
// from Start to End.
type LinesOfOne struct {
	File  string `json:"file"`
	Start int    `json:"start"`
	End   int    `json:"end"`
}

// add adds what was evaluated of a world.
func (c *CoverageReport) add(world *world) {
	modules, faults := world.parse()
	if faults != nil {
		return // which was said when it was tested
	}
	one := RegoCoverage{Policy: strings.Join(world.policies, ", "), NotCovered: []LinesOfOne{}}
	if world.source == nil {
		one.Policy = world.name
	}
	for _, lines := range world.coverage.Of(modules) {
		one.Lines += lines.Count
		one.Covered += lines.Count - len(lines.NotCovered)
		for _, line := range lines.NotCovered {
			one.missed(world.lineOf(lines.Module, line))
		}
	}
	one.Percent = percent(one.Covered, one.Lines)
	c.Policies = append(c.Policies, one)
	c.Lines += one.Lines
	c.Covered += one.Covered
}

// missed adds a line to those that were not evaluated.
func (p *RegoCoverage) missed(file string, line int) {
	if last := len(p.NotCovered) - 1; last >= 0 && p.NotCovered[last].File == file && p.NotCovered[last].End == line-1 {
		p.NotCovered[last].End = line
		return
	}
	p.NotCovered = append(p.NotCovered, LinesOfOne{File: file, Start: line, End: line})
}

func (c *CoverageReport) total() { c.Percent = percent(c.Covered, c.Lines) }

func percent(part, whole int) float64 {
	if whole == 0 {
		return 100
	}
	return 100 * float64(part) / float64(whole)
}

// text is the report for people.
func (c *CoverageReport) text() string {
	var out strings.Builder
	for _, policy := range c.Policies {
		fmt.Fprintf(&out, "coverage: %s %.1f%% (%d of %d lines)\n", policy.Policy, policy.Percent, policy.Covered, policy.Lines)
		for _, lines := range policy.NotCovered {
			at := fmt.Sprintf("%s:%d", lines.File, lines.Start)
			if lines.End > lines.Start {
				at += fmt.Sprintf("-%d", lines.End)
			}
			fmt.Fprintf(&out, "  not covered: %s\n", at)
		}
	}
	fmt.Fprintf(&out, "coverage: total %.1f%% (%d of %d lines)\n", c.Percent, c.Covered, c.Lines)
	return out.String()
}
