package junit_test

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-dev/penstock/cmd/penstock/junit"
)

func TestWrite(t *testing.T) {
	report := &junit.Report{Name: "penstock check"}
	report.Suite("a.yaml").Add(junit.Case{Name: "passes", File: "a.yaml", Line: 3, Duration: 1500 * time.Millisecond, Output: "warning: <x>"})
	report.Suite("b.yaml").Add(junit.Case{Name: "errs", Outcome: junit.Errored, Message: "cannot be read"})
	report.Suite("a.yaml").Add(junit.Case{Name: "fails", Outcome: junit.Failed, Message: `says "no" & more`, Details: "line\x00 one\nline two \x1b[0m"})
	report.Suite("a.yaml").Add(junit.Case{Name: "is left out", Outcome: junit.Skipped})
	var out bytes.Buffer
	if err := report.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(`
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="penstock check" tests="4" failures="1" errors="1" skipped="1">
  <testsuite name="a.yaml" tests="3" failures="1" errors="0" skipped="1" time="1.500">
    <testcase name="passes" classname="a.yaml" file="a.yaml" line="3" time="1.500">
      <system-out>warning: &lt;x&gt;</system-out>
    </testcase>
    <testcase name="fails" classname="a.yaml" time="0.000">
      <failure message="says &#34;no&#34; &amp; more">line one&#xA;line two [0m</failure>
    </testcase>
    <testcase name="is left out" classname="a.yaml" time="0.000">
      <skipped></skipped>
    </testcase>
  </testsuite>
  <testsuite name="b.yaml" tests="1" failures="0" errors="1" skipped="0" time="0.000">
    <testcase name="errs" classname="b.yaml" time="0.000">
      <error message="cannot be read"></error>
    </testcase>
  </testsuite>
</testsuites>
`, "\n")
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("the report (-want +got):\n%s", diff)
	}
	if err := xml.Unmarshal(out.Bytes(), new(struct{})); err != nil {
		t.Error(err)
	}
}
