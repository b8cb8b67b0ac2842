package policies

import (
	"fmt"
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

// TestEachBuiltinIsAllowedOrRefusedByName calls every builtin of OPA in a policy
// of its own.
func TestEachBuiltinIsAllowedOrRefusedByName(t *testing.T) {
	text, err := os.ReadFile("testdata/builtins.txt")
	if err != nil {
		t.Fatal(err)
	}
	allowed := strings.Fields(string(text))
	refused := 0
	for _, builtin := range ast.Builtins {
		arguments := make([]string, builtin.Decl.Arity())
		for i := range arguments {
			arguments[i] = fmt.Sprintf("input.object.a%d", i)
		}
		call := fmt.Sprintf("%s(%s)", builtin.Name, strings.Join(arguments, ", "))
		if strings.HasPrefix(builtin.Name, "internal.") {
			continue // the compiler makes these calls, a text cannot
		}
		// Some names can be called in v0 only, by which a text that is not v1 is read.
		for _, rego := range []string{
			"package p\nviolation contains \"x\" if " + call,
			"package p\nviolation[\"x\"] { " + call + " }",
		} {
			_, faults := compileRule(rego)
			named := slices.ContainsFunc(faults, func(fault RegoFault) bool {
				return fault.Message == "builtin "+builtin.Name+" is not allowed in a policy"
			})
			if isAllowed := slices.Contains(allowed, builtin.Name); named == isAllowed && !builtin.IsDeprecated() {
				t.Errorf("%s is allowed %t, and of it: %v", builtin.Name, isAllowed, faults)
			}
			if named {
				refused++
			}
		}
	}
	if refused < 2*len(forbidden) {
		t.Errorf("only %d were refused", refused)
	}
}

func TestForbiddenBuiltinsExist(t *testing.T) {
	for _, family := range forbidden {
		if !slices.ContainsFunc(ast.Builtins, func(b *ast.Builtin) bool { return strings.HasPrefix(b.Name, family) }) {
			t.Errorf("OPA has no builtin %s", family)
		}
	}
}
