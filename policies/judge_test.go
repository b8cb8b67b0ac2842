package policies_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

const alwaysFails = "package p\nviolation contains {\"msg\": \"no\", \"field\": \"spec\", \"fix\": \"yes\"} if true\n"

var trainingJob = []byte(`{"apiVersion":"penstock.dev/v1","kind":"TrainingJob","metadata":{"name":"train","labels":{"team":"vision"}},"spec":{"framework":"PyTorch"}}`)

func TestJudgeResults(t *testing.T) {
	deny := func(policy, message, field, fix string) policies.Violation {
		return policies.Violation{Policy: policy, Message: message, Field: field, Fix: fix, Action: v1.ActionDeny}
	}
	tests := map[string]struct {
		rego string
		want []policies.Violation
	}{
		"an object with message, field and fix": {
			rego: alwaysFails,
			want: []policies.Violation{deny("p", "no", "spec", "yes")},
		},
		"a string": {
			rego: "package p\ndeny contains \"no\" if true",
			want: []policies.Violation{deny("p", "no", "", "")},
		},
		"details of Gatekeeper's are left out": {
			rego: "package p\nviolation[{\"msg\": \"no\", \"details\": {\"a\": 1}}] { true }",
			want: []policies.Violation{deny("p", "no", "", "")},
		},
		"a rule named warn only warns": {
			rego: "package p\ndeny contains \"no\" if true\nwarn contains \"hm\" if true",
			want: []policies.Violation{
				{Policy: "p", Message: "hm", Action: v1.ActionWarn},
				deny("p", "no", "", ""),
			},
		},
		"violations are sorted, and equal ones are one": {
			rego: "package p\nviolation contains {\"msg\": \"b\", \"x\": x} if some x in [1, 2]\nviolation contains {\"msg\": \"a\"} if true\nviolation contains {\"msg\": \"z\", \"field\": \"a\"} if true",
			want: []policies.Violation{deny("p", "a", "", ""), deny("p", "b", "", ""), deny("p", "z", "a", "")},
		},
		"conftest finds the object at the top of the input": {
			rego: "package main\ndeny contains input.metadata.name if input.kind == \"TrainingJob\"",
			want: []policies.Violation{deny("p", "train", "", "")},
		},
		"Gatekeeper finds it in the review": {
			rego: "package p\nviolation[{\"msg\": msg}] { r := input.review\n msg := sprintf(\"%s %s %s/%s %s %s\", [r.operation, r.kind.group, r.object.metadata.name, r.name, r.userInfo.username, r.namespaceObject.metadata.labels.tier]) }",
			want: []policies.Violation{deny("p", "CREATE penstock.dev train/train jane research", "", "")},
		},
		"the input of our own rules": {
			rego: "package p\nviolation contains msg if msg := sprintf(\"%s %s %s %s %v\", [input.operation, input.user.username, input.namespace.name, input.namespace.labels.tier, input.parameters])",
			want: []policies.Violation{deny("p", "CREATE jane team research {}", "", "")},
		},
		"the time is the request's": {
			rego: "package p\nviolation contains time.format(time.now_ns()) if true",
			want: []policies.Violation{deny("p", "2026-06-01T12:00:00Z", "", "")},
		},
		"nothing found": {rego: "package p\nviolation contains \"no\" if false"},
		"a verdict that is undefined": {
			rego: "package p\ndeny := \"no\" if input.object.spec.missing",
		},
		"numbers beyond 2^53 are told apart": {
			rego: "package p\nviolation contains sprintf(\"%v\", [n]) if { n := input.parameters.big; n > 9007199254740992; n - 9007199254740992 == 1 }",
			want: []policies.Violation{deny("p", "9007199254740993", "", "")},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := policy("p", tc.rego)
			if strings.Contains(tc.rego, "parameters.big") {
				parameters(`{"big": 9007199254740993}`)(&p.Spec)
			}
			request := createRequest(trainingJob)
			request.User.Username = "jane"
			verdict := judge(t, p, request)
			if diff := cmp.Diff(tc.want, verdict.Violations); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if len(verdict.Errors) > 0 {
				t.Errorf("errors: %v", verdict.Errors)
			}
		})
	}
}

func TestJudgeActions(t *testing.T) {
	research := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "research"}}
	production := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "production"}}
	echo := "package p\nviolation contains json.marshal(input.parameters) if true"
	override := func(overrides ...v1.PolicyOverride) func(*v1.WorkloadPolicySpec) {
		return func(spec *v1.WorkloadPolicySpec) { spec.Overrides = overrides }
	}
	raw := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	tests := map[string]struct {
		mods        []func(*v1.WorkloadPolicySpec)
		want        string
		wantAction  v1.PolicyAction
		wantAllowed bool
	}{
		"deny when left out": {want: "{}", wantAction: v1.ActionDeny},
		"warn":               {mods: []func(*v1.WorkloadPolicySpec){action(v1.ActionWarn)}, want: "{}", wantAction: v1.ActionWarn, wantAllowed: true},
		"audit":              {mods: []func(*v1.WorkloadPolicySpec){action(v1.ActionAudit)}, want: "{}", wantAction: v1.ActionAudit, wantAllowed: true},
		"an override of another namespace does not count": {
			mods: []func(*v1.WorkloadPolicySpec){parameters(`{"a":1}`), override(v1.PolicyOverride{NamespaceSelector: production, Action: v1.ActionAudit, Parameters: raw(`{"a":2}`)})},
			want: `{"a":1}`, wantAction: v1.ActionDeny,
		},
		"overrides merge in order; null removes": {
			mods: []func(*v1.WorkloadPolicySpec){parameters(`{"a":1,"b":{"c":1,"d":2},"e":3}`), override(
				v1.PolicyOverride{NamespaceSelector: research, Action: v1.ActionAudit, Parameters: raw(`{"a":5,"b":{"c":7},"e":null}`)},
				v1.PolicyOverride{NamespaceSelector: research, Action: v1.ActionWarn, Parameters: raw(`{"a":6}`)},
			)},
			want: `{"a":6,"b":{"c":7,"d":2}}`, wantAction: v1.ActionWarn, wantAllowed: true,
		},
		"what is unset is gone before parameters are merged": {
			mods: []func(*v1.WorkloadPolicySpec){parameters(`{"a":1,"b":{"c":1,"d":{"x":1},"a.b/c":2},"a.b":3,"e":[1]}`), override(
				v1.PolicyOverride{NamespaceSelector: research, Unset: []string{"a", "b.d", "b[a.b/c]", "a.b", "nothing", "e.x", "a.b.c"}, Parameters: raw(`{"b":{"d":{"y":2}}}`)},
				v1.PolicyOverride{NamespaceSelector: production, Unset: []string{"e"}},
			)},
			want: `{"b":{"c":1,"d":{"y":2}},"e":[1]}`, wantAction: v1.ActionDeny,
		},
		"what an override before has set is unset": {
			mods: []func(*v1.WorkloadPolicySpec){parameters(`{"a":1}`), override(
				v1.PolicyOverride{NamespaceSelector: research, Parameters: raw(`{"b":2,"c.d":3}`)},
				v1.PolicyOverride{NamespaceSelector: research, Unset: []string{"b", "c.d"}},
			)},
			want: `{"a":1}`, wantAction: v1.ActionDeny,
		},
		"an override may change parameters only": {
			mods: []func(*v1.WorkloadPolicySpec){override(v1.PolicyOverride{NamespaceSelector: research, Parameters: raw(`{"x":null,"y":{"z":null}}`)})},
			want: `{"y":{}}`, wantAction: v1.ActionDeny,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			verdict := judge(t, policy("p", echo, tc.mods...), createRequest(trainingJob))
			want := []policies.Violation{{Policy: "p", Message: tc.want, Action: tc.wantAction}}
			if diff := cmp.Diff(want, verdict.Violations); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if verdict.Allowed() != tc.wantAllowed {
				t.Errorf("Allowed is %t", verdict.Allowed())
			}
		})
	}
}

func TestExceptions(t *testing.T) {
	until := now.Add(30 * 24 * time.Hour)
	tests := map[string]struct {
		exception v1.PolicyException
		now       time.Time
		allowed   bool
		warnings  int
	}{
		"long before the end":          {v1.PolicyException{Namespaces: []string{"team"}}, now, true, 0},
		"in the last week":             {v1.PolicyException{Namespaces: []string{"team"}}, until.Add(-6 * 24 * time.Hour), true, 1},
		"at the end":                   {v1.PolicyException{Namespaces: []string{"team"}}, until, false, 0},
		"of another namespace":         {v1.PolicyException{Namespaces: []string{"other"}}, now, false, 0},
		"of the object by name":        {v1.PolicyException{Namespaces: []string{"team"}, Names: []string{"train"}}, now, true, 0},
		"of another object by name":    {v1.PolicyException{Namespaces: []string{"team"}, Names: []string{"train2"}}, now, false, 0},
		"of the name elsewhere":        {v1.PolicyException{Namespaces: []string{"other"}, Names: []string{"train"}}, now, false, 0},
		"in the last week, of a clean": {v1.PolicyException{Namespaces: []string{"team"}}, until.Add(-time.Hour), true, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.exception.Until, tc.exception.Reason = metav1.NewTime(until), "migration"
			p := policy("p", alwaysFails, func(spec *v1.WorkloadPolicySpec) { spec.Exceptions = []v1.PolicyException{tc.exception} })
			request := createRequest(trainingJob)
			request.Now = tc.now
			verdict := judge(t, p, request)
			if verdict.Allowed() != tc.allowed || len(verdict.Warnings()) != tc.warnings {
				t.Errorf("allowed %t with warnings %q", verdict.Allowed(), verdict.Warnings())
			}
		})
	}
}

func TestUnknownUser(t *testing.T) {
	request := createRequest(trainingJob)
	request.UserKnown = false
	for rego, wantEvaluated := range map[string]bool{
		"violation contains \"no\" if input.object":                                    true,
		"violation contains \"no\" if input.review.object":                             true,
		"violation contains \"no\" if input.user.username == \"jane\"":                 false,
		"violation contains \"no\" if not input.user":                                  false,
		"violation contains \"no\" if input.review.userInfo.groups":                    false,
		"violation contains \"no\" if { r := input.review; not r.userInfo }":           false,
		"violation contains \"no\" if { some x in [\"user\"]; not input[x].username }": false,
	} {
		verdict := judge(t, policy("p", "package p\n"+rego), request)
		if evaluated := len(verdict.Violations) == 1 && len(verdict.NotEvaluated) == 0; evaluated != wantEvaluated {
			t.Errorf("%s: violations %v, not evaluated %v", rego, verdict.Violations, verdict.NotEvaluated)
		}
	}
}

func TestDeleteJudgesTheOldObject(t *testing.T) {
	p := policy("p", "package p\nviolation contains input.object.metadata.name if input.review.object.spec", func(spec *v1.WorkloadPolicySpec) {
		spec.Match.Operations = []v1.PolicyOperation{v1.OperationDelete}
	})
	request := updateRequest(trainingJob, nil)
	request.Operation = v1.OperationDelete
	verdict := judge(t, p, request)
	if len(verdict.Denied()) != 1 || verdict.Denied()[0].Message != "train" {
		t.Errorf("got %v", verdict.Violations)
	}
}

func TestSecretsDoNotReachRego(t *testing.T) {
	p := policy("p", "package p\nviolation contains json.marshal(input.review.object) if true", func(spec *v1.WorkloadPolicySpec) {
		spec.Match.Resources = []v1.PolicyResources{{Kinds: []string{"Secret"}}}
	})
	request := createRequest([]byte(`{"kind":"Secret","metadata":{"name":"s","annotations":{"last":"hush"}},"data":{"password":"hush"},"stringData":{"token":"hush"}}`))
	request.Kind = metav1.GroupVersionKind{Version: "v1", Kind: "Secret"}
	verdict := judge(t, p, request)
	if len(verdict.Violations) != 1 || strings.Contains(fmt.Sprint(verdict), "hush") {
		t.Errorf("got %v", verdict.Violations)
	}
	if !strings.Contains(verdict.Violations[0].Message, "password") {
		t.Errorf("the keys are gone: %v", verdict.Violations)
	}
}

func TestNamespaceLabels(t *testing.T) {
	tests := map[string]struct {
		policy *v1.WorkloadPolicy
		needed bool
	}{
		"a policy that does not look at the namespace": {policy: policy("p", alwaysFails)},
		"a selector": {
			policy: policy("p", alwaysFails, func(spec *v1.WorkloadPolicySpec) { spec.Match.NamespaceSelector = tier("research") }),
			needed: true,
		},
		"an override": {
			policy: policy("p", alwaysFails, func(spec *v1.WorkloadPolicySpec) {
				spec.Overrides = []v1.PolicyOverride{{NamespaceSelector: tier("production"), Action: v1.ActionWarn}}
			}),
			needed: true,
		},
		"a rule that reads them": {
			policy: policy("p", "package p\nviolation contains \"no\" if not input.namespace.labels.owner"),
			needed: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := createRequest(trainingJob)
			request.NamespaceLabels = func() (map[string]string, error) { return nil, errors.New("no such namespace") }
			failing := judge(t, tc.policy, request)
			if failed := failing.Failed(); tc.needed && (len(failed) != 1 || failed[0].Reason != policies.ReasonNamespace) {
				t.Errorf("labels that cannot be read: got %+v", failing)
			}
			request.NamespaceLabels, request.Offline = nil, true
			unknown := judge(t, tc.policy, request)
			if tc.needed && len(unknown.NotEvaluated) != 1 {
				t.Errorf("labels that nobody knows: got %+v", unknown)
			}
			if !tc.needed && (len(failing.Denied()) != 1 || len(unknown.Denied()) != 1) {
				t.Errorf("got %+v and %+v", failing, unknown)
			}
			request.Namespace = ""
			if clusterScoped := judge(t, tc.policy, request); len(clusterScoped.Judged) != 1 {
				t.Errorf("a cluster-scoped object: got %+v", clusterScoped)
			}
		})
	}
}
