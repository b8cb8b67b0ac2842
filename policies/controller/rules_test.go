package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/test/fixtures"
	"github.com/penstock-dev/penstock/webhooks/cel"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

var kinds = fixtures.Served{
	{Kind: "Pod"}:                                       {"v1", "pods"},
	{Kind: "ServiceAccount"}:                            {"v1", "serviceaccounts"},
	{Kind: "Node"}:                                      {"v1", "nodes"},
	{Group: "apps", Kind: "Deployment"}:                 {"v1", "deployments"},
	{Group: "apps", Kind: "StatefulSet"}:                {"v1", "statefulsets"},
	{Group: "batch", Kind: "Job"}:                       {"v1", "jobs"},
	{Group: "kubeflow.org", Kind: "PyTorchJob"}:         {"v1", "pytorchjobs"},
	{Group: "kubeflow.org", Kind: "MPIJob"}:             {"v2beta1", "mpijobs"},
	{Group: v1.GroupName, Kind: v1.TrainingJobKind}:     {"v1", "trainingjobs"},
	{Group: "authorization.k8s.io", Kind: "TokenThing"}: {"v1", "tokenthings"},
}

func matching(name string, mods ...func(*v1.WorkloadPolicySpec)) *v1.WorkloadPolicy {
	policy := policyOf(name, 3, rule)
	policy.Spec.Match.Resources = nil
	for _, mod := range mods {
		mod(&policy.Spec)
	}
	return policy
}

func on(group, kind string, subresources ...string) func(*v1.WorkloadPolicySpec) {
	return func(spec *v1.WorkloadPolicySpec) {
		spec.Match.Resources = append(spec.Match.Resources, v1.PolicyResources{Group: group, Kinds: []string{kind}, Subresources: subresources})
	}
}

func with(condition string) func(*v1.WorkloadPolicySpec) {
	return func(spec *v1.WorkloadPolicySpec) {
		spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "c", Expression: condition}}
	}
}

func in(gpus string) func(*v1.WorkloadPolicySpec) {
	return func(spec *v1.WorkloadPolicySpec) {
		spec.Match.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"gpus": gpus}}
	}
}

func inNamespaces(names ...string) func(*v1.WorkloadPolicySpec) {
	return func(spec *v1.WorkloadPolicySpec) {
		spec.Match.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: names},
		}}
	}
}

func excluding(namespaces ...string) func(*v1.WorkloadPolicySpec) {
	return func(spec *v1.WorkloadPolicySpec) { spec.Match.Exclude = &v1.PolicyExclude{Namespaces: namespaces} }
}

// everExcluded is what a wildcard never stands for.
var everExcluded = []string{
	"all resources of admissionregistration.k8s.io", "all resources of authentication.k8s.io", "all resources of authorization.k8s.io",
	"resource apiservices.apiregistration.k8s.io", "resource certificatesigningrequests.certificates.k8s.io",
	"resource flowschemas.flowcontrol.apiserver.k8s.io", "resource leases.coordination.k8s.io", "resource nodes",
	"resource prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", "resource workloadpolicies.penstock.dev",
}

func ignoring(spec *v1.WorkloadPolicySpec) { spec.FailurePolicy = v1.FailurePolicyIgnore }

func upstream(spec *v1.WorkloadPolicySpec) { spec.UpstreamKinds = v1.UpstreamKindsJudge }

func deleting(spec *v1.WorkloadPolicySpec) {
	spec.Match.Operations = []v1.PolicyOperation{v1.OperationDelete}
}

func connecting(spec *v1.WorkloadPolicySpec) {
	spec.Match.Operations = []v1.PolicyOperation{v1.OperationConnect}
}

var rulesOptions = RulesOptions{
	Namespace: "penstock-system", SystemNamespaces: []string{"cni", "kube-system"}, JudgePath: "/judge/", ProbePath: "/probe",
	Client: func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: &path}
	},
}

// inShort is webhooks in lines: the name, conditions, selected namespaces and
// rules of each.
func inShort(webhooks []admissionregistrationv1.ValidatingWebhook) []string {
	var lines []string
	for _, webhook := range webhooks {
		line := fmt.Sprintf("%s %s %s", strings.TrimSuffix(webhook.Name, ".policies.penstock.dev"), *webhook.FailurePolicy, *webhook.ClientConfig.URL)
		for _, condition := range webhook.MatchConditions {
			line += " if " + condition.Name
		}
		if len(webhook.NamespaceSelector.MatchLabels) > 0 && webhook.ObjectSelector.MatchLabels == nil {
			line += " in " + labels.FormatLabels(webhook.NamespaceSelector.MatchLabels)
		}
		lines = append(lines, line)
		for _, rule := range webhook.Rules {
			lines = append(lines, fmt.Sprintf("  %v %v %v %v", rule.Operations, rule.APIGroups, rule.APIVersions, rule.Resources))
		}
	}
	return lines
}

func TestRules(t *testing.T) {
	tests := map[string]struct {
		policies []*v1.WorkloadPolicy
		want     []string
		// absent and exclusions are of the first policy, but for namespaces.
		absent, exclusions []string
		// awaited tells that the first policy waits for upstream kinds.
		awaited bool
	}{
		"our own kinds have webhooks": {policies: []*v1.WorkloadPolicy{matching("a", on(v1.GroupName, v1.TrainingJobKind))}},
		"each entry is one webhook": {
			policies: []*v1.WorkloadPolicy{
				matching("b", on("batch", "Job")), matching("a", on("", "Pod", "", "resize")), matching("c", on("apps", "Deployment", "scale"), ignoring),
			},
			want: []string{
				"fail Fail /judge/fail", "  [CREATE UPDATE] [] [v1] [pods pods/resize]", "  [CREATE UPDATE] [batch] [v1] [jobs]",
				"ignore Ignore /judge/ignore", "  [CREATE UPDATE] [apps] [v1] [deployments/scale]",
			},
		},
		"rules of several policies are united": {
			policies: []*v1.WorkloadPolicy{matching("a", on("apps", "Deployment"), on("apps", "StatefulSet")), matching("b", on("apps", "Deployment"))},
			want:     []string{"fail Fail /judge/fail", "  [CREATE UPDATE] [apps] [v1] [deployments statefulsets]"},
		},
		"match conditions make entries": {
			policies: []*v1.WorkloadPolicy{matching("a", on("", "Pod"), with("true")), matching("b", on("", "Pod"), with("true")), matching("c", on("", "Pod"), with("false"))},
			want: []string{
				"fail-1065c95e Fail /judge/fail-1065c95e if c", "  [CREATE UPDATE] [] [v1] [pods]",
				"fail-d9244026 Fail /judge/fail-d9244026 if c", "  [CREATE UPDATE] [] [v1] [pods]",
			},
		},
		"selectors of namespaces make entries of what fails closed": {
			policies: []*v1.WorkloadPolicy{
				matching("a", on("", "Pod"), in("team")), matching("b", on("batch", "Job"), in("team")), matching("c", on("", "Pod"), in("team"), with("true")),
				matching("d", on("", "Pod"), in("lab")), matching("e", on("", "Pod"), in("team"), ignoring), matching("f", on(v1.GroupName, v1.TrainingJobKind), in("team")),
			},
			want: []string{
				"fail-88f2750b Fail /judge/fail-88f2750b if c in gpus=team", "  [CREATE UPDATE] [] [v1] [pods]",
				"fail-in-1de8edd3 Fail /judge/fail-in-1de8edd3 in gpus=team", "  [CREATE UPDATE] [] [v1] [pods]", "  [CREATE UPDATE] [batch] [v1] [jobs]",
				"fail-in-6260a0a0 Fail /judge/fail-in-6260a0a0 in gpus=lab", "  [CREATE UPDATE] [] [v1] [pods]",
				"ignore Ignore /judge/ignore", "  [CREATE UPDATE] [] [v1] [pods]",
			},
		},
		"a selector that is invalid selects all": {
			policies: []*v1.WorkloadPolicy{matching("a", on("", "Pod"), in("not a value"))},
			want:     []string{"fail Fail /judge/fail", "  [CREATE UPDATE] [] [v1] [pods]"},
		},
		"conditions on our own kinds are the API server's to evaluate": {
			policies: []*v1.WorkloadPolicy{matching("a", on(v1.GroupName, v1.TrainingJobKind, "", "scale"), with("true"))},
			want:     []string{"fail-d9244026 Fail /judge/fail-d9244026 if c", "  [CREATE UPDATE] [penstock.dev] [v1] [trainingjobs trainingjobs/scale]"},
		},
		"but do not keep them from being deleted": {
			policies: []*v1.WorkloadPolicy{matching("a", on(v1.GroupName, v1.TrainingJobKind), with("true"), deleting)},
		},
		"wildcards keep away from what the cluster starts by": {
			policies:   []*v1.WorkloadPolicy{matching("a", on("*", "*", "", "*"))},
			want:       []string{"fail Fail /judge/fail if penstock-not-never", "  [CREATE UPDATE] [*] [*] [*/*]"},
			exclusions: append(slices.Clone(everExcluded), "resource serviceaccounts/token"),
		},
		"of one group, what is in that": {
			policies:   []*v1.WorkloadPolicy{matching("a", on("coordination.k8s.io", "*"))},
			want:       []string{"fail Fail /judge/fail if penstock-not-never", "  [CREATE UPDATE] [coordination.k8s.io] [*] [*]"},
			exclusions: []string{"resource leases.coordination.k8s.io"},
		},
		"and from the deletion of our own kinds, if there are conditions": {
			policies:   []*v1.WorkloadPolicy{matching("a", on("*", "*"), deleting, with("true"))},
			want:       []string{"fail-d9244026 Fail /judge/fail-d9244026 if c if penstock-not-never", "  [DELETE] [*] [*] [*]"},
			exclusions: everExcluded,
		},
		"the deletion of other kinds beside ours": {
			policies: []*v1.WorkloadPolicy{matching("a", on(v1.GroupName, v1.TrainingJobKind), on("", "Pod"), deleting, with("true"))},
			want:     []string{"fail-d9244026 Fail /judge/fail-d9244026 if c", "  [DELETE] [] [v1] [pods]"},
		},
		"only namespaces that are never asked about": {
			policies:   []*v1.WorkloadPolicy{matching("a", on("", "Pod"), on("apps", "Deployment"), inNamespaces("cni", "kube-system"))},
			exclusions: []string{"all namespaces"},
		},
		"one that is asked about beside those": {
			policies: []*v1.WorkloadPolicy{matching("a", on("", "Pod"), inNamespaces("cni", "team"), ignoring)},
			want:     []string{"ignore Ignore /judge/ignore", "  [CREATE UPDATE] [] [v1] [pods]"},
		},
		"only those, of our own kinds": {
			policies: []*v1.WorkloadPolicy{matching("a", on(v1.GroupName, v1.TrainingJobKind), inNamespaces("cni"))},
		},
		"only those, of our own kinds under conditions": {
			policies:   []*v1.WorkloadPolicy{matching("a", on(v1.GroupName, v1.TrainingJobKind), inNamespaces("cni"), with("true"))},
			exclusions: []string{"all namespaces"},
		},
		"no namespace at all": {
			policies:   []*v1.WorkloadPolicy{matching("a", on(v1.GroupName, v1.TrainingJobKind), on("", "Pod"), excluding("*"))},
			exclusions: []string{"all namespaces"},
		},
		"what the cluster starts by is excluded by name": {
			policies:   []*v1.WorkloadPolicy{matching("a", on("", "Node"), on("authorization.k8s.io", "TokenThing"), on("", "Pod"))},
			want:       []string{"fail Fail /judge/fail", "  [CREATE UPDATE] [] [v1] [pods]"},
			exclusions: []string{"resource nodes", "resource tokenthings.authorization.k8s.io"},
		},
		"tokens of service accounts are not asked about": {
			policies:   []*v1.WorkloadPolicy{matching("a", on("", "ServiceAccount", "", "token"))},
			want:       []string{"fail Fail /judge/fail", "  [CREATE UPDATE] [] [v1] [serviceaccounts]"},
			exclusions: []string{"resource serviceaccounts/token"},
		},
		"tokens of service accounts alone": {
			policies:   []*v1.WorkloadPolicy{matching("a", on("", "ServiceAccount", "token"))},
			exclusions: []string{"resource serviceaccounts/token"},
		},
		"tokens among all subresources": {
			policies:   []*v1.WorkloadPolicy{matching("a", on("", "ServiceAccount", "*"))},
			want:       []string{"fail Fail /judge/fail if penstock-not-never", "  [CREATE UPDATE] [] [v1] [serviceaccounts/*]"},
			exclusions: []string{"resource serviceaccounts/token"},
		},
		"subresources that come with other operations are not asked about": {
			policies:   []*v1.WorkloadPolicy{matching("a", on("", "Pod", "", "exec", "log"))},
			want:       []string{"fail Fail /judge/fail", "  [CREATE UPDATE] [] [v1] [pods]"},
			exclusions: []string{"subresource exec of kind Pod", "subresource log of kind Pod"},
		},
		"with their own they are": {
			policies: []*v1.WorkloadPolicy{matching("a", on("", "Pod", "exec", "attach"), connecting)},
			want:     []string{"fail Fail /judge/fail", "  [CONNECT] [] [v1] [pods/attach pods/exec]"},
		},
		"objects are not connected to": {
			policies:   []*v1.WorkloadPolicy{matching("a", on(v1.GroupName, v1.TrainingJobKind), on("", "Pod"), connecting)},
			exclusions: []string{"objects of kind TrainingJob.penstock.dev", "objects of kind Pod"},
		},
		"kinds that are not served are waited for": {
			policies: []*v1.WorkloadPolicy{matching("a", on("example.com", "Widget"))},
			absent:   []string{"Widget.example.com"},
		},
		"upstream kinds that are served are asked about, others waited for": {
			awaited:  true,
			policies: []*v1.WorkloadPolicy{matching("a", on(v1.GroupName, v1.TrainingJobKind), upstream)},
			want: []string{
				"fail Fail /judge/fail", "  [CREATE UPDATE] [kubeflow.org] [v1] [pytorchjobs]", "  [CREATE UPDATE] [kubeflow.org] [v2beta1] [mpijobs]",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			webhooks, coverages, err := Rules(tc.policies, kinds, rulesOptions)
			if err != nil {
				t.Fatal(err)
			}
			got := inShort(webhooks)
			if len(tc.want) > 0 {
				tc.want = append(tc.want, "probe Fail /probe", "  [CREATE] [] [v1] [configmaps]")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("webhooks (-want +got):\n%s", diff)
			}
			slices.Reverse(tc.policies)
			again, _, err := Rules(tc.policies, kinds, rulesOptions)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, inShort(again)); diff != "" {
				t.Errorf("the order of policies matters:\n%s", diff)
			}
			coverage := coverages[tc.policies[len(tc.policies)-1].Name]
			if coverage.Awaited != tc.awaited {
				t.Errorf("awaited %t, want %t", coverage.Awaited, tc.awaited)
			}
			if diff := cmp.Diff(tc.absent, coverage.Absent); diff != "" {
				t.Errorf("absent (-want +got):\n%s", diff)
			}
			var excluded, namespaces []string
			for _, exclusion := range coverage.Exclusions {
				if namespace, ok := strings.CutPrefix(exclusion.Subject, "namespace "); ok {
					namespaces = append(namespaces, namespace)
					continue
				}
				excluded = append(excluded, exclusion.Subject)
			}
			if diff := cmp.Diff(tc.exclusions, excluded); diff != "" {
				t.Errorf("exclusions (-want +got):\n%s", diff)
			}
			if want := []string{"cni", "kube-system", "penstock-system"}; coverage.Dynamic && !slices.Equal(namespaces, want) {
				t.Errorf("namespaces %v are excluded, want %v", namespaces, want)
			}
		})
	}
}

// What a policy selects is narrowed by what is never behind Penstock, and stays
// as it is in the policy.
func TestRulesNarrowSelectors(t *testing.T) {
	policy := matching("a", on("", "Pod"), in("team"))
	before := policy.DeepCopy()
	webhooks, _, err := Rules([]*v1.WorkloadPolicy{policy}, kinds, rulesOptions)
	if err != nil {
		t.Fatal(err)
	}
	selector, err := metav1.LabelSelectorAsSelector(webhooks[0].NamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		labels labels.Set
		want   bool
	}{
		"selected": {labels.Set{"kubernetes.io/metadata.name": "a", "gpus": "team"}, true},
		"another":  {labels.Set{"kubernetes.io/metadata.name": "a"}, false},
		"never":    {labels.Set{"kubernetes.io/metadata.name": "cni", "gpus": "team"}, false},
	} {
		if got := selector.Matches(tc.labels); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if diff := cmp.Diff(before, policy); diff != "" {
		t.Errorf("the policy is changed:\n%s", diff)
	}
}

// A discovery that fails must not take rules away.
func TestRulesNeedDiscovery(t *testing.T) {
	_, _, err := Rules([]*v1.WorkloadPolicy{matching("a", on("", "Pod")), matching("b", on("example.com", "Unreachable"))}, kinds, rulesOptions)
	if err == nil || !strings.Contains(err.Error(), "failed to find the resource of Unreachable.example.com") {
		t.Errorf("got %v", err)
	}
}

// A kind that is not served costs a question to the API server, which has to cost
// nothing more where fifty policies name it.
func TestRulesAskForAKindOnce(t *testing.T) {
	asked := map[string]int{}
	mapper := countingMapper{asked}
	if _, _, err := Rules([]*v1.WorkloadPolicy{
		matching("a", on(v1.GroupName, v1.TrainingJobKind), upstream), matching("b", on(v1.GroupName, v1.TrainingJobKind), on("", "Pod"), upstream), matching("c", on("", "Pod")),
	}, mapper, rulesOptions); err != nil {
		t.Fatal(err)
	}
	if len(asked) < 3 {
		t.Errorf("asked only for %v", asked)
	}
	for kind, times := range asked {
		if times != 1 {
			t.Errorf("asked for %s %d times", kind, times)
		}
	}
}

// countingMapper knows no kind, and counts how often it is asked for each.
type countingMapper struct{ asked map[string]int }

func (m countingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.asked[kind.String()+strings.Join(versions, ",")]++
	return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
}

func TestConditionOfWildcardsCompiles(t *testing.T) {
	for _, id := range []policies.Entry{policies.EntryFail, "fail-1065c95e"} {
		policy := matching("a", on("", "Pod"))
		policy.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "c", Expression: notNever(id).Expression}}
		if errs := validation.ValidateWorkloadPolicy(policy); len(errs) > 0 {
			t.Error(errs)
		}
	}
}

// A wildcard covers neither what has webhooks of its own nor what the cluster, or
// somebody who frees GPUs, must be able to do while nobody answers.
func TestConditionOfWildcards(t *testing.T) {
	deletion, creation := admissionv1.Delete, admissionv1.Create
	for name, tc := range map[string]struct {
		// of is the group of the kind.
		of, group, resource string
		operation           admissionv1.Operation
		// plain and conditional say whether entries without and with conditions ask.
		plain, conditional bool
	}{
		"pods":                {"", "", "pods", deletion, true, true},
		"nodes":               {"", "", "nodes", creation, false, false},
		"tokens":              {"authentication.k8s.io", "", "serviceaccounts", creation, false, false},
		"leases":              {"coordination.k8s.io", "coordination.k8s.io", "leases", creation, false, false},
		"reviews":             {"authorization.k8s.io", "authorization.k8s.io", "subjectaccessreviews", creation, false, false},
		"policies":            {v1.GroupName, v1.GroupName, "workloadpolicies", creation, false, false},
		"training jobs":       {v1.GroupName, v1.GroupName, "trainingjobs", creation, false, true},
		"their deletion":      {v1.GroupName, v1.GroupName, "trainingjobs", deletion, false, false},
		"those of other ends": {"kubeflow.org", "kubeflow.org", "pytorchjobs", deletion, true, true},
	} {
		for id, want := range map[policies.Entry]bool{policies.EntryIgnore: tc.plain, "fail-1065c95e": tc.conditional} {
			request := &admissionv1.AdmissionRequest{Operation: tc.operation, Kind: metav1.GroupVersionKind{Group: tc.of, Version: "v1", Kind: "Any"}, Resource: metav1.GroupVersionResource{Group: tc.group, Version: "v1", Resource: tc.resource}}
			got, err := cel.Hold(t.Context(), []admissionregistrationv1.MatchCondition{notNever(id)}, request, cel.Requester{Known: true})
			if err != nil || got != want {
				t.Errorf("%s of entry %s: got %t, %v, want %t", name, id, got, err, want)
			}
		}
	}
}
