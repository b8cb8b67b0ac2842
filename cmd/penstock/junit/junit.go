// Package junit writes results in the XML that CI systems read as JUnit's: a
// suite for each file, a case for each thing that was tested in it.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Report is all that a command says.
type Report struct {
	// Name is that of the command.
	Name   string
	Suites []*Suite
}

// A Suite is the cases of one file.
type Suite struct {
	Name  string
	Cases []Case
}

// A Case is one thing that was tested.
type Case struct {
	Name string
	// File and Line are where it is written; Line is 0 where that is not known.
	File string
	Line int
	// Duration is how long it took, 0 where nobody measured.
	Duration time.Duration
	// Outcome is empty for one that passed.
	Outcome Outcome
	// Message says in a line why it did not, Details in full.
	Message, Details string
	// Output is what there is to say besides.
	Output string
}

// An Outcome is the name of the element that says how a case ended.
type Outcome string

const (
	// Failed is the outcome of what is not as it must be.
	Failed Outcome = "failure"
	// Errored is the outcome of what could not be tested.
	Errored Outcome = "error"
	// Skipped is the outcome of what was left out.
	Skipped Outcome = "skipped"
)

// Suite gives the suite of a name, which is added if there is none.
func (r *Report) Suite(name string) *Suite {
	for _, suite := range r.Suites {
		if suite.Name == name {
			return suite
		}
	}
	suite := &Suite{Name: name}
	r.Suites = append(r.Suites, suite)
	return suite
}

// Add adds a case.
func (s *Suite) Add(one Case) { s.Cases = append(s.Cases, one) }

// Write writes the report.
func (r *Report) Write(w io.Writer) error {
	document := suitesElement{Name: r.Name}
	for _, suite := range r.Suites {
		element := suiteElement{Name: clean(suite.Name)}
		var took time.Duration
		for _, one := range suite.Cases {
			element.Cases = append(element.Cases, one.element(suite.Name))
			element.count(one.Outcome)
			took += one.Duration
		}
		element.Time = seconds(took)
		document.add(element.counts)
		document.Suites = append(document.Suites, element)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("failed to write the report: %w", err)
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("failed to write the report: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

type counts struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Skipped  int `xml:"skipped,attr"`
}

func (c *counts) count(outcome Outcome) {
	c.Tests++
	switch outcome {
	case Failed:
		c.Failures++
	case Errored:
		c.Errors++
	case Skipped:
		c.Skipped++
	}
}

func (c *counts) add(more counts) {
	c.Tests += more.Tests
	c.Failures += more.Failures
	c.Errors += more.Errors
	c.Skipped += more.Skipped
}

type suitesElement struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	counts
	Suites []suiteElement `xml:"testsuite"`
}

type suiteElement struct {
	Name string `xml:"name,attr"`
	counts
	Time  string        `xml:"time,attr"`
	Cases []caseElement `xml:"testcase"`
}

type caseElement struct {
	Name   string `xml:"name,attr"`
	Class  string `xml:"classname,attr"`
	File   string `xml:"file,attr,omitempty"`
	Line   int    `xml:"line,attr,omitempty"`
	Time   string `xml:"time,attr"`
	Ended  *outcomeElement
	Output string `xml:"system-out,omitempty"`
}

// outcomeElement is called after the outcome.
type outcomeElement struct {
	XMLName xml.Name
	Message string `xml:"message,attr,omitempty"`
	Details string `xml:",chardata"`
}

func (c *Case) element(suite string) caseElement {
	element := caseElement{
		Name: clean(c.Name), Class: clean(suite), File: clean(c.File), Line: c.Line, Time: seconds(c.Duration), Output: clean(c.Output),
	}
	if c.Outcome != "" {
		element.Ended = &outcomeElement{XMLName: xml.Name{Local: string(c.Outcome)}, Message: clean(c.Message), Details: clean(c.Details)}
	}
	return element
}

func seconds(took time.Duration) string { return strconv.FormatFloat(took.Seconds(), 'f', 3, 64) }

// clean leaves out what XML cannot say.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r', r >= 0x20 && r != utf8.RuneError && r != 0xFFFE && r != 0xFFFF:
			return r
		}
		return -1
	}, text)
}
