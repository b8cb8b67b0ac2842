package policies

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
)

func TestAllowedBuiltinsAreThoseLookedAt(t *testing.T) {
	var got []string
	for _, c := range capabilitiesOf {
		for _, builtin := range c.Builtins {
			got = append(got, builtin.Name)
		}
	}
	slices.Sort(got)
	got = slices.Compact(got)
	text, err := os.ReadFile("testdata/builtins.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Fields(string(text)), got); diff != "" {
		t.Errorf("builtins (-looked at +allowed):\n%s", diff)
	}
}

func TestForbiddenBuiltinsExist(t *testing.T) {
	for _, family := range forbidden {
		if !slices.ContainsFunc(ast.Builtins, func(b *ast.Builtin) bool { return strings.HasPrefix(b.Name, family) }) {
			t.Errorf("OPA has no builtin %s", family)
		}
	}
}
