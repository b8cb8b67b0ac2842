package policies_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

func TestStoredObjectsAreJudgedWithoutARequest(t *testing.T) {
	const always = "package p\nviolation contains \"no\" if true"
	operations := func(all ...v1.PolicyOperation) func(*v1.WorkloadPolicySpec) {
		return func(spec *v1.WorkloadPolicySpec) { spec.Match.Operations = all }
	}
	tests := map[string]struct {
		rego string
		mod  func(*v1.WorkloadPolicySpec)
		// judged tells that the rule found its violation.
		judged  bool
		missing policies.Missing
	}{
		"a rule over the object":             {rego: always, judged: true},
		"of creations only":                  {rego: always, mod: operations(v1.OperationCreate), judged: true},
		"of updates only":                    {rego: always, mod: operations(v1.OperationUpdate), judged: true},
		"of deletions only":                  {rego: always, mod: operations(v1.OperationDelete)},
		"a rule that reads the operation":    {rego: "package p\nviolation contains \"no\" if input.operation != \"DELETE\"", missing: policies.MissingOperation},
		"a rule that reads it in the review": {rego: "package p\nviolation contains \"no\" if input.review.operation != \"DELETE\"", missing: policies.MissingOperation},
		"a rule that reads the old object":   {rego: "package p\nviolation contains \"no\" if not input.oldObject", missing: policies.MissingOperation},
		"a rule that reads the user":         {rego: "package p\nviolation contains \"no\" if input.user.username != \"a\"", missing: policies.MissingUser},
		"excluded users do not count": {rego: always, judged: true, mod: func(spec *v1.WorkloadPolicySpec) {
			spec.Match.Exclude = &v1.PolicyExclude{Users: []string{"a"}}
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.mod == nil {
				tc.mod = func(*v1.WorkloadPolicySpec) {}
			}
			engine := engineWith(t, policies.Options{}, policy("p", tc.rego, tc.mod))
			request := createRequest([]byte(`{"metadata":{"name":"train"}}`))
			request.Operation, request.UserKnown, request.Stored = "", false, true
			verdict := engine.Snapshot().Judge(t.Context(), request)
			if got := len(verdict.Violations) > 0; got != tc.judged {
				t.Errorf("judged: %t, want %t: %+v", got, tc.judged, verdict)
			}
			var want []policies.NotEvaluated
			if tc.missing != "" {
				want = []policies.NotEvaluated{{Policy: "p", Missing: tc.missing}}
			}
			if diff := cmp.Diff(want, verdict.NotEvaluated); diff != "" {
				t.Errorf("not evaluated (-want +got):\n%s", diff)
			}
		})
	}
}
