package library_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/format"
)

var update = flag.Bool("update", false, "write the files that tests would have otherwise")

// TestRegoIsFormatted is `opa fmt --check`.
func TestRegoIsFormatted(t *testing.T) {
	files, err := filepath.Glob("*/*.rego")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Rego found")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		formatted, err := format.Source(file, text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if *update {
			if err := os.WriteFile(file, formatted, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(string(text), string(formatted)); diff != "" {
			t.Errorf("%s (-text +formatted; write it with -update):\n%s", file, diff)
		}
	}
}
