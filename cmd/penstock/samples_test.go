package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/cmd/penstock/check"
)

// A newcomer copies the samples: the library has nothing to say to those that
// are not there to be refused.
func TestSamplesAreExemplary(t *testing.T) {
	got, _ := runCommand(t, nil, "check", "-f", "../../config/samples", "-o", "json")
	var report check.Report
	if err := json.Unmarshal([]byte(got), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Results) < 8 || len(report.Errors) > 0 {
		t.Fatalf("%d samples, errors %v", len(report.Results), report.Errors)
	}
	for _, result := range report.Results {
		if strings.HasPrefix(filepath.Base(result.File), "refused") {
			if result.Allowed {
				t.Errorf("%s is not refused", result.File)
			}
			continue
		}
		for _, fault := range append(result.Faults, result.Warnings...) {
			t.Errorf("%s: %s", result.File, fault)
		}
	}
}
