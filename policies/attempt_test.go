package policies

import (
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// TestPanicsAreRecovered evaluates a rule that no text compiles to.
func TestPanicsAreRecovered(t *testing.T) {
	engine := NewEngine(Options{})
	object := &v1.WorkloadPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "good"},
		Spec: v1.WorkloadPolicySpec{
			Match: v1.PolicyMatch{Resources: []v1.PolicyResources{{Kinds: []string{"Pod"}}}},
			Rego:  `package p` + "\n" + `violation contains "no" if true`,
		},
	}
	if err := engine.Set(object); err != nil {
		t.Fatal(err)
	}
	object = object.DeepCopy()
	// What is broken below must be no other policy's.
	object.Name, object.Spec.Rego = "bad", "package bad\nviolation contains \"no\" if true"
	if err := engine.Set(object); err != nil {
		t.Fatal(err)
	}
	engine.entries["bad"].inForce.rule.queries[0].body = ast.Body{nil}
	verdict := engine.Snapshot().Judge(t.Context(), Request{
		Kind: metav1.GroupVersionKind{Kind: "Pod"}, Operation: v1.OperationCreate, Object: []byte(`{}`), Now: time.Unix(0, 0),
	})
	if len(verdict.Errors) != 1 || verdict.Errors[0].Policy != "bad" || verdict.Errors[0].Reason != ReasonPanic {
		t.Errorf("got errors %v", verdict.Errors)
	}
	if len(verdict.Denied()) != 1 || verdict.Denied()[0].Policy != "good" {
		t.Errorf("the other policy does not count: %v", verdict.Violations)
	}
}
