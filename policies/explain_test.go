package policies_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

const explained = `package p

violation contains {"msg": msg, "field": field} if {
	some i, role in input.object.spec.roles
	role.replicas > limit
	input.object.spec.roles[i].kind == "Worker"
	not input.object.spec.approved
	msg := sprintf("has %d workers", [role.replicas])
	field := sprintf("spec.roles[%d].replicas", [i])
}

violation contains "is late" if input.parameters.late

warn contains advice(input.object.metadata.name)

limit := input.parameters.max

advice(name) := sprintf("think of %s", [name])
`

// judgeExplained gives the explanations of what one policy finds, by message.
func judgeExplained(t *testing.T, p *v1.WorkloadPolicy, request policies.Request) map[string]*policies.Explanation {
	t.Helper()
	found := map[string]*policies.Explanation{}
	verdict := engineWith(t, policies.Options{Explain: true}, p).Snapshot().Judge(t.Context(), request)
	for _, violation := range append(verdict.Violations, verdict.Tolerated...) {
		if found[violation.Message] != nil {
			t.Errorf("%s is there twice", violation.Message)
		}
		found[violation.Message] = violation.Explanation
	}
	for _, err := range verdict.Errors {
		t.Error(err)
	}
	return found
}

func TestExplain(t *testing.T) {
	object := []byte(`{"metadata":{"name":"a"},"spec":{"roles":[{"kind":"Master","replicas":1},{"kind":"Worker","replicas":9},{"kind":"Worker","replicas":7}]}}`)
	got := judgeExplained(t, policy("p", explained, parameters(`{"max":4,"late":true}`)), createRequest(object))
	of := func(i, role string) *policies.Explanation {
		return &policies.Explanation{
			Line: 3, Text: `violation contains {"msg": msg, "field": field} if {`,
			Inputs: []policies.Binding{
				{Name: "input.object.spec.approved", Value: "undefined"},
				{Name: "input.object.spec.roles[" + i + "]", Value: role},
				{Name: "input.object.spec.roles[" + i + "].kind", Value: `"Worker"`},
				{Name: "input.parameters.max", Value: "4"},
			},
			Variables: []policies.Binding{{Name: "i", Value: i}, {Name: "limit", Value: "4"}, {Name: "role", Value: role}},
		}
	}
	want := map[string]*policies.Explanation{
		"has 9 workers": of("1", `{"kind": "Worker", "replicas": 9}`),
		"has 7 workers": of("2", `{"kind": "Worker", "replicas": 7}`),
		"is late": {
			Line: 12, Text: `violation contains "is late" if input.parameters.late`,
			Inputs: []policies.Binding{{Name: "input.parameters.late", Value: "true"}}, Variables: []policies.Binding{},
		},
		"think of a": {
			Line: 14, Text: `warn contains advice(input.object.metadata.name)`,
			Inputs: []policies.Binding{{Name: "input.object.metadata.name", Value: `"a"`}}, Variables: []policies.Binding{},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("explanations (-want +got):\n%s", diff)
	}
}

func TestExplainForms(t *testing.T) {
	tests := map[string]struct{ rego, message, text string }{
		"Gatekeeper's, in v0": {
			"package p\nviolation[{\"msg\": msg}] {\n  input.review.object.spec.n > 1\n  msg := \"no\"\n}", "no", `violation[{"msg": msg}] {`,
		},
		"conftest's":   {"package main\ndeny[msg] {\n  msg = \"no\"\n}", "no", "deny[msg] {"},
		"a list":       {"package p\nviolation := [\"a\", \"b\"] if input.object", "b", `violation := ["a", "b"] if input.object`},
		"without word": {"package p\ndeny if input.object", "rule deny holds", "deny if input.object"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := judgeExplained(t, policy("p", tc.rego), createRequest([]byte(`{"spec":{"n":2}}`)))[tc.message]
			if got == nil || got.Text != tc.text || got.Line != 2 {
				t.Errorf("got %+v, want line 2, %s", got, tc.text)
			}
		})
	}
}

func TestExplainTolerated(t *testing.T) {
	object := []byte(`{"spec":{"n":1}}`)
	got := judgeExplained(t, policy("p", "package p\nviolation contains \"no\" if input.object.spec.n == 1"), updateRequest(object, object))
	if got["no"] == nil {
		t.Errorf("the tolerated violation has no explanation: %v", got)
	}
}

func TestExplainOnlyWhenAsked(t *testing.T) {
	verdict := judge(t, policy("p", "package p\nviolation contains \"no\" if true"), createRequest([]byte(`{}`)))
	if len(verdict.Violations) != 1 || verdict.Violations[0].Explanation != nil {
		t.Errorf("got %+v, want one violation without explanation", verdict.Violations)
	}
}

func TestExplainHidesSecrets(t *testing.T) {
	object := []byte(`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{hunter-seven}"}},
	"spec":{"secretName":"where","password":"hunter-one","env":[{"name":"WANDB_API_KEY","value":"hunter-two"},{"name":"PIN_TOKEN","value":"12"},{"name":"RANK","value":"12345"}],
	"args":["--token=hunter-three","--password","hunter-four","--url=https://ada:hunter-five@example.com/x"],"command":["sh","-c","export HF_TOKEN=hunter-six; train"]}}`)
	got := judgeExplained(t, policy("p", `package p
violation contains "no" if {
	env := input.object.spec.env
	args := input.object.spec.args
	password := input.object.spec.password
	command := input.object.spec.command
	where := input.object.spec.secretName
	token := input.object.spec.env[1].value
	annotations := input.object.metadata.annotations
}`), createRequest(object))["no"]
	if got == nil {
		t.Fatal("there is no explanation")
	}
	var shown strings.Builder
	for _, binding := range append(got.Inputs, got.Variables...) {
		shown.WriteString(binding.Name + " = " + binding.Value + "\n")
	}
	for _, secret := range []string{"hunter", `"12"`} {
		if strings.Contains(shown.String(), secret) {
			t.Errorf("%s is shown:\n%s", secret, shown.String())
		}
	}
	for _, plain := range []string{`where = "where"`, `"RANK", "value": "12345"`, "--token=(hidden)", "example.com/x", `token = "(hidden)"`} {
		if !strings.Contains(shown.String(), plain) {
			t.Errorf("%s is not shown:\n%s", plain, shown.String())
		}
	}
}

func TestExplainHidesValuesOfSecrets(t *testing.T) {
	p := policy("p", "package p\nviolation contains \"no\" if input.object.data.key", func(spec *v1.WorkloadPolicySpec) {
		spec.Match.Resources = []v1.PolicyResources{{Group: "", Kinds: []string{"Secret"}}}
	})
	request := createRequest([]byte(`{"apiVersion":"v1","kind":"Secret","data":{"key":"aHVudGVy"}}`))
	request.Kind.Group, request.Kind.Kind = "", "Secret"
	got := judgeExplained(t, p, request)["no"]
	want := []policies.Binding{{Name: "input.object.data.key", Value: `""`}}
	if got == nil || cmp.Diff(want, got.Inputs) != "" {
		t.Errorf("got %+v, want inputs %v", got, want)
	}
}
