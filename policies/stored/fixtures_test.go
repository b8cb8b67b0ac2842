package stored

import (
	"context"
	"errors"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/test/fixtures"
)

var kinds = fixtures.Served{
	{Kind: "Pod"}:                                   {"v1", "pods"},
	{Kind: "Node"}:                                  {"v1", "nodes"},
	{Group: "apps", Kind: "Deployment"}:             {"v1", "deployments"},
	{Group: "kubeflow.org", Kind: "PyTorchJob"}:     {"v1", "pytorchjobs"},
	{Group: "kubeflow.org", Kind: "MPIJob"}:         {"v2beta1", "mpijobs"},
	{Group: v1.GroupName, Kind: v1.TrainingJobKind}: {"v1", "trainingjobs"},
}

// matching is a policy that every object breaks which it is asked about.
func matching(mods ...func(*v1.WorkloadPolicySpec)) *v1.WorkloadPolicy {
	policy := &v1.WorkloadPolicy{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1.WorkloadPolicySpec{Rego: always}}
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

func upstream(spec *v1.WorkloadPolicySpec) { spec.UpstreamKinds = v1.UpstreamKindsJudge }

func updating(spec *v1.WorkloadPolicySpec) {
	spec.Match.Operations = []v1.PolicyOperation{v1.OperationUpdate}
}

const always = "package a\nviolation contains {\"msg\": \"no\", \"field\": \"spec.a\"} if true\n"

// judgeHere judges in a cluster where only the namespace team has labels that
// are known, and kube-system is excluded.
func judgeHere() *Judge {
	return &Judge{
		Reach: &policies.Reach{Unasked: []string{"kube-system"}},
		Labels: func(_ context.Context, namespace string) (map[string]string, error) {
			if namespace != "team" {
				return nil, errors.New("nobody knows")
			}
			return map[string]string{"tier": "research"}, nil
		},
		Normal: func(written schema.GroupVersionKind, raw []byte) ([]byte, error) {
			if _, ok := conversion.Upstream(written); ok {
				shaped, err := conversion.FromUpstream(raw)
				if err != nil {
					return nil, err
				}
				return conversion.Convert(shaped, v1.GroupVersion)
			}
			return raw, nil
		},
		Clock: func() time.Time { return time.Unix(0, 0) },
	}
}

// A finding is what judgements of one object say together.
type finding struct {
	fields  []string
	errors  []policies.PolicyError
	missing []policies.NotEvaluated
}

func findingOf(judgements []Judgement) finding {
	var found finding
	for _, j := range judgements {
		for _, violation := range j.Violations {
			found.fields = append(found.fields, j.Locate(violation).Path)
		}
		found.errors = append(found.errors, j.Errors...)
		found.missing = append(found.missing, j.NotEvaluated...)
	}
	return found
}
