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
		"a rule over the object":           {rego: always, judged: true},
		"of creations only":                {rego: always, mod: operations(v1.OperationCreate), judged: true},
		"of updates only":                  {rego: always, mod: operations(v1.OperationUpdate), judged: true},
		"of deletions only":                {rego: always, mod: operations(v1.OperationDelete)},
		"of deletions and creations":       {rego: always, mod: operations(v1.OperationDelete, v1.OperationCreate), judged: true},
		"a rule on creations":              {rego: "package p\nviolation contains \"no\" if input.operation == \"CREATE\"", judged: true},
		"a rule on updates":                {rego: "package p\nviolation contains \"no\" if input.operation == \"UPDATE\""},
		"a rule on updates, which are all": {rego: "package p\nviolation contains \"no\" if input.operation == \"UPDATE\"", mod: operations(v1.OperationUpdate), judged: true},
		"Gatekeeper's way to spare updates": {
			rego: "package p\nviolation[{\"msg\": \"no\"}] { not is_update(input.review) }\nis_update(review) { review.operation == \"UPDATE\" }", judged: true,
		},
		"a rule without an old object":     {rego: "package p\nviolation contains \"no\" if not input.oldObject", judged: true},
		"a change, of which there is none": {rego: "package p\nviolation contains \"no\" if input.object != input.oldObject", mod: operations(v1.OperationUpdate)},
		"what an update leaves as it was":  {rego: "package p\nviolation contains \"no\" if input.object == input.oldObject", mod: operations(v1.OperationUpdate), judged: true},
		"in the review, too":               {rego: "package p\nviolation contains \"no\" if input.review.object == input.review.oldObject", mod: operations(v1.OperationUpdate), judged: true},
		"a rule that reads the options":    {rego: "package p\nviolation contains \"no\" if not input.review.options.fieldManager", missing: policies.MissingOptions},
		"a rule that reads the user":       {rego: "package p\nviolation contains \"no\" if input.user.username != \"a\"", missing: policies.MissingUser},
		"a dry run, which it would not be": {rego: "package p\nviolation contains \"no\" if input.review.dryRun == false", judged: true},
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
			request.UserKnown, request.Stored = false, true
			verdict := engine.Snapshot().Judge(t.Context(), request)
			request.Operation, request.OldObject = v1.OperationUpdate, request.Object
			updated := engine.Snapshot().Judge(t.Context(), request)
			if len(verdict.Judged) > 0 && len(updated.Judged) > 0 {
				t.Errorf("judged twice: %+v, %+v", verdict, updated)
			}
			verdict.Violations = append(verdict.Violations, updated.Violations...)
			verdict.NotEvaluated = append(verdict.NotEvaluated, updated.NotEvaluated...)
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
