package policies_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// policy is a WorkloadPolicy for TrainingJobs that denies, changed by mods.
func policy(name, rego string, mods ...func(*v1.WorkloadPolicySpec)) *v1.WorkloadPolicy {
	p := &v1.WorkloadPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec: v1.WorkloadPolicySpec{
			Match: v1.PolicyMatch{Resources: []v1.PolicyResources{{Group: v1.GroupName, Kinds: []string{v1.TrainingJobKind}}}},
			Rego:  rego,
		},
	}
	for _, mod := range mods {
		mod(&p.Spec)
	}
	return p
}

func parameters(raw string) func(*v1.WorkloadPolicySpec) {
	return func(spec *v1.WorkloadPolicySpec) { spec.Parameters = &runtime.RawExtension{Raw: []byte(raw)} }
}

func libs(texts ...string) func(*v1.WorkloadPolicySpec) {
	return func(spec *v1.WorkloadPolicySpec) { spec.Libs = texts }
}

func action(action v1.PolicyAction) func(*v1.WorkloadPolicySpec) {
	return func(spec *v1.WorkloadPolicySpec) { spec.Action = action }
}

func ignoreFailure(spec *v1.WorkloadPolicySpec) { spec.FailurePolicy = v1.FailurePolicyIgnore }

// createRequest creates a TrainingJob named train in namespace team.
func createRequest(object []byte) policies.Request {
	return policies.Request{
		UID:       "1",
		Kind:      metav1.GroupVersionKind{Group: v1.GroupName, Version: "v1", Kind: v1.TrainingJobKind},
		Resource:  metav1.GroupVersionResource{Group: v1.GroupName, Version: "v1", Resource: "trainingjobs"},
		Namespace: "team",
		Name:      "train",
		Operation: v1.OperationCreate,
		UserKnown: true,
		Object:    object,
		Now:       now,
		NamespaceLabels: func() (map[string]string, error) {
			return map[string]string{"kubernetes.io/metadata.name": "team", "tier": "research"}, nil
		},
	}
}

func updateRequest(oldObject, object []byte) policies.Request {
	request := createRequest(object)
	request.Operation = v1.OperationUpdate
	request.OldObject = oldObject
	return request
}

// engineWith returns an engine in which all policies compiled.
func engineWith(t testing.TB, options policies.Options, loaded ...*v1.WorkloadPolicy) *policies.Engine {
	t.Helper()
	engine := policies.NewEngine(options)
	for name, err := range engine.Replace(loaded) {
		t.Fatalf("policy %s: %v", name, err)
	}
	return engine
}

// judge has one policy judge one request.
func judge(t testing.TB, p *v1.WorkloadPolicy, request policies.Request) policies.Verdict {
	t.Helper()
	return engineWith(t, policies.Options{}, p).Snapshot().Judge(t.Context(), request)
}

func tier(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"tier": name}}
}
