package webhooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/library"
	"github.com/penstock-dev/penstock/webhooks"
)

type noCluster struct{}

func (noCluster) NamespaceLabels(context.Context, string) (map[string]string, error) {
	return nil, errors.New("there is no cluster")
}

func (noCluster) KindOf(context.Context, schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return schema.GroupVersionKind{}, errors.New("there is no cluster")
}

func (noCluster) Object(context.Context, schema.GroupVersionKind, string, string) ([]byte, error) {
	return nil, errors.New("there is no cluster")
}

func (noCluster) Labels(context.Context, schema.GroupVersionKind, string, string) (map[string]string, error) {
	return nil, errors.New("there is no cluster")
}

func newGate(t *testing.T, offline bool) *webhooks.Gate {
	t.Helper()
	loaded, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	engine := policies.NewEngine(policies.Options{Deadline: 10 * time.Second})
	for name, err := range engine.Replace(loaded) {
		t.Fatalf("policy %s: %v", name, err)
	}
	gate, err := webhooks.NewGate(webhooks.GateOptions{
		Engine: engine, Cluster: noCluster{}, Clock: time.Now, Loaded: func() bool { return true }, Offline: offline,
	})
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

func requestFor(kind, resource, object string) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID:       "1",
		Kind:      metav1.GroupVersionKind(v1.GroupVersion.WithKind(kind)),
		Resource:  metav1.GroupVersionResource(v1.GroupVersion.WithResource(resource)),
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: []byte(object)},
	}
}

func TestDecisionSaysWhoSaysWhat(t *testing.T) {
	request := requestFor(v1.TrainingJobKind, "trainingjobs", `{
		"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "metadata": {"name": "a"},
		"spec": {"framework": "PyTorch", "roles": [{"name": "Master", "restartPolicy": "Always",
			"template": {"spec": {"containers": [{"name": "pytorch", "image": "a"}]}}}]}}`)
	decision := newGate(t, true).Decide(t.Context(), request)
	if decision.Response.Allowed || len(decision.Causes) != 1 {
		t.Fatalf("got %+v, want one cause", decision)
	}
	cause := decision.Causes[0]
	if diff := cmp.Diff(decision.Response.Result.Details.Causes, []metav1.StatusCause{cause.StatusCause}); diff != "" {
		t.Errorf("the response says (-) other than the decision (+):\n%s", diff)
	}
	if cause.Policy != "restart-policy" || cause.Fix != "write OnFailure or Never instead of Always" {
		t.Errorf("got policy %q and fix %q", cause.Policy, cause.Fix)
	}
}

func TestMessagesSpeakOfTheVersionThatWasWritten(t *testing.T) {
	request := requestFor(v1.TrainingJobKind, "trainingjobs", `{
		"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "metadata": {"name": "a"},
		"spec": {"framework": "JAX", "roles": [{"name": "Worker",
			"template": {"spec": {"containers": [{"name": "jax", "image": 12}]}}}]}}`)
	request.RequestKind = &metav1.GroupVersionKind{Group: v1.GroupName, Version: "v1alpha1", Kind: v1.TrainingJobKind}
	const path = "spec.jaxReplicaSpecs.Worker.template.spec.containers[0].image"
	want := metav1.StatusCause{
		Type: metav1.CauseTypeTypeInvalid, Field: path,
		Message: "Invalid value: must be of type string, and is of type integer: put it in quotes",
	}
	if got := newGate(t, false).Decide(t.Context(), request).Causes[0].StatusCause; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A JSON patch cannot replace what is not there.
func TestDefaultsOfAnObjectWithoutSpec(t *testing.T) {
	request := requestFor(v1.WorkloadPolicyKind, "workloadpolicies",
		`{"apiVersion": "penstock.dev/v1", "kind": "WorkloadPolicy", "metadata": {"name": "a"}}`)
	response := newGate(t, false).Default(t.Context(), request)
	if !response.Allowed {
		t.Fatalf("refused: %v", response.Result)
	}
	var patch []struct{ Op, Path string }
	if err := json.Unmarshal(response.Patch, &patch); err != nil && response.Patch != nil {
		t.Fatal(err)
	}
	for _, one := range patch {
		if one.Op != "add" {
			t.Errorf("the patch would fail on an object without spec: %s", response.Patch)
		}
	}
}
