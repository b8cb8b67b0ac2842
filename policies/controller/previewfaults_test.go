package controller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// storedPod is what a policy, changed by mod, says of a stored pod.
func storedPod(t *testing.T, mod func(*v1.WorkloadPolicySpec), pod string) outcome {
	t.Helper()
	policy := matching("a", on("", "Pod"))
	policy.Spec.Rego = always
	mod(&policy.Spec)
	engine := policies.NewEngine(policies.Options{})
	if err := engine.Set(policy); err != nil {
		t.Fatal(err)
	}
	return outcomeOf(judgeHere().Judge(t.Context(), engine.Snapshot(), nil, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, fixtures.Object(t, pod)))
}

// A condition that fails is not one that cannot be known: the API server refuses
// every write of the object.
func TestMatchConditionsThatFail(t *testing.T) {
	const (
		unplaced = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"team"},"spec":{"containers":[]}}`
		placed   = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"team"},"spec":{"nodeName":"a","containers":[]}}`
	)
	tests := map[string]struct {
		expression string
		pod        string
		ignore     bool
		want       string
		action     v1.PolicyAction
	}{
		"a field that is there":     {"object.spec.nodeName == 'a'", placed, false, "", ""},
		"a field that is not":       {"object.spec.nodeName == 'a'", unplaced, false, "match condition named fails (no such key: nodeName), and the API server refuses every write of it: guard it by has(object.spec.nodeName) && …", v1.ActionDeny},
		"and errors are ignored":    {"object.spec.nodeName == 'a'", unplaced, true, "match condition named fails (no such key: nodeName), and the API server does not ask about it: guard it by has(object.spec.nodeName) && …", v1.ActionWarn},
		"a field that is guarded":   {"has(object.spec.nodeName) && object.spec.nodeName == 'a'", unplaced, false, "", ""},
		"a label in brackets":       {"object.metadata.labels['a/b'] == 'c'", unplaced, false, "match condition named fails (no such key: labels), and the API server refuses every write of it: guard it by has(object.metadata.labels) && 'a/b' in object.metadata.labels && …", v1.ActionDeny},
		"of a creation alone":       {"oldObject.metadata.name == 'p'", unplaced, false, "", ""},
		"what nobody knows here":    {"object.spec.nodeName == request.userInfo.username", unplaced, false, "", ""},
		"a member of the user only": {"object.metadata.name != 'userInfo' && object.spec.nodeName == 'a'", unplaced, false, "match condition named fails (no such key: nodeName), and the API server refuses every write of it: guard it by has(object.spec.nodeName) && …", v1.ActionDeny},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := storedPod(t, func(spec *v1.WorkloadPolicySpec) {
				spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "named", Expression: tc.expression}}
				if tc.ignore {
					spec.FailurePolicy = v1.FailurePolicyIgnore
				}
			}, tc.pod)
			if tc.want == "" {
				if len(got.errors) > 0 {
					t.Errorf("got %+v", got.errors)
				}
				return
			}
			want := []policies.PolicyError{{Policy: "a", Reason: policies.ReasonConditions, Message: tc.want, Action: tc.action}}
			if diff := cmp.Diff(want, got.errors); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			tally := newTally(false)
			tally.add(got, outcome{})
			if lines := tally.warnings(); len(lines) != 1 || !strings.HasPrefix(lines[0], "preview: could not be evaluated for 1 of 1 stored objects: match condition named fails (no such key: ") {
				t.Errorf("got %q", lines)
			}
		})
	}
}

func TestFieldsThatCannotBeWhereTheFaultIs(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"team"},"spec":{"containers":[{"name":"a","image":"b"}]}}`
	for field, want := range map[string]string{
		"spec.containers[0].image": "",
		"spec.contaners":           "objects of the kind have no such field",
		"spec.template.spec":       "objects of the kind have no such field",
		"metadata.labels":          "the rule does not look at it",
		"the image":                "it is no path of a field, such as spec.containers[0].image",
	} {
		got := storedPod(t, func(spec *v1.WorkloadPolicySpec) {
			spec.Rego = `package a
violation contains {"msg": "is bad", "field": "` + field + `"} if { some c in input.review.object.spec.containers; c.image == "b" }`
		}, pod)
		tally := newTally(false)
		tally.add(got, outcome{})
		var said []string
		for _, line := range tally.warnings() {
			if strings.Contains(line, "names the field") {
				said = append(said, line)
			}
		}
		var expected []string
		if want != "" {
			expected = []string{"preview: for 1 of these the rule names the field " + field + ", and " + want + ": let it name the field that is at fault, or none"}
		}
		if diff := cmp.Diff(expected, said); diff != "" {
			t.Errorf("%s (-want +got):\n%s", field, diff)
		}
	}
}
