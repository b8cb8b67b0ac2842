package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
)

// +kubebuilder:webhookconfiguration:mutating=true,name=penstock
// +kubebuilder:webhookconfiguration:mutating=false,name=penstock

// ConvertPath is where conversion reviews are answered, for all kinds.
const ConvertPath = "/convert"

// JudgePath is below which requests for any kind are judged, each by the
// policies of the entry that the rest of the path names.
const JudgePath = "/judge/"

// ProbePath is where probes of the webhook configuration are answered, by a
// refusal that says which it was.
const ProbePath = "/probe"

// A Registrar is where handlers are registered: the manager's webhook server.
type Registrar interface {
	// Register has a handler answer a path.
	Register(path string, handler http.Handler)
}

// Setup registers the webhooks of all of Penstock's kinds.
func Setup(server Registrar, gate *Gate, log logr.Logger) {
	for kind := range gate.kinds {
		name := strings.ToLower(kind.Kind)
		path := fmt.Sprintf("-%s-%s-%s", strings.ReplaceAll(kind.Group, ".", "-"), v1.GroupVersion.Version, name)
		server.Register("/mutate"+path, &handler{kind: kind.Kind, phase: phaseDefault, decide: gate.Default, log: log})
		server.Register("/validate"+path, &handler{kind: kind.Kind, phase: phaseValidate, decide: gate.Validate, log: log})
	}
	server.Register(JudgePath, judgeHandler(gate, log))
	server.Register(ProbePath, &handler{kind: "probe", phase: phaseValidate, decide: gate.answerProbe, log: log})
	server.Register(ConvertPath, &conversion.Handler{
		Observe: func(took time.Duration, ok bool) {
			outcome := "converted"
			if !ok {
				outcome = "failed"
			}
			conversionDuration.WithLabelValues(outcome).Observe(took.Seconds())
		},
		Panicked: func(value any, stack []byte) {
			panics.WithLabelValues(phaseConvert).Inc()
			log.Error(fmt.Errorf("panic: %v", value), "Recovered from a panic", "stack", string(stack))
		},
	})
}

// judgeHandler answers for the entry that a path names. Metrics know its kinds
// as one: which there are is up to who writes policies.
func judgeHandler(gate *Gate, log logr.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		entry := policies.Entry(strings.TrimPrefix(req.URL.Path, JudgePath))
		if entry == "" {
			http.Error(w, "the path must name an entry: "+JudgePath+"ENTRY", http.StatusNotFound)
			return
		}
		h := &handler{kind: "any", phase: phaseValidate, log: log}
		h.decide = func(ctx context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return gate.Judge(ctx, request, entry)
		}
		h.ServeHTTP(w, req)
	})
}

// LiveCluster asks a running cluster: its cache first, and the API server for
// what the cache does not have yet.
type LiveCluster struct {
	Cached client.Reader
	Live   client.Reader
	// Mapper knows the kinds that the API server serves.
	Mapper meta.RESTMapper
}

var _ Cluster = LiveCluster{}

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// NamespaceLabels gives the labels of a namespace. A namespace that was made a
// moment ago is not cached yet; it must not be taken for one without labels.
func (c LiveCluster) NamespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	var namespace corev1.Namespace
	err := c.Cached.Get(ctx, client.ObjectKey{Name: name}, &namespace)
	if apierrors.IsNotFound(err) {
		err = c.Live.Get(ctx, client.ObjectKey{Name: name}, &namespace)
	}
	return namespace.Labels, err
}

// KindOf gives the kind of a resource.
func (c LiveCluster) KindOf(_ context.Context, resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return c.Mapper.KindFor(resource)
}

// Labels gives the labels of a stored object, from the API server, as Object does.
func (c LiveCluster) Labels(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (map[string]string, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	return object.Labels, err
}

// Object gives the JSON of a stored object, from the API server: a decision on
// an old state would be worth nothing.
func (c LiveCluster) Object(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) ([]byte, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := c.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return nil, err
	}
	return json.Marshal(object.Object)
}
