package check

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Kinds that are neither Penstock's nor in the shape of one of its kinds are
// judged by the policies that name them. What their own schema and controllers
// say is not known here, but for the kinds of Kubernetes: those are decoded as
// strictly as kubectl asks the API server to. Their defaults are not written.

// namespaceKind is the kind whose objects are a request's namespace as well.
var namespaceKind = schema.GroupKind{Kind: "Namespace"}

var strictly = serializer.NewCodecFactory(clientgoscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// checkForeign says what the policies say to an object of a kind that is not
// Penstock's.
func (c *Checker) checkForeign(ctx context.Context, object Object, manifest unstructured.Unstructured, result *Result) {
	kind, namespace := manifest.GroupVersionKind(), c.foreignNamespace(manifest)
	result.Judged, result.Operation = true, string(admissionv1.Create)
	if clientgoscheme.Scheme.Recognizes(kind) {
		result.Namespace = namespace
	}
	if faults := undecodableForeign(object, kind); len(faults) > 0 {
		result.refuse(metav1.StatusReasonBadRequest, faults...)
		return
	}
	if namespace != "" {
		manifest.SetNamespace(namespace)
	}
	if kind.GroupKind() == namespaceKind {
		completeNamespace(manifest)
	}
	raw, err := json.Marshal(manifest.Object)
	if err != nil {
		result.refuse(metav1.StatusReasonInternalError, Fault{Message: fmt.Sprintf("failed to write the object: %v", err)})
		return
	}
	request := c.foreignRequest(kind, namespace, result.Name, raw)
	if old := c.stored[identity{kind.GroupKind(), namespace, result.Name}]; old != nil {
		old.found = true
		result.Operation = string(admissionv1.Update)
		request.Operation, request.OldObject.Raw = admissionv1.Update, old.hub
	}
	c.decided(result, c.own.DecideFor(ctx, request, ""))
}

// completeNamespace writes what the API server writes into every Namespace. A cause
// without a field is of the spec, for one.
func completeNamespace(manifest unstructured.Unstructured) {
	if manifest.Object["spec"] == nil {
		manifest.Object["spec"] = map[string]any{"finalizers": []any{"kubernetes"}}
	}
	if name := manifest.GetName(); name != "" {
		manifest.SetLabels(labelled(name, manifest.GetLabels()))
	}
}

// foreignRequest is the request to create an object of a kind that is not
// Penstock's.
func (c *Checker) foreignRequest(kind schema.GroupVersionKind, namespace, name string, raw []byte) *admissionv1.AdmissionRequest {
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	if strings.HasSuffix(name, "*") {
		name = "" // which the API server has yet to generate
	}
	if kind.GroupKind() == namespaceKind {
		namespace = name
	}
	return &admissionv1.AdmissionRequest{
		Kind:      metav1.GroupVersionKind(kind),
		Resource:  metav1.GroupVersionResource(resource),
		Name:      name,
		Namespace: namespace,
		Operation: admissionv1.Create,
		UserInfo:  c.options.User,
		Object:    runtime.RawExtension{Raw: raw},
	}
}

func (c *Checker) foreignNamespace(manifest unstructured.Unstructured) string {
	return c.NamespaceOf(manifest.GroupVersionKind(), manifest.GetNamespace())
}

// storeForeign makes a stored object of a kind that is not Penstock's known.
func (c *Checker) storeForeign(object Object, manifest unstructured.Unstructured) error {
	namespace := c.foreignNamespace(manifest)
	if namespace != "" {
		manifest.SetNamespace(namespace)
	}
	if manifest.GroupVersionKind().GroupKind() == namespaceKind {
		completeNamespace(manifest)
	}
	raw, err := json.Marshal(manifest.Object)
	if err != nil {
		return fmt.Errorf("failed to write the stored object: %w", err)
	}
	c.stored[identity{manifest.GroupVersionKind().GroupKind(), namespace, manifest.GetName()}] = &stored{Object: object, hub: raw}
	return nil
}

// unjudged says why nobody judges an object of a kind that is not Penstock's;
// nothing if policies do.
func (c *Checker) unjudged(manifest unstructured.Unstructured, name string) string {
	kind := manifest.GroupVersionKind()
	if !c.judgesForeign(kind) {
		return "no policy names the kind"
	}
	return c.unasked(kind, c.foreignNamespace(manifest), name)
}

// judgesForeign reports whether a policy names a kind that is not Penstock's.
func (c *Checker) judgesForeign(kind schema.GroupVersionKind) bool {
	return c.own.Engine.Snapshot().Judges(kind.GroupKind())
}

// undecodableForeign says why the API server would not decode an object of
// Kubernetes when asked to be strict, as kubectl does.
func undecodableForeign(object Object, kind schema.GroupVersionKind) []Fault {
	var faults []Fault
	for _, repeated := range object.Repeated {
		faults = append(faults, Fault{Message: repeated})
	}
	if !clientgoscheme.Scheme.Recognizes(kind) {
		return faults
	}
	_, _, err := strictly.Decode(object.JSON, nil, nil)
	strict, ok := runtime.AsStrictDecodingError(err)
	switch {
	case ok:
		for _, one := range strict.Errors() {
			fault := Fault{Message: one.Error()}
			if path, is := strings.CutPrefix(fault.Message, "unknown field "); is {
				fault.Field = strings.Trim(path, `"`)
			}
			faults = append(faults, fault)
		}
	case err != nil:
		faults = append(faults, Fault{Message: err.Error()})
	}
	return faults
}
