package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// Check says what the cluster would say to one object.
func (c *Checker) Check(ctx context.Context, object Object) Result {
	result := c.check(ctx, object)
	result.locate(object)
	return result
}

func (c *Checker) check(ctx context.Context, object Object) Result {
	result := Result{
		File: object.File, Document: object.Document, Items: object.Items, Allowed: true,
		Faults: []Fault{}, Warnings: []Fault{}, Notes: []Fault{}, NotEvaluated: []NotEvaluated{},
	}
	if len(object.Items) > 0 {
		result.Item = object.Items[0]
	}
	content, err := decode(object.JSON)
	if err != nil {
		result.Judged = true
		result.refuse(metav1.StatusReasonBadRequest, Fault{Message: err.Error()})
		return result
	}
	manifest := unstructured.Unstructured{Object: content}
	written := manifest.GroupVersionKind()
	result.APIVersion, result.Kind = manifest.GetAPIVersion(), manifest.GetKind()
	result.Namespace, result.Name = manifest.GetNamespace(), nameOf(manifest)
	subject := c.subjectOf(written)
	if subject == nil {
		if written.Group == penstockv1.GroupName {
			result.Judged = true
			result.refuse(metav1.StatusReasonNotFound, Fault{
				Message: fmt.Sprintf("no matches for kind %q in version %q", written.Kind, result.APIVersion),
			})
		} else if result.NotJudged = c.unjudged(manifest, result.Name); result.NotJudged == "" {
			c.checkForeign(ctx, object, manifest, &result)
		}
		if text := misspelt(written); text != "" {
			result.Warnings = append(result.Warnings, Fault{Field: "kind", Message: text})
		}
		return result
	}
	result.Judged, result.Namespace = true, c.namespaceOf(subject, manifest)
	c.admit(ctx, subject, object, content, &result)
	return result
}

// nameOf gives the name of an object, or how it will begin.
func nameOf(manifest unstructured.Unstructured) string {
	if manifest.GetName() == "" && manifest.GetGenerateName() != "" {
		return manifest.GetGenerateName() + "*"
	}
	return manifest.GetName()
}

func (c *Checker) namespaceOf(s *subject, manifest unstructured.Unstructured) string {
	switch {
	case !s.namespaced:
		return ""
	case manifest.GetNamespace() != "":
		return manifest.GetNamespace()
	default:
		return c.options.Namespace
	}
}

// admit takes an object the way that the API server takes it: decoding, the
// defaulting webhook, the schema of the request's own version, and then the
// validating webhook. Whoever finds a fault ends the way.
func (c *Checker) admit(ctx context.Context, s *subject, object Object, content map[string]any, result *Result) {
	if faults := undecodable(s, object, content); len(faults) > 0 {
		result.refuse(metav1.StatusReasonBadRequest, faults...)
		return
	}
	broken := func(err error) {
		result.refuse(metav1.StatusReasonInternalError, Fault{Message: err.Error()})
	}
	content, err := ours(s, object.JSON)
	if err != nil {
		broken(err)
		return
	}
	old := c.storedFor(s, result)
	request := &admission{subject: s, operation: admissionv1.Create, user: c.options}
	result.Operation = string(admissionv1.Create)
	if old != nil {
		request.operation, request.old = admissionv1.Update, old.hub
		result.Operation = string(admissionv1.Update)
	}
	oldContent, err := old.in(s.own.GroupVersion())
	if err != nil {
		broken(err)
		return
	}
	complete(content, oldContent, result.Namespace)
	s.schema().Default(content)
	content, err = c.defaulted(ctx, request, content)
	if refusal := (*refusal)(nil); errors.As(err, &refusal) {
		result.refuse(refusal.status.Reason, refusal.faults()...)
		return
	}
	if err != nil {
		broken(err)
		return
	}
	errs, change := c.broken(ctx, s, oldContent, content)
	if len(errs) > 0 {
		result.refuse(metav1.StatusReasonInvalid, faultsOf(errs)...)
		return
	}
	hub, err := toVersion(content, penstockv1.GroupVersion)
	if err != nil {
		broken(err)
		return
	}
	c.decided(result, s.gate.Decide(ctx, request.of(hub)))
	if s.isUpstream() {
		if err := c.judgeUpstream(ctx, s, object, old, result); err != nil {
			broken(err)
		}
		if err := noteTransitions(ctx, request.of(hub), s, change, result); err != nil {
			broken(err)
		}
	}
	if result.Allowed && c.options.Render != nil {
		if result.Children, err = c.options.Render(hub); err != nil {
			broken(err)
		}
	}
}

// broken gives what breaks the schema of the request's version. Of an upstream
// object, what only its update breaks is apart.
func (c *Checker) broken(ctx context.Context, s *subject, old, content map[string]any) (errs, change field.ErrorList) {
	errs = validation.WithoutExcuse(s.schema().Validate(ctx, old, content))
	if s.isUpstream() && old != nil && len(errs) > 0 {
		errs, change = validation.Apart(errs, validation.WithoutExcuse(s.schema().Validate(ctx, nil, content)))
	}
	return append(s.schema().ValidateMeta(ctx, old, content), errs...), change
}

// noteTransitions tells of an admitted update of an upstream object what keeps
// one of ours from being updated so. In a cluster nobody says it: the object's own
// controller knows what it makes of a change.
func noteTransitions(ctx context.Context, request *admissionv1.AdmissionRequest, s *subject, change field.ErrorList, result *Result) error {
	if !result.Allowed {
		return nil
	}
	causes, err := s.gate.Transitions(ctx, request)
	if err != nil {
		return err
	}
	note := func(field, message string) {
		result.Notes = append(result.Notes, Fault{Field: field, Message: fmt.Sprintf("changes, which is up to the controller of a %s; a %s of %s would be refused: %s",
			s.written.Kind, s.own.Kind, s.own.Group, message)})
	}
	for _, err := range change {
		note(err.Field, err.ErrorBody())
	}
	for _, cause := range causes {
		note(cause.Field, cause.Message)
	}
	return nil
}

// judgeUpstream has the policies judge an object of an upstream kind, as they do
// in a cluster: those that name it, and those that name the kind of ours that
// has its shape.
func (c *Checker) judgeUpstream(ctx context.Context, s *subject, object Object, old *stored, result *Result) error {
	if reason := c.unasked(s.written, result.Namespace, result.Name); reason != "" {
		result.Notes = append(result.Notes, Fault{Message: reason})
		return nil
	}
	raw, err := inNamespace(object.JSON, result.Namespace)
	if err != nil {
		return err
	}
	request := c.foreignRequest(s.written, result.Namespace, result.Name, raw)
	if old != nil {
		request.Operation = admissionv1.Update
		if request.OldObject.Raw, err = inNamespace(old.JSON, result.Namespace); err != nil {
			return err
		}
	}
	c.decided(result, c.own.DecideFor(ctx, request, ""))
	return nil
}

// inNamespace gives an object as one of a namespace.
func inNamespace(raw []byte, namespace string) ([]byte, error) {
	content, err := decode(raw)
	if err != nil {
		return nil, err
	}
	manifest := unstructured.Unstructured{Object: content}
	manifest.SetNamespace(namespace)
	return manifest.MarshalJSON()
}

// undecodable says why the API server would not decode an object when asked to
// be strict, in its words.
func undecodable(s *subject, object Object, content map[string]any) []Fault {
	var faults []Fault
	for _, repeated := range object.Repeated {
		faults = append(faults, Fault{Message: repeated})
	}
	if s.isUpstream() {
		// Status is not ours, and our schema knows only our name of the kind.
		content = runtime.DeepCopyJSON(content)
		content["apiVersion"], content["kind"] = s.own.GroupVersion().String(), s.own.Kind
		delete(content, "status")
	}
	unknown, err := s.schema().UnknownFields(content)
	if err != nil {
		faults = append(faults, Fault{Field: "metadata", Message: err.Error()})
	}
	for _, path := range unknown {
		faults = append(faults, Fault{Field: path, Message: fmt.Sprintf("unknown field %q", path)})
	}
	return faults
}

// ours gives the object as one of our kinds.
func ours(s *subject, raw []byte) (map[string]any, error) {
	if s.isUpstream() {
		var err error
		if raw, err = conversion.FromUpstream(raw); err != nil {
			return nil, err
		}
	}
	return decode(raw)
}

// complete writes what the API server itself keeps: the namespace, and what
// comes from the stored object on update. Status has a subresource; a write of
// the object leaves it as it was.
func complete(content, old map[string]any, namespace string) {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		content["metadata"] = metadata
	}
	delete(metadata, "namespace")
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	delete(content, "status")
	if old == nil {
		return
	}
	if status, ok := old["status"]; ok {
		content["status"] = status
	}
	keepRecord(metadata, old)
}

// defaulted has the defaulting webhook asked and gives the object, in the
// version of the request, with the patch applied that it answered by.
func (c *Checker) defaulted(ctx context.Context, request *admission, content map[string]any) (map[string]any, error) {
	hub, err := toVersion(content, penstockv1.GroupVersion)
	if err != nil {
		return nil, err
	}
	if hub, err = request.applyDefaults(ctx, hub); err != nil {
		return nil, err
	}
	raw, err := conversion.Convert(hub, request.own.GroupVersion())
	if err != nil {
		return nil, err
	}
	return decode(raw)
}

// An admission makes the requests for one object.
type admission struct {
	*subject
	operation admissionv1.Operation
	old       []byte
	user      Options
}

// of gives the request for a v1 object.
func (a *admission) of(hub []byte) *admissionv1.AdmissionRequest {
	var object metav1.PartialObjectMetadata
	// Metadata of a wrong type has been refused before.
	_ = json.Unmarshal(hub, &object)
	kind := metav1.GroupVersionKind(penstockv1.GroupVersion.WithKind(a.own.Kind))
	resource := metav1.GroupVersionResource(penstockv1.GroupVersion.WithResource(a.resource))
	written := metav1.GroupVersionKind(a.written)
	return &admissionv1.AdmissionRequest{
		Kind:        kind,
		Resource:    resource,
		RequestKind: &written,
		Name:        object.Name,
		Namespace:   object.Namespace,
		Operation:   a.operation,
		UserInfo:    a.user.User,
		Object:      runtime.RawExtension{Raw: hub},
		OldObject:   runtime.RawExtension{Raw: a.old},
	}
}

// applyDefaults gives a v1 object as the defaulting webhook makes it.
func (a *admission) applyDefaults(ctx context.Context, hub []byte) ([]byte, error) {
	response := a.gate.Default(ctx, a.of(hub))
	if !response.Allowed {
		return nil, &refusal{response.Result}
	}
	if len(response.Patch) == 0 {
		return hub, nil
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		return nil, fmt.Errorf("failed to read the patch of defaults: %w", err)
	}
	if hub, err = patch.Apply(hub); err != nil {
		return nil, fmt.Errorf("failed to apply the patch of defaults: %w", err)
	}
	// What a webhook has changed is decoded anew, with the schema's defaults.
	content, err := decode(hub)
	if err != nil {
		return nil, err
	}
	a.hub().Default(content)
	return json.Marshal(content)
}

// refusal is what the defaulting webhook says instead of defaults.
type refusal struct{ status *metav1.Status }

func (r *refusal) Error() string { return r.status.Message }

func (r *refusal) faults() []Fault {
	if r.status.Details == nil || len(r.status.Details.Causes) == 0 {
		return []Fault{{Message: r.status.Message}}
	}
	faults := make([]Fault, len(r.status.Details.Causes))
	for i, cause := range r.status.Details.Causes {
		faults[i] = Fault{Field: cause.Field, Message: cause.Message}
	}
	return faults
}

func faultsOf(errs field.ErrorList) []Fault {
	faults := make([]Fault, len(errs))
	for i, err := range errs {
		faults[i] = Fault{Field: err.Field, Message: err.ErrorBody()}
	}
	return faults
}

// decode reads an object as the API server does, with whole numbers as int64.
func decode(raw []byte) (map[string]any, error) {
	content := map[string]any{}
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}
	return content, nil
}

func toVersion(content map[string]any, version schema.GroupVersion) ([]byte, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("failed to write the object: %w", err)
	}
	return conversion.Convert(raw, version)
}
