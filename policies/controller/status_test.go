package controller

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

const rule = "package a\nviolation contains {\"msg\": \"a\"} if false\n"

func policyOf(name string, generation int64, rego string, mods ...func(*v1.WorkloadPolicySpec)) *v1.WorkloadPolicy {
	policy := &v1.WorkloadPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation},
		Spec: v1.WorkloadPolicySpec{
			Match: v1.PolicyMatch{Resources: []v1.PolicyResources{{Group: v1.GroupName, Kinds: []string{v1.TrainingJobKind}}}},
			Rego:  rego,
		},
	}
	for _, mod := range mods {
		mod(&policy.Spec)
	}
	return policy
}

func TestCompiled(t *testing.T) {
	faultOf := func(policy *v1.WorkloadPolicy) error {
		_, err := policies.Compile(policy)
		if err == nil {
			t.Fatalf("%s compiles", policy.Name)
		}
		return err
	}
	badSelector := func(spec *v1.WorkloadPolicySpec) {
		spec.Match.NamespaceSelector = &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}},
		}
	}
	tests := map[string]struct {
		fault        error
		want         metav1.ConditionStatus
		wantReason   string
		wantMessages []string
	}{
		"a rule that compiles is in force": {
			want: metav1.ConditionTrue, wantReason: v1.WorkloadPolicyCompiledReason,
			wantMessages: []string{"The rule is in force."},
		},
		"a rule that does not is named with line and column": {
			fault: faultOf(policyOf("a", 1, "package a\nviolation contains x if {\n\tx := http.send({})\n}\n")),
			want:  metav1.ConditionFalse, wantReason: v1.WorkloadPolicyCompileFailedReason,
			wantMessages: []string{"spec.rego: 3:7: rego_type_error: builtin http.send is not allowed in a policy"},
		},
		"a spec that cannot be read is another reason": {
			fault: faultOf(policyOf("a", 1, rule, badSelector)),
			want:  metav1.ConditionFalse, wantReason: v1.WorkloadPolicyInvalidSpecReason,
			wantMessages: []string{"spec.match.namespaceSelector", "Like"},
		},
		"of both, the rule is the reason and the message says all": {
			fault: faultOf(policyOf("a", 1, "package a\nviolation contains", badSelector)),
			want:  metav1.ConditionFalse, wantReason: v1.WorkloadPolicyCompileFailedReason,
			wantMessages: []string{"spec.match.namespaceSelector", "spec.rego: 2:"},
		},
		"another fault is one of compiling": {
			fault: errors.New("out of luck"),
			want:  metav1.ConditionFalse, wantReason: v1.WorkloadPolicyCompileFailedReason,
			wantMessages: []string{"out of luck"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := compiled(policyOf("a", 7, rule), tc.fault)
			message := got.Message
			for _, part := range tc.wantMessages {
				if !strings.Contains(message, part) {
					t.Errorf("got message %q, want %q in it", message, part)
				}
			}
			got.Message = ""
			want := metav1.Condition{
				Type: v1.WorkloadPolicyCompiledCondition, Status: tc.want, Reason: tc.wantReason, ObservedGeneration: 7,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnforced(t *testing.T) {
	inForce := policies.PolicyState{Generation: 7, Enforced: 7}
	was := func(status metav1.ConditionStatus, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: v1.WorkloadPolicyEnforcedCondition, Status: status, ObservedGeneration: generation}}
	}
	tests := map[string]struct {
		was         []metav1.Condition
		state       policies.PolicyState
		coverage    Coverage
		confirmed   bool
		fault       error
		want        string
		wantMessage string
	}{
		"by the webhooks of our own kinds":              {state: inForce, coverage: Coverage{Generation: 7, Static: true}, want: "True Enforced"},
		"by an entry that a probe came through":         {state: inForce, coverage: Coverage{Generation: 7, Dynamic: true}, confirmed: true, want: "True Enforced"},
		"not before":                                    {state: inForce, coverage: Coverage{Generation: 7, Dynamic: true}, want: "Unknown Pending", wantMessage: "No probe"},
		"once it is, a change for others is no news":    {was: was("True", 7), state: inForce, coverage: Coverage{Generation: 7, Dynamic: true}, want: "True Enforced"},
		"a change of its own is":                        {was: was("True", 6), state: inForce, coverage: Coverage{Generation: 7, Dynamic: true}, want: "Unknown Pending"},
		"not for an older generation":                   {state: inForce, coverage: Coverage{Generation: 6, Static: true}, want: "Unknown Pending", wantMessage: "about to follow"},
		"not without a rule":                            {state: policies.PolicyState{Generation: 7}, coverage: Coverage{Generation: 7, Static: true}, want: "False NotCompiled"},
		"by the last rule that compiled":                {state: policies.PolicyState{Generation: 7, Enforced: 6, Err: errors.New("x")}, coverage: Coverage{Generation: 7, Static: true}, want: "True Enforced"},
		"not for kinds that are not served":             {state: inForce, coverage: Coverage{Generation: 7, Absent: []string{"A.b", "C.d"}}, confirmed: true, want: "False KindsNotServed", wantMessage: "A.b, C.d"},
		"for those that are":                            {state: inForce, coverage: Coverage{Generation: 7, Dynamic: true, Absent: []string{"A.b"}}, confirmed: true, want: "True Enforced", wantMessage: "but for kinds that it does not serve: A.b"},
		"for other subresources than some":              {state: inForce, coverage: Coverage{Generation: 7, Dynamic: true, Unasked: true}, confirmed: true, want: "True Enforced", wantMessage: "never asks about them"},
		"not for what is excluded":                      {state: inForce, coverage: Coverage{Generation: 7}, confirmed: true, want: "False Excluded"},
		"not while the configuration cannot be written": {state: inForce, coverage: Coverage{Generation: 7, Dynamic: true}, fault: errors.New("no luck"), want: "False ConfigurationFailed", wantMessage: "no luck"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			policy := policyOf("a", 7, rule)
			policy.Status.Conditions = tc.was
			got := enforced(policy, tc.state, tc.coverage, tc.confirmed, tc.fault)
			if said := string(got.Status) + " " + got.Reason; said != tc.want || !strings.Contains(got.Message, tc.wantMessage) || got.Message == "" {
				t.Errorf("got %s: %s, want %s: %s", said, got.Message, tc.want, tc.wantMessage)
			}
		})
	}
}

func TestLongMessageIsCutBetweenCharacters(t *testing.T) {
	for offset := range 3 {
		fault := errors.New(strings.Repeat("x", offset) + strings.Repeat("…", maxMessage))
		message := compiled(policyOf("a", 1, rule), fault).Message
		if !utf8.ValidString(message) || len(message) > maxMessage+len(" …") || !strings.HasSuffix(message, "… …") {
			t.Errorf("offset %d: got %d bytes, valid: %v, ending in %q", offset, len(message), utf8.ValidString(message), message[len(message)-8:])
		}
	}
}

func TestState(t *testing.T) {
	engine := policies.NewEngine(policies.Options{})
	if err := engine.Set(policyOf("good", 3, rule)); err != nil {
		t.Fatal(err)
	}
	if engine.Set(policyOf("good", 4, "nonsense")) == nil || engine.Set(policyOf("bad", 1, "nonsense")) == nil {
		t.Fatal("nonsense compiles")
	}
	s := &status{engine: engine}
	tests := map[string]struct {
		generation, enforced int64
		faulty               bool
	}{
		"good":   {generation: 4, enforced: 3, faulty: true},
		"bad":    {generation: 1, enforced: 0, faulty: true},
		"absent": {},
	}
	for name, want := range tests {
		got := s.state(name)
		if got.Generation != want.generation || got.Enforced != want.enforced || (got.Err != nil) != want.faulty {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestAuditedCondition(t *testing.T) {
	creating := policyOf("a", 3, rule)
	deletions := policyOf("a", 3, rule, deleting)
	for name, tc := range map[string]struct {
		policy   *v1.WorkloadPolicy
		audit    v1.PolicyAudit
		observed int64
		enforced int64
		want     metav1.ConditionStatus
		reason   string
		message  string
	}{
		"no results yet":           {policy: creating, enforced: 3, want: metav1.ConditionUnknown, reason: v1.WorkloadPolicyAuditingReason, message: "There are no results yet."},
		"results of before":        {policy: creating, observed: 2, enforced: 3, want: metav1.ConditionUnknown, reason: v1.WorkloadPolicyAuditingReason, message: "The results are those of generation 2."},
		"results of the policy":    {policy: creating, observed: 3, enforced: 3, want: metav1.ConditionTrue, reason: v1.WorkloadPolicyAuditedReason, message: "are judged"},
		"results of what compiled": {policy: creating, observed: 2, enforced: 2, want: metav1.ConditionTrue, reason: v1.WorkloadPolicyAuditedReason, message: "are judged"},
		"objects that are not judged": {
			policy: creating, observed: 3, enforced: 3, audit: v1.PolicyAudit{Judged: new(int32(8)), NotEvaluated: new(int32(12)), Message: "not evaluated for 12: nobody knows who"},
			want: metav1.ConditionFalse, reason: v1.WorkloadPolicyAuditIncompleteReason, message: "12 of 20 stored objects are not judged: not evaluated for 12: nobody knows who.",
		},
		"errors": {
			policy: creating, observed: 3, enforced: 3, audit: v1.PolicyAudit{Judged: new(int32(0)), Errors: new(int32(1)), NotEvaluated: new(int32(0)), Message: "too slow"},
			want: metav1.ConditionFalse, reason: v1.WorkloadPolicyAuditIncompleteReason, message: "1 of 1 stored objects are not judged: too slow.",
		},
		"kinds that are not looked at": {
			policy: creating, observed: 3, enforced: 3, audit: v1.PolicyAudit{Unseen: []v1.PolicyExclusion{{Subject: "*.apps", Reason: "by names only"}}},
			want: metav1.ConditionFalse, reason: v1.WorkloadPolicyAuditIncompleteReason, message: "Not looked at are stored objects of *.apps (by names only).",
		},
		"deletions": {policy: deletions, enforced: 3, want: metav1.ConditionFalse, reason: v1.WorkloadPolicyNothingStoredReason, message: "neither creations nor updates"},
	} {
		state := policies.PolicyState{Enforced: tc.enforced, Spec: &tc.policy.Spec}
		tc.audit.ObservedGeneration = tc.observed
		got := auditedCondition(tc.policy, &tc.audit, state)
		if got.Status != tc.want || got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) || got.ObservedGeneration != 3 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
