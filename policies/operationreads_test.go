package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOperationReads(t *testing.T) {
	for body, want := range map[string]string{
		`input.operation == "DELETE"`:                                       "DELETE",
		`"DELETE" == input.review.operation`:                                "DELETE",
		`input.operation in {"CREATE", "DELETE"}`:                           "CREATE DELETE",
		`op := input.operation; op == "CONNECT"`:                            "CONNECT",
		`is_delete(input.review)`:                                           "DELETE",
		`deleting`:                                                          "DELETE",
		`input.operation != "DELETE"`:                                       "",
		`not input.operation == "DELETE"`:                                   "",
		`not input.operation in {"UPDATE", "DELETE"}`:                       "",
		`not is_delete(input.review)`:                                       "",
		`not deleting`:                                                      "",
		`not deleting; is_delete(input.review)`:                             "DELETE",
		`input.object.spec.method == "DELETE"`:                              "",
		`input.object.spec.method == "DELETE"; input.operation == "UPDATE"`: "UPDATE",
		`input.operation == input.parameters.operation`:                     "",
		`every x in [1] { input.operation == "DELETE"; x > 0 }`:             "DELETE",
		`count([x | x := 1; input.operation == "DELETE"]) > 0`:              "DELETE",
		`is_delete(1) with input.operation as "DELETE"`:                     "",
	} {
		rego := "package p\nis_delete(review) if review.operation == \"DELETE\"\ndeleting if input.operation == \"DELETE\"\nviolation contains \"x\" if {\n  " + body + "\n}"
		// Rules that nobody uses are none of these.
		used := compiledPolicy(t, rego)
		var got []string
		for _, one := range used.OperationReads() {
			if one.Lib != 0 || one.Line < 2 || one.Line > 5 {
				t.Errorf("%s: at %d of %d", body, one.Line, one.Lib)
			}
			got = append(got, string(one.Operation))
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
	policy := compiledPolicy(t, "package p\nimport data.lib.a\nviolation contains \"x\" if a.gone", "package lib.a\n\ngone if input.review.operation == \"DELETE\"")
	if got := fmt.Sprint(policy.OperationReads()); got != "[{DELETE 1 3}]" {
		t.Errorf("of a lib: %s", got)
	}
}

func TestReadsOldObjectAlone(t *testing.T) {
	for body, want := range map[string]bool{
		`input.oldObject.metadata.labels.locked`:                         true,
		`input.review.oldObject.metadata.labels.locked`:                  true,
		`r := input.review; r.oldObject.spec.a; r.userInfo.username`:     true,
		`input.oldObject.spec.a; input.parameters.b; input.user`:         true,
		`input.oldObject.spec.a != input.object.spec.a`:                  false,
		`input.review.oldObject.spec.a != input.review.object.spec.a`:    false,
		`input.oldObject.spec.a; input.spec.a`:                           false,
		`input.object.spec.a`:                                            false,
		`input.review`:                                                   false,
		`input.oldObject.spec.a; input`:                                  false,
		`input.oldObject.spec.a; count(data.penstock.workload.pods) > 1`: false,
	} {
		policy := compiledPolicy(t, "package p\nviolation contains \"x\" if {\n  "+body+"\n}")
		if got := policy.ReadsOldObjectAlone(); got != want {
			t.Errorf("%s: got %t", body, got)
		}
	}
}
