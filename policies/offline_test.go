package policies_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

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
