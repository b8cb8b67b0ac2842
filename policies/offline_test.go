package policies_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

// Offline it is told that a policy is not asked for the sake of an exception, if it
// would be otherwise.
func TestOfflineExceptionsAreTold(t *testing.T) {
	excepts := policy("p", "package p\nviolation contains \"no\" if true", func(spec *v1.WorkloadPolicySpec) {
		spec.Match.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "yes"}}
		spec.Exceptions = []v1.PolicyException{
			{Namespaces: []string{"team"}, Until: metav1.NewTime(now.AddDate(0, 0, -1)), Reason: "over"},
			{Namespaces: []string{"t*"}, Until: metav1.NewTime(now.AddDate(0, 0, 30)), Reason: "shorter"},
			{Namespaces: []string{"team"}, Until: metav1.NewTime(now.AddDate(0, 0, 60)), Reason: "longest"},
		}
	})
	for name, tc := range map[string]struct {
		object  string
		offline bool
		want    []string
	}{
		"offline":                            {object: `{"metadata":{"labels":{"gpu":"yes"}}}`, offline: true, want: []string{"p"}},
		"an object that does not match":      {object: `{"metadata":{}}`, offline: true},
		"in a cluster it need not be":        {object: `{"metadata":{"labels":{"gpu":"yes"}}}`},
		"whatever else is wrong with it all": {object: `{"metadata":`, offline: true},
	} {
		t.Run(name, func(t *testing.T) {
			request := createRequest([]byte(tc.object))
			request.Offline = tc.offline
			verdict := judge(t, excepts, request)
			if diff := cmp.Diff(tc.want, verdict.Excepted); diff != "" || !verdict.Allowed() || len(verdict.Judged)+len(verdict.Errors) > 0 {
				t.Errorf("excepted (-want +got):\n%s%+v", diff, verdict)
			}
			if got := policies.ExceptionOf(excepts.Spec.Exceptions, &request); got != 2 {
				t.Errorf("exception %d, want that which ends last", got)
			}
		})
	}
}

func TestOfflineNothingIsGuessed(t *testing.T) {
	const always = "package p\nviolation contains \"no\" if true"
	research := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "research"}}
	named := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: []string{name}},
		}}
	}
	tests := map[string]struct {
		rego string
		mod  func(*v1.WorkloadPolicySpec)
		// elsewhere tells that the policy is for other namespaces.
		elsewhere bool
		want      []policies.NotEvaluated
	}{
		"a rule that needs nothing judges": {rego: always},
		"a rule that reads the user": {
			rego: "package p\nviolation contains \"no\" if input.user.username != \"a\"",
			want: []policies.NotEvaluated{{Policy: "p", Missing: policies.MissingUser}},
		},
		"a policy that leaves users alone": {
			rego: always,
			mod: func(spec *v1.WorkloadPolicySpec) {
				spec.Match.Exclude = &v1.PolicyExclude{Groups: []string{"admins"}}
			},
			want: []policies.NotEvaluated{{Policy: "p", Missing: policies.MissingUser}},
		},
		"a rule that reads the labels": {
			rego: "package p\nviolation contains \"no\" if not input.namespace.labels.owner",
			want: []policies.NotEvaluated{{Policy: "p", Missing: policies.MissingNamespaceLabels}},
		},
		"a policy for some namespaces": {
			rego: always,
			mod:  func(spec *v1.WorkloadPolicySpec) { spec.Match.NamespaceSelector = research },
			want: []policies.NotEvaluated{{Policy: "p", Missing: policies.MissingNamespaceLabels}},
		},
		"a policy for namespaces by name": {
			rego: always,
			mod:  func(spec *v1.WorkloadPolicySpec) { spec.Match.NamespaceSelector = named("team") },
		},
		"a policy for a namespace of another name, whatever its labels": {
			rego: "package p\nviolation contains \"no\" if not input.namespace.labels.owner",
			mod: func(spec *v1.WorkloadPolicySpec) {
				spec.Match.NamespaceSelector = named("other")
				spec.Match.NamespaceSelector.MatchLabels = research.MatchLabels
			},
			elsewhere: true,
		},
		"a policy for a namespace by name and labels": {
			rego: always,
			mod: func(spec *v1.WorkloadPolicySpec) {
				spec.Match.NamespaceSelector = named("team")
				spec.Match.NamespaceSelector.MatchLabels = research.MatchLabels
			},
			want: []policies.NotEvaluated{{Policy: "p", Missing: policies.MissingNamespaceLabels}},
		},
		"a policy for a namespace by name that reads the labels": {
			rego: "package p\nviolation contains \"no\" if not input.namespace.labels.owner",
			mod:  func(spec *v1.WorkloadPolicySpec) { spec.Match.NamespaceSelector = named("team") },
			want: []policies.NotEvaluated{{Policy: "p", Missing: policies.MissingNamespaceLabels}},
		},
		"a rule that reads the name of the namespace": {
			rego: "package p\nviolation contains \"no\" if input.namespace.name == \"team\"",
		},
		"a policy that is stricter in a namespace by name": {
			rego: always,
			mod: func(spec *v1.WorkloadPolicySpec) {
				spec.Action = v1.ActionWarn
				spec.Overrides = []v1.PolicyOverride{{NamespaceSelector: named("team"), Action: v1.ActionDeny}}
			},
		},
		"a policy that is relaxed in some namespaces": {
			rego: always,
			mod: func(spec *v1.WorkloadPolicySpec) {
				spec.Overrides = []v1.PolicyOverride{{NamespaceSelector: research, Action: v1.ActionWarn}}
			},
			want: []policies.NotEvaluated{{Policy: "p", Missing: policies.MissingNamespaceLabels}},
		},
		"a policy that reads the cluster": {
			rego: "package p\nviolation contains \"no\" if count(object.get(data.inventory, \"cluster\", {})) == 0",
			mod: func(spec *v1.WorkloadPolicySpec) {
				spec.Inventory = []v1.InventoryKind{{APIVersion: "v1", Kind: "Node"}}
			},
			want: []policies.NotEvaluated{{Policy: "p", Missing: policies.MissingInventory}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.mod == nil {
				tc.mod = func(*v1.WorkloadPolicySpec) {}
			}
			request := createRequest([]byte(`{"spec":{}}`))
			request.Offline, request.UserKnown, request.NamespaceLabels = true, false, nil
			verdict := judge(t, policy("p", tc.rego, tc.mod), request)
			if diff := cmp.Diff(tc.want, verdict.NotEvaluated); diff != "" {
				t.Errorf("not evaluated (-want +got):\n%s", diff)
			}
			if got, want := verdict.Allowed(), tc.want != nil || tc.elsewhere; got != want {
				t.Errorf("allowed is %t, want %t: %+v", got, want, verdict)
			}
		})
	}
}
