package webhooks_test

import (
	"strings"
	"testing"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks"
)

// TestNumbersStayExactThroughConversion judges a number that a float64 would
// round, in objects that were converted before rules saw them.
func TestNumbersStayExactThroughConversion(t *testing.T) {
	const template = `{"spec":{"containers":[{"name":"a","image":"b","resources":{"limits":{"example.com/x":9007199254740993}}}]}}`
	const spec = `"metadata":{"name":"a","namespace":"team"},"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":1,"template":` + template + `}}}}`
	rule := policyOn("exact", v1.GroupName, v1.TrainingJobKind,
		`some role in input.object.spec.roles
		n := role.template.spec.containers[0].resources.limits["example.com/x"]
		n == 9007199254740993; n != 9007199254740992; n - 9007199254740992 == 1
		msg := sprintf("%v", [n]); field := ""`,
		func(spec *v1.WorkloadPolicySpec) { spec.UpstreamKinds = v1.UpstreamKindsJudge })
	gate := judging(t, nil, rule)
	wants := func(decision webhooks.Decision) {
		t.Helper()
		if decision.Response.Allowed || !strings.Contains(decision.Response.Result.Message, "9007199254740993 (policy exact)") {
			t.Errorf("got %+v", decision.Response)
		}
	}

	upstream := create(t, pod, as("kubeflow.org", "v1", "PyTorchJob"), of("kubeflow.org", "pytorchjobs", ""))
	upstream.Object.Raw = []byte(`{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob",` + spec)
	wants(gate.DecideFor(t.Context(), upstream, policies.EntryFail))

	hub, err := conversion.Convert([]byte(`{"apiVersion":"penstock.dev/v1alpha1","kind":"TrainingJob",`+spec), v1.GroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	own := create(t, pod, as(v1.GroupName, "v1", v1.TrainingJobKind), of(v1.GroupName, "trainingjobs", ""))
	own.Object.Raw = hub
	wants(gate.Decide(t.Context(), own))
}
