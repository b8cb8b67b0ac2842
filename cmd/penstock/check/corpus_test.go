package check_test

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/check"
	"github.com/penstock-dev/penstock/policies/library"
)

// sharedDir is a folder beside the checkout with manifests that people have
// and cases with known verdicts; PENSTOCK_SHARED names another place.
func sharedDir(t *testing.T, folder string) string {
	t.Helper()
	dir := filepath.Join(cmp.Or(os.Getenv("PENSTOCK_SHARED"), filepath.Join("..", "..", "..", "..", "shared")), folder)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("there is no corpus beside the checkout: %v", err)
	}
	return dir
}

func newChecker(t testing.TB) *check.Checker {
	t.Helper()
	policies, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	checker, err := check.New(check.Options{
		Policies: policies, Namespace: "default", Now: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
	return checker
}

// Whoever comes from upstream comes with these: none may be refused.
func TestUpstreamSamplesAreAdmitted(t *testing.T) {
	dir := sharedDir(t, "upstream/training")
	checker := newChecker(t)
	objects, unreadable := check.Load([]string{dir}, true, nil)
	for _, fault := range unreadable {
		t.Error(fault)
	}
	for _, object := range objects {
		t.Run(filepath.Base(object.File), func(t *testing.T) {
			result := checker.Check(t.Context(), object)
			if !result.Judged || !result.Allowed {
				t.Errorf("%s %s: %v", result.Kind, result.Name, result.Faults)
			}
			for _, warning := range result.Warnings {
				t.Logf("warning: %s", warning)
			}
		})
	}
}

func TestFieldCases(t *testing.T) {
	dir := sharedDir(t, "cases")
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	checker := newChecker(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { runFieldCase(t, checker, file) })
	}
}

func runFieldCase(t *testing.T, checker *check.Checker, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	expect, fields := header(text, "expect"), strings.Split(header(text, "field"), " | ")
	objects, unreadable := check.Read(file, text)
	if len(unreadable) > 0 {
		t.Fatal(unreadable)
	}
	if strings.HasSuffix(file, ".update.yaml") {
		if checker.Store(t.Context(), objects[0]) != nil {
			t.Skip("of no kind that is judged")
		}
		objects = objects[1:]
	}
	var found []check.Fault
	got, judged := "allow", false
	for _, object := range objects {
		result := checker.Check(t.Context(), object)
		judged = judged || result.Judged
		switch {
		case !result.Allowed:
			got, found = "deny", append(found, result.Faults...)
		case len(result.Warnings) > 0 && got == "allow":
			got, found = "warn", append(found, result.Warnings...)
		}
	}
	if !judged {
		t.Skip("of no kind that is judged")
	}
	if !verdictIsRight(expect, got, fields, found) {
		t.Errorf("got %s %v, want %s at %v", got, found, expect, fields)
	}
	for _, fault := range found {
		t.Logf("%s: %s", got, fault)
	}
}

// verdictIsRight tolerates other advice where a file is admitted.
func verdictIsRight(expect, got string, fields []string, found []check.Fault) bool {
	if expect == "allow" {
		return got != "deny"
	}
	return got == expect && slices.ContainsFunc(found, func(fault check.Fault) bool {
		return slices.Contains(fields, fault.Field)
	})
}

// header gives the value of a comment before a case.
func header(text []byte, name string) string {
	line := regexp.MustCompile(`(?m)^# ` + name + `: (.*)$`).FindSubmatch(text)
	if line == nil {
		return ""
	}
	return string(bytes.TrimSpace(line[1]))
}
