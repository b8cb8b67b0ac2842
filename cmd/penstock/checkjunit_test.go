package main

import (
	"encoding/json"
	"encoding/xml"
	"testing"

	"github.com/penstock-dev/penstock/cmd/penstock/check"
)

// TestJUnitSaysWhatJSONSays reads the XML as a CI system does.
func TestJUnitSaysWhatJSONSays(t *testing.T) {
	t.Chdir(checkDir)
	args := []string{"-f", ".", "-R", "--policies", "policies.yaml", "-o"}
	asXML, xmlCode := runCheck(t, nil, append(args, "junit")...)
	asJSON, jsonCode := runCheck(t, nil, append(args, "json")...)
	if xmlCode != jsonCode {
		t.Errorf("exit code %d with junit, %d with json", xmlCode, jsonCode)
	}
	var report check.Report
	if err := json.Unmarshal([]byte(asJSON), &report); err != nil {
		t.Fatal(err)
	}
	var suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Cases []struct {
				Name    string    `xml:"name,attr"`
				Failure *struct{} `xml:"failure"`
				Error   *struct{} `xml:"error"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(asXML), &suites); err != nil {
		t.Fatal(err)
	}
	var cases, failures, faults, skipped int
	for _, suite := range suites.Suites {
		for _, one := range suite.Cases {
			cases++
			if one.Name == "" {
				t.Error("a case has no name")
			}
			if one.Failure != nil {
				failures++
			}
			if one.Error != nil {
				faults++
			}
			if one.Skipped != nil {
				skipped++
			}
		}
	}
	got := [...]int{suites.Tests, suites.Failures, suites.Errors, suites.Skipped}
	if counted := [...]int{cases, failures, faults, skipped}; got != counted {
		t.Errorf("the attributes count %v, the elements %v", got, counted)
	}
	want := [...]int{len(report.Results) + len(report.Errors), report.Summary.Refused, len(report.Errors), report.Summary.NotJudged}
	if got != want {
		t.Errorf("junit counts %v cases, failures, errors and skipped, json %v", got, want)
	}
	if want[1] == 0 || want[2] == 0 || want[3] == 0 {
		t.Errorf("the manifests do not show every outcome: %v", want)
	}
}
