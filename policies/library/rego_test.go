package library_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/penstock-dev/penstock/policies/library"
)

// TestRego runs the unit tests that are written in Rego, by OPA's own tester
// and with the modules as they are: what passes here passes under `opa test`.
func TestRego(t *testing.T) {
	files, err := filepath.Glob("*/*.rego")
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]*ast.Module{}
	tested := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		modules[file] = ast.MustParseModuleWithOpts(string(text), ast.ParserOptions{RegoVersion: ast.RegoV1})
		if strings.HasSuffix(file, "_test.rego") {
			tested[filepath.Dir(file)] = true
		}
	}
	results, err := tester.NewRunner().
		SetStore(inmem.New()).
		SetDefaultRegoVersion(ast.RegoV1).
		CapturePrintOutput(true).
		SetModules(modules).
		RunTests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for result := range results {
		t.Run(result.Package+"."+result.Name, func(t *testing.T) {
			if !result.Pass() {
				t.Errorf("%s: %v\n%s", result.Location, result, result.Output)
			}
		})
	}
	names, err := library.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !tested[library.Folder(name)] {
			t.Errorf("policy %s has no policy_test.rego", name)
		}
	}
}
