package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
	"github.com/penstock-dev/penstock/test/fixtures"
)

const always = "package a\nviolation contains {\"msg\": \"no\", \"field\": \"spec.a\"} if true\n"

// judgeHere judges in a cluster where only the namespace team has labels that
// are known, and kube-system is excluded.
func judgeHere() *stored.Judge {
	return &stored.Judge{
		Reach: &policies.Reach{Unasked: []string{"kube-system"}},
		Labels: func(_ context.Context, namespace string) (map[string]string, error) {
			if namespace != "team" {
				return nil, errors.New("nobody knows")
			}
			return map[string]string{"tier": "research"}, nil
		},
		Normal: func(_ schema.GroupVersionKind, raw []byte) ([]byte, error) { return raw, nil },
		Clock:  func() time.Time { return time.Unix(0, 0) },
	}
}

// What a policy is not asked about counts among no stored objects, whatever its
// rule would say.
func TestWhatCountsAsAskedAbout(t *testing.T) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	jobs := schema.GroupVersionResource{Group: v1.GroupName, Version: "v1", Resource: "trainingjobs"}
	pod := func(namespace string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"` + namespace + `","labels":{"a":"b"}}}`
	}
	job := func(namespace string) string {
		return `{"apiVersion":"penstock.dev/v1","kind":"TrainingJob","metadata":{"name":"j","namespace":"` + namespace + `"}}`
	}
	excepting := func(until time.Time) func(*v1.WorkloadPolicySpec) {
		return func(spec *v1.WorkloadPolicySpec) {
			spec.Exceptions = []v1.PolicyException{{Namespaces: []string{"team"}, Until: metav1.NewTime(until), Reason: "r"}}
		}
	}
	tests := map[string]struct {
		mods     []func(*v1.WorkloadPolicySpec)
		object   string
		resource schema.GroupVersionResource
		want     bool
	}{
		"a pod":                          {mods: []func(*v1.WorkloadPolicySpec){on("", "Pod")}, object: pod("team"), resource: pods, want: true},
		"a pod of an excluded namespace": {mods: []func(*v1.WorkloadPolicySpec){on("", "Pod")}, object: pod("kube-system"), resource: pods},
		"a pod of a namespace that the policy excludes": {
			mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), func(spec *v1.WorkloadPolicySpec) {
				spec.Match.Exclude = &v1.PolicyExclude{Namespaces: []string{"te*"}}
			}}, object: pod("team"), resource: pods,
		},
		"a pod of a namespace that it does not select": {
			mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), func(spec *v1.WorkloadPolicySpec) {
				spec.Match.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "production"}}
			}}, object: pod("team"), resource: pods,
		},
		"a pod that it does not select": {
			mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), func(spec *v1.WorkloadPolicySpec) {
				spec.Match.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "c"}}
			}}, object: pod("team"), resource: pods,
		},
		"a pod that conditions leave out": {mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), with("false")}, object: pod("team"), resource: pods},
		"a pod with an exception":         {mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), excepting(time.Unix(60, 0))}, object: pod("team"), resource: pods},
		"a pod whose exception has ended": {mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), excepting(time.Unix(0, 0))}, object: pod("team"), resource: pods, want: true},
		"a job, of every namespace":       {mods: []func(*v1.WorkloadPolicySpec){on(v1.GroupName, v1.TrainingJobKind)}, object: job("kube-system"), resource: jobs, want: true},
		"a job under conditions":          {mods: []func(*v1.WorkloadPolicySpec){on(v1.GroupName, v1.TrainingJobKind), with("true")}, object: job("team"), resource: jobs, want: true},
		"a job of an excluded namespace under conditions": {
			mods: []func(*v1.WorkloadPolicySpec){on(v1.GroupName, v1.TrainingJobKind), with("true")}, object: job("kube-system"), resource: jobs,
		},
	}
	for name, tc := range tests {
		for rule, rego := range map[string]string{"refuses": always, "passes": "package a\nviolation contains \"no\" if input.object.spec.never\n"} {
			policy := matching("a", tc.mods...)
			policy.Spec.Rego = rego
			engine := policies.NewEngine(policies.Options{})
			if err := engine.Set(policy); err != nil {
				t.Fatal(err)
			}
			got := outcomeOf(judgeHere().Judge(t.Context(), engine.Snapshot(), nil, tc.resource, fixtures.Object(t, tc.object)))
			if got.asked != tc.want {
				t.Errorf("%s, which the rule %s: asked is %v, want %v", name, rule, got.asked, tc.want)
			}
			if got.action() != "" && !tc.want {
				t.Errorf("%s, which the rule %s: comes to %s", name, rule, got.action())
			}
		}
	}
}

// The status of Penstock's kinds is let through whatever policies say, and their
// status says so.
func TestOwnStatusIsNeverAskedAbout(t *testing.T) {
	_, coverages, err := Rules([]*v1.WorkloadPolicy{
		matching("alone", on(v1.GroupName, v1.TrainingJobKind, "status")), matching("beside", on(v1.GroupName, v1.TrainingJobKind, "", "status")),
		matching("conditional", on(v1.GroupName, v1.TrainingJobKind, "status"), with("true")),
	}, kinds, rulesOptions)
	if err != nil {
		t.Fatal(err)
	}
	for name, static := range map[string]bool{"alone": false, "beside": true, "conditional": false} {
		if got := coverages[name]; got.Static != static || got.Dynamic || !got.Unasked || len(got.Exclusions) == 0 {
			t.Errorf("policy %s: got %+v", name, got)
		}
	}
}
