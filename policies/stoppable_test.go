package policies

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// TestStoppableMatchIsMatch holds the matcher of long texts to that of Rego.
func TestStoppableMatchIsMatch(t *testing.T) {
	patterns := []string{`^a`, `b$`, `\bab\b`, `(?s)^.*z$`, `(?m)^b+$`, `[^\x00-\x7f]`, `a{3,5}b`, `(a|b)*c`, `^$`, ``, `\x{fffd}`, `(?i)AB`}
	parts := []string{"a", "b", "ab", "\n", " ", "c", "ä", "\xff", "z", "aaa", "日"}
	random := rand.New(rand.NewPCG(1, 2))
	for _, pattern := range patterns {
		compiled := regexp.MustCompile(pattern)
		for range 200 {
			var text strings.Builder
			for range random.IntN(200) {
				text.WriteString(parts[random.IntN(len(parts))])
			}
			var got bool
			err := matchStoppably(topdown.BuiltinContext{}, []*ast.Term{ast.StringTerm(pattern), ast.StringTerm(text.String())}, func(found *ast.Term) error {
				got = bool(found.Value.(ast.Boolean))
				return nil
			})
			if want := compiled.MatchString(text.String()); err != nil || got != want {
				t.Fatalf("%q in %q: got %t, %v; want %t", pattern, text.String(), got, err, want)
			}
		}
	}
}

func TestBoundsNameBuiltins(t *testing.T) {
	for name := range bounds {
		if topdown.GetBuiltin(name) == nil || !builtinAllowed(name) {
			t.Errorf("%s is no builtin that a policy may call", name)
		}
	}
}
