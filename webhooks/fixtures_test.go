package webhooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/library"
	"github.com/penstock-dev/penstock/test/fixtures"
	"github.com/penstock-dev/penstock/webhooks"
)

// world is a cluster that has the namespace of the fixtures and some objects,
// by name.
type world map[string]string

func (world) NamespaceLabels(_ context.Context, name string) (map[string]string, error) {
	if name != fixtures.Namespace {
		return nil, errors.New("there is no such namespace")
	}
	return map[string]string{"kubernetes.io/metadata.name": name}, nil
}

func (world) KindOf(_ context.Context, resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	kinds := map[string]string{"pods": "Pod", "deployments": "Deployment", "gadgets": "Gadget", "jaxjobs": "JAXJob", "paddlejobs": "PaddleJob", "pytorchjobs": "PyTorchJob"}
	if kinds[resource.Resource] == "" {
		return schema.GroupVersionKind{}, errors.New("there is no such resource")
	}
	return resource.GroupVersion().WithKind(kinds[resource.Resource]), nil
}

func (w world) Object(_ context.Context, _ schema.GroupVersionKind, _, name string) ([]byte, error) {
	object, ok := w[name]
	if !ok {
		return nil, errors.New("there is no such object")
	}
	return []byte(object), nil
}

func (w world) Labels(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (map[string]string, error) {
	if strings.HasPrefix(name, "barred") {
		return nil, apierrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, name, errors.New("no"))
	}
	raw, err := w.Object(ctx, kind, namespace, name)
	if err != nil {
		return nil, err
	}
	var object metav1.PartialObjectMetadata
	err = json.Unmarshal(raw, &object)
	return object.Labels, err
}

// libraryEngine has policies of the library: enough of each kind to see what
// the gate makes of them, and few enough to say what they find.
var libraryEngine = sync.OnceValues(func() (*policies.Engine, error) {
	all, err := library.Policies()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(policy *v1.WorkloadPolicy) bool {
		return !slices.Contains([]string{
			"exit-code-backoff", "gpu-ceiling", "gpu-requests", "gpu-resource-names", "restart-policy", "topology-keys", "worker-bounds",
		}, policy.Name)
	})
	return engineOf(all...)
})

func engineOf(all ...*v1.WorkloadPolicy) (*policies.Engine, error) {
	engine := policies.NewEngine(policies.Options{Deadline: 10 * time.Second})
	for name, err := range engine.Replace(all) {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	return engine, nil
}

func onlineOptions(t testing.TB) webhooks.GateOptions {
	t.Helper()
	engine, err := libraryEngine()
	if err != nil {
		t.Fatal(err)
	}
	return webhooks.GateOptions{
		Engine: engine, Cluster: world{}, Clock: func() time.Time { return fixtures.Start }, Loaded: func() bool { return true },
	}
}

func gateOf(t testing.TB, options webhooks.GateOptions) *webhooks.Gate {
	t.Helper()
	gate, err := webhooks.NewGate(options)
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

// onlineGate judges by the library, in a world without stored objects.
func onlineGate(t testing.TB) *webhooks.Gate {
	t.Helper()
	return gateOf(t, onlineOptions(t))
}

// A mod changes a request.
type mod func(*admissionv1.AdmissionRequest)

// create asks for a new object, given as YAML or JSON.
func create(t testing.TB, object string, mods ...mod) *admissionv1.AdmissionRequest {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &head); err != nil {
		t.Fatal(err)
	}
	resource := map[string]string{v1.TrainingJobKind: "trainingjobs", v1.WorkloadPolicyKind: "workloadpolicies"}[head.Kind]
	request := requestFor(head.Kind, resource, string(raw))
	request.Name, request.Namespace = head.Name, head.Namespace
	for _, mod := range mods {
		mod(request)
	}
	return request
}

// from makes the request an update of an object.
func from(t testing.TB, old string) mod {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(old))
	if err != nil {
		t.Fatal(err)
	}
	return func(request *admissionv1.AdmissionRequest) {
		request.Operation, request.OldObject = admissionv1.Update, runtime.RawExtension{Raw: raw}
	}
}

// deleted makes the request the removal of its object.
func deleted(request *admissionv1.AdmissionRequest) {
	request.Operation = admissionv1.Delete
	request.Object, request.OldObject = runtime.RawExtension{}, request.Object
}

// inOlderVersion says that the request was made in v1alpha1; its objects are v1
// all the same.
func inOlderVersion(request *admissionv1.AdmissionRequest) {
	kind := request.Kind
	kind.Version = "v1alpha1"
	request.RequestKind = &kind
}

// job is a TrainingJob named a of a spec, with more metadata if there is any.
func job(spec string, metadata ...string) string {
	more := ""
	for _, one := range metadata {
		more += ", " + one
	}
	return "{apiVersion: penstock.dev/v1, kind: TrainingJob, metadata: {name: a, namespace: " + fixtures.Namespace + more + "}, spec: " + spec + "}"
}

// role is a role of PyTorch with more fields, and more of its container.
func role(name, fields, container string) string {
	return fmt.Sprintf("{name: %s%s, template: {spec: {containers: [{name: pytorch, image: registry.example/train:1%s}]}}}", name, fields, container)
}

func pytorch(roles ...string) string {
	list := ""
	for i, one := range roles {
		if i > 0 {
			list += ", "
		}
		list += one
	}
	return "{framework: PyTorch, roles: [" + list + "]}"
}

// toJSON writes a value as YAML or JSON in one way.
func toJSON(t testing.TB, object string) string {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// applied gives the object of a request with the patch of a response.
func applied(t testing.TB, request *admissionv1.AdmissionRequest, response *admissionv1.AdmissionResponse) []byte {
	t.Helper()
	if !response.Allowed {
		t.Fatalf("refused: %v", response.Result)
	}
	if len(response.Patch) == 0 {
		return request.Object.Raw
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		t.Fatalf("%v: %s", err, response.Patch)
	}
	patched, err := patch.Apply(request.Object.Raw)
	if err != nil {
		t.Fatalf("the patch does not apply: %v: %s", err, response.Patch)
	}
	return patched
}
