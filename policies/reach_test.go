package policies_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

func TestReaches(t *testing.T) {
	const name = "kubernetes.io/metadata.name"
	reach := &policies.Reach{Unasked: []string{"cni", "kube-system"}}
	requirement := func(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	const in, notIn, exists, absent = metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist
	tests := map[string]struct {
		selector []metav1.LabelSelectorRequirement
		exclude  []string
		// asked tells that there may be a namespace that is asked about, any that
		// there may be one at all.
		asked, any bool
	}{
		"all":                          {asked: true, any: true},
		"by a label":                   {selector: []metav1.LabelSelectorRequirement{requirement("tier", in, "a")}, asked: true, any: true},
		"by its absence":               {selector: []metav1.LabelSelectorRequirement{requirement("tier", absent)}, asked: true, any: true},
		"by name":                      {selector: []metav1.LabelSelectorRequirement{requirement(name, in, "team")}, asked: true, any: true},
		"by names, of the system":      {selector: []metav1.LabelSelectorRequirement{requirement(name, in, "cni", "kube-system")}, any: true},
		"one of them beside another":   {selector: []metav1.LabelSelectorRequirement{requirement(name, in, "cni", "team")}, asked: true, any: true},
		"which is excluded":            {selector: []metav1.LabelSelectorRequirement{requirement(name, in, "cni", "team")}, exclude: []string{"te*"}, any: true},
		"but those of the system":      {selector: []metav1.LabelSelectorRequirement{requirement(name, notIn, "cni", "kube-system")}, asked: true, any: true},
		"all, which are excluded":      {exclude: []string{"*"}},
		"without a name":               {selector: []metav1.LabelSelectorRequirement{requirement(name, absent)}},
		"a label that is and is not":   {selector: []metav1.LabelSelectorRequirement{requirement("tier", exists), requirement("tier", absent)}},
		"of two values":                {selector: []metav1.LabelSelectorRequirement{requirement("tier", in, "a"), requirement("tier", in, "b")}},
		"one of two, and not that one": {selector: []metav1.LabelSelectorRequirement{requirement("tier", in, "a", "b"), requirement("tier", notIn, "a")}, asked: true, any: true},
	}
	for label, tc := range tests {
		match := &v1.PolicyMatch{Exclude: &v1.PolicyExclude{Namespaces: tc.exclude}}
		if tc.selector != nil {
			match.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: tc.selector}
		}
		if got := reach.Reaches(match, false); got != tc.asked {
			t.Errorf("%s: asked %t, want %t", label, got, tc.asked)
		}
		if got := reach.Reaches(match, true); got != tc.any {
			t.Errorf("%s: any %t, want %t", label, got, tc.any)
		}
	}
}

func TestBars(t *testing.T) {
	reach := &policies.Reach{Unasked: []string{"kube-system"}}
	jobs := schema.GroupResource{Group: v1.GroupName, Resource: "trainingjobs"}
	tests := map[string]struct {
		resource  schema.GroupResource
		namespace string
		// plain and conditional are of policies without and with conditions.
		plain, conditional bool
	}{
		"a pod":                                  {resource: schema.GroupResource{Resource: "pods"}, namespace: "team"},
		"a pod of the system":                    {resource: schema.GroupResource{Resource: "pods"}, namespace: "kube-system", plain: true, conditional: true},
		"a node":                                 {resource: schema.GroupResource{Resource: "nodes"}, plain: true, conditional: true},
		"a token review":                         {resource: schema.GroupResource{Group: "authentication.k8s.io", Resource: "tokenreviews"}, plain: true, conditional: true},
		"a policy":                               {resource: schema.GroupResource{Group: v1.GroupName, Resource: "workloadpolicies"}, plain: true, conditional: true},
		"a job":                                  {resource: jobs, namespace: "team"},
		"a job of the system":                    {resource: jobs, namespace: "kube-system", conditional: true},
		"a job of Kubeflow's in the system":      {resource: schema.GroupResource{Group: "kubeflow.org", Resource: "pytorchjobs"}, namespace: "kube-system", plain: true, conditional: true},
		"what lives in no namespace, and may be": {resource: schema.GroupResource{Resource: "persistentvolumes"}},
	}
	for name, tc := range tests {
		for entry, want := range map[policies.Entry]bool{policies.EntryFail: tc.plain, "fail-in-12345678": tc.plain, "ignore-12345678": tc.conditional} {
			if got := reach.Bars(entry, tc.resource, tc.namespace); (got != "") != want {
				t.Errorf("%s, by entry %s: %q, want barred %t", name, entry, got, want)
			}
		}
	}
}

// Nobody's tokens wait for a policy, by whatever subresource they are asked for.
func TestTokensAreNotJudged(t *testing.T) {
	wild := policy("p", "package p\nviolation contains \"no\" if true", func(spec *v1.WorkloadPolicySpec) {
		spec.Match.Resources = []v1.PolicyResources{{Group: "*", Kinds: []string{"*"}, Subresources: []string{"", "*"}}}
	})
	engine := engineWith(t, policies.Options{}, wild)
	for name, tc := range map[string]struct {
		group, kind, resource, subresource string
		want                               int
	}{
		"a service account": {kind: "ServiceAccount", resource: "serviceaccounts", want: 1},
		"its token":         {group: "authentication.k8s.io", kind: "TokenRequest", resource: "serviceaccounts", subresource: "token"},
		"another token":     {group: "authentication.k8s.io", kind: "TokenRequest", resource: "machines", subresource: "login"},
		"an eviction":       {group: "policy", kind: "Eviction", resource: "pods", subresource: "eviction", want: 1},
	} {
		request := policies.Request{
			Kind: metav1.GroupVersionKind{Group: tc.group, Version: "v1", Kind: tc.kind}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: tc.resource},
			SubResource: tc.subresource, Namespace: "team", Operation: v1.OperationCreate, Object: []byte(`{}`), Reach: &policies.Reach{},
		}
		if got := len(engine.Snapshot().Judge(t.Context(), request).Judged); got != tc.want {
			t.Errorf("%s: judged by %d, want %d", name, got, tc.want)
		}
	}
}

// The engine itself goes by it, whoever asks.
func TestJudgeGoesByReach(t *testing.T) {
	pod := policy("p", "package p\nviolation contains \"no\" if true", func(spec *v1.WorkloadPolicySpec) {
		spec.Match.Resources = []v1.PolicyResources{{Kinds: []string{"Pod"}}}
	})
	engine := engineWith(t, policies.Options{}, pod)
	for namespace, want := range map[string]int{"team": 1, "kube-system": 0} {
		request := policies.Request{
			Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Namespace: namespace, Operation: v1.OperationCreate, Object: []byte(`{}`), Reach: &policies.Reach{Unasked: []string{"kube-system"}},
		}
		if got := len(engine.Snapshot().Judge(t.Context(), request).Judged); got != want {
			t.Errorf("%s: judged by %d, want %d", namespace, got, want)
		}
	}
}
