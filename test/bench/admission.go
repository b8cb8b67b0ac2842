package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/library"
	"github.com/penstock-dev/penstock/test/fixtures"
	"github.com/penstock-dev/penstock/webhooks"
)

// The bars of the design: with the whole library matching, and with no policy
// matching however many are loaded.
const (
	admissionLimit = 2.0
	noPolicyLimit  = 1.2
)

// manyPolicies is how many are loaded where none matches.
const manyPolicies = 500

// admissionBars compares judging a job, invariants and policies, with a
// handler that only decodes it and allows it.
func admissionBars() ([]bar, error) {
	all, err := library.Policies()
	if err != nil {
		return nil, err
	}
	reference, err := decodeAndAllow()
	if err != nil {
		return nil, err
	}
	var bars []bar
	for _, with := range []struct {
		name     string
		says     string
		policies []*v1.WorkloadPolicy
		limit    float64
	}{
		{"admission-library", "penstock, the whole library", all, admissionLimit},
		{"admission-no-policy", "penstock, 500 policies, none matches", ofAnotherKind(all, manyPolicies), noPolicyLimit},
	} {
		gate, err := newGate(with.policies)
		if err != nil {
			return nil, err
		}
		review, err := admissionReview(gate)
		if err != nil {
			return nil, err
		}
		server := handlers{}
		webhooks.Setup(server, gate, logr.Discard())
		value := ratio(with.name,
			side{with.says, posting(server[validatePath], review)},
			side{"controller-runtime, decode and allow", posting(reference, review)})
		bars = append(bars, bar{with.name, value, with.limit})
	}
	return bars, nil
}

// ofAnotherKind makes n policies of some, for a kind that is not asked about.
func ofAnotherKind(some []*v1.WorkloadPolicy, n int) []*v1.WorkloadPolicy {
	others := make([]*v1.WorkloadPolicy, n)
	for i := range others {
		other := some[i%len(some)].DeepCopy()
		other.Name = fmt.Sprintf("%s-%d", other.Name, i)
		other.Spec.Match.Resources = []v1.PolicyResources{{Group: "example.com", Kinds: []string{"Other"}}}
		others[i] = other
	}
	return others
}

// jobNamespace is the namespace of the job.
const jobNamespace = "research"

// validatePath is where the API server has training jobs judged.
const validatePath = "/validate-penstock-dev-v1-trainingjob"

// handlers are a webhook server without the server.
type handlers map[string]http.Handler

func (h handlers) Register(path string, handler http.Handler) { h[path] = handler }

// noCluster has no labels on its namespaces, and no objects.
type noCluster struct{}

func (noCluster) NamespaceLabels(context.Context, string) (map[string]string, error) {
	return map[string]string{}, nil
}

func (noCluster) KindOf(_ context.Context, resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return schema.GroupVersionKind{}, fmt.Errorf("no kind of %s", resource.Resource)
}

func (noCluster) Object(_ context.Context, kind schema.GroupVersionKind, _, name string) ([]byte, error) {
	return nil, fmt.Errorf("no %s %s", kind.Kind, name)
}

func (noCluster) Labels(_ context.Context, kind schema.GroupVersionKind, _, name string) (map[string]string, error) {
	return nil, fmt.Errorf("no %s %s", kind.Kind, name)
}

func newGate(loaded []*v1.WorkloadPolicy) (*webhooks.Gate, error) {
	engine := policies.NewEngine(policies.Options{Observer: webhooks.PolicyMetrics{}})
	if faults := engine.Replace(loaded); len(faults) > 0 {
		return nil, fmt.Errorf("the library does not compile: %v", faults)
	}
	for _, need := range engine.Inventory().Needs() {
		if err := engine.Inventory().Replace(need.Kind, fixtures.Nodes(nodesInBench)); err != nil {
			return nil, err
		}
	}
	return webhooks.NewGate(webhooks.GateOptions{
		Engine: engine, Cluster: noCluster{}, Clock: time.Now, Loaded: func() bool { return true },
	})
}

// admissionReview is the review of the job's creation, defaulted, as the API
// server sends it to a validating webhook.
func admissionReview(gate *webhooks.Gate) ([]byte, error) {
	alpha, err := yaml.YAMLToJSON(jobYAML)
	if err != nil {
		return nil, err
	}
	hub, err := conversion.Convert(alpha, v1.GroupVersion)
	if err != nil {
		return nil, err
	}
	kind := metav1.GroupVersionKind{Group: v1.GroupName, Version: "v1", Kind: v1.TrainingJobKind}
	resource := metav1.GroupVersionResource{Group: v1.GroupName, Version: "v1", Resource: "trainingjobs"}
	request := &admissionv1.AdmissionRequest{
		UID: "3a0f0c1e-8c1f-4c5b-9d6e-7f0a1b2c3d4e", Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource,
		Name: "translate-base", Namespace: jobNamespace, Operation: admissionv1.Create,
		UserInfo: authenticationv1.UserInfo{Username: "ada", Groups: []string{"research", "system:authenticated"}},
		Object:   runtime.RawExtension{Raw: hub},
	}
	if request.Object.Raw, err = withDefaults(gate, request); err != nil {
		return nil, err
	}
	review := admissionv1.AdmissionReview{Request: request}
	review.APIVersion, review.Kind = admissionv1.SchemeGroupVersion.String(), "AdmissionReview"
	return json.Marshal(review)
}

func withDefaults(gate *webhooks.Gate, request *admissionv1.AdmissionRequest) ([]byte, error) {
	response := gate.Default(context.Background(), request)
	if !response.Allowed {
		return nil, fmt.Errorf("failed to default the job: %s", response.Result.Message)
	}
	var patch []struct {
		Value json.RawMessage `json:"value"`
	}
	if response.Patch == nil {
		return slices.Clone(request.Object.Raw), nil
	}
	if err := json.Unmarshal(response.Patch, &patch); err != nil {
		return nil, err
	}
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
		return nil, err
	}
	object["spec"] = patch[0].Value
	return json.Marshal(object)
}

// decodeAndAllow is the least that a webhook can do.
func decodeAndAllow() (http.Handler, error) {
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	decoder := admission.NewDecoder(scheme)
	return &admission.Webhook{Handler: admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
		job := &v1.TrainingJob{}
		if err := decoder.Decode(request, job); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		return admission.Allowed("")
	})}, nil
}
