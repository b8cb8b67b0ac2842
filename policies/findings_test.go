package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// What a rule finds refuses, whatever the shape that it gives it.
func TestShapesOfViolations(t *testing.T) {
	for element, want := range map[string]finding{
		`"no"`:          {message: "no"},
		`{"msg": "no"}`: {message: "no"},
		`{"msg": "no", "field": "spec.a", "fix": "mend it"}`: {message: "no", field: "spec.a", fix: "mend it"},
		`{"msg": "no", "details": {"secret": 1}}`:            {message: "no"},
		`{"msg": "no", "field": 7}`:                          {message: "no (rule violation gives field of type number, and a string is expected)"},
		`{"msg": "no", "fix": ["a"]}`:                        {message: "no (rule violation gives fix of type array, and a string is expected)"},
		`{"msg": 7}`:                                         {message: "rule violation gives msg of type number, and a string is expected"},
		`{"field": "spec.a", "mesg": "secret"}`:              {message: "rule violation gives an object without msg, which is to say what is wrong", field: "spec.a"},
		`{"msg": ""}`:                                        {message: "rule violation gives an object without msg, which is to say what is wrong"},
		`{}`:                                                 {message: "rule violation gives an object without msg, which is to say what is wrong"},
	} {
		for failurePolicy, action := range map[v1.PolicyFailurePolicy]v1.PolicyAction{v1.FailurePolicyFail: v1.ActionDeny, v1.FailurePolicyIgnore: v1.ActionDeny} {
			policy := &v1.WorkloadPolicy{}
			policy.Name, policy.Spec.Rego, policy.Spec.FailurePolicy = "p", "package p\nviolation contains "+element, failurePolicy
			policy.Spec.Match.Resources = []v1.PolicyResources{{Kinds: []string{"Pod"}}}
			engine := NewEngine(Options{})
			if err := engine.Set(policy); err != nil {
				t.Fatal(err)
			}
			request := Request{Operation: v1.OperationCreate, Object: []byte(`{"kind":"Pod"}`)}
			request.Kind.Kind = "Pod"
			verdict := engine.Snapshot().Judge(t.Context(), request)
			wanted := []Violation{{Policy: "p", Message: want.message, Field: want.field, Fix: want.fix, Action: action}}
			if diff := cmp.Diff(wanted, verdict.Violations); diff != "" || verdict.Allowed() || len(verdict.Errors) > 0 {
				t.Errorf("%s, %s: errors %v, violations (-want +got):\n%s", element, failurePolicy, verdict.Errors, diff)
			}
		}
	}
}
