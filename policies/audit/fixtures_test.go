package audit

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
)

// onPods is a policy that every pod breaks.
func onPods() *v1.WorkloadPolicy {
	return &v1.WorkloadPolicy{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1.WorkloadPolicySpec{
		Match: v1.PolicyMatch{Resources: []v1.PolicyResources{{Kinds: []string{podKind.Kind}}}},
		Rego:  "package a\nviolation contains {\"msg\": \"no\", \"field\": \"spec.a\"} if true\n",
	}}
}

// judgeHere judges in a cluster without labels of namespaces.
func judgeHere() *stored.Judge {
	return &stored.Judge{
		Reach:  &policies.Reach{},
		Labels: func(context.Context, string) (map[string]string, error) { return nil, nil },
		Normal: func(_ schema.GroupVersionKind, raw []byte) ([]byte, error) { return raw, nil },
		Clock:  func() time.Time { return time.Unix(0, 0) },
	}
}
