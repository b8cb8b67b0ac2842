package policies_test

import (
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/policies"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain, in two\n\tlines: \u00e9": "plain, in two\n\tlines: \u00e9",
		"\x1b[31mred\x07\r":              `\u001b[31mred\u0007\u000d`,
		"a\u202eb\u0085":                 `a\u202eb\u0085`,
	} {
		if got := policies.Printable(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// An object's author must not write to the terminal of who reads a refusal.
func TestMessagesArePrintable(t *testing.T) {
	verdict := judge(t, policy("p", `package p
violation contains {"msg": input.object.spec.a, "field": sprintf("spec.%s", [input.object.spec.a]), "fix": input.object.spec.a} if true
violation contains input.object.spec.a if true`), createRequest([]byte("{\"spec\":{\"a\":\"x\\u001b[2J\"}}")))
	if len(verdict.Violations) != 2 {
		t.Fatalf("got %+v", verdict)
	}
	for _, one := range verdict.Violations {
		if text := one.String() + one.Field; strings.Contains(text, "\x1b") || !strings.Contains(text, `x\u001b[2J`) {
			t.Errorf("got %q", text)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	verdict := judge(t, policy("p", `package p
most := 1 if input.object.spec.a
most := 2 if input.object.spec.b
violation contains "x" if most > 0`), createRequest([]byte(`{"spec":{"a":1,"b":1}}`)))
	if len(verdict.Errors) != 1 || !strings.Contains(verdict.Errors[0].Message, "eval_conflict_error") || !strings.HasSuffix(verdict.Errors[0].Message, "let one body exclude the other") {
		t.Errorf("got %+v", verdict.Errors)
	}
}
