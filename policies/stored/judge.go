package stored

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks/cel"
	"github.com/penstock-dev/penstock/webhooks/fields"
)

// A Judge judges stored objects as if they were written now: what preview and
// audit do. It may be used by several goroutines.
type Judge struct {
	// Reach is what policies are asked about.
	Reach *policies.Reach
	// Labels gives the labels of a namespace.
	Labels func(ctx context.Context, namespace string) (map[string]string, error)
	// Normal gives an object of Penstock's kinds and of upstream kinds as
	// policies see it in a request.
	Normal func(written schema.GroupVersionKind, raw []byte) ([]byte, error)
	// Clock gives the time that exceptions and rules see.
	Clock func() time.Time
}

// A Judgement is what a snapshot says of one stored object.
type Judgement struct {
	policies.Verdict
	// At gives the path, in the object as it is stored, of a path that a rule
	// gave.
	At func(string) string
}

// Judge judges a stored object. An upstream object is judged twice: as what it
// is, and as the object of ours that has its shape. Objects that no request is
// judged of (those being deleted, and what the API server does not ask about)
// have no judgement. An object is read only if some policy is asked about it. Where
// only is not nil, no others are asked than the policies that it names.
func (j *Judge) Judge(ctx context.Context, snapshot *policies.Snapshot, only map[string]bool, resource schema.GroupVersionResource, object *unstructured.Unstructured) []Judgement {
	written := object.GroupVersionKind()
	own := written.Group == v1.GroupName
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	found := j.asWritten(ctx, snapshot, only, written, resource, object, own)
	if upstream, ok := conversion.Upstream(written); ok {
		found = append(found, j.asWritten(ctx, snapshot, only, v1.GroupVersion.WithKind(upstream.Kind), resource, object, true)...)
	}
	return found
}

// asWritten judges an object as what it would be if it were written now: a
// creation, and, for the policies that are not asked about that, an update that
// changes nothing.
func (j *Judge) asWritten(ctx context.Context, snapshot *policies.Snapshot, only map[string]bool, kind schema.GroupVersionKind, resource schema.GroupVersionResource,
	object *unstructured.Unstructured, normal bool,
) []Judgement {
	created := j.ask(ctx, snapshot, policies.Scope{Only: only}, v1.OperationCreate, kind, resource, object, normal)
	updated := j.ask(ctx, snapshot, policies.Scope{Only: only, Except: created.asked()}, v1.OperationUpdate, kind, resource, object, normal)
	return []Judgement{created, updated}
}

// asked are the policies that were.
func (j *Judgement) asked() map[string]bool {
	names := map[string]bool{}
	for _, name := range j.Judged {
		names[name] = true
	}
	for _, one := range j.Errors {
		names[one.Policy] = true
	}
	for _, one := range j.NotEvaluated {
		names[one.Policy] = true
	}
	return names
}

// ask judges an object as one of a kind; normal says whether policies see it in
// v1, with every default.
func (j *Judge) ask(ctx context.Context, snapshot *policies.Snapshot, scope policies.Scope, operation v1.PolicyOperation, kind schema.GroupVersionKind,
	resource schema.GroupVersionResource, object *unstructured.Unstructured, normal bool,
) Judgement {
	written, namespace := object.GroupVersionKind(), namespaceOf(object)
	labels := func() (map[string]string, error) { return j.Labels(ctx, namespace) }
	if namespace != object.GetNamespace() {
		labels = func() (map[string]string, error) { return object.GetLabels(), nil }
	}
	request := &admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind(written), Resource: metav1.GroupVersionResource(resource), Namespace: namespace, Name: object.GetName(),
		Operation: admissionv1.Operation(operation),
	}
	read := sync.OnceValues(func() ([]byte, error) {
		raw, err := json.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("failed to write the %s: %w", written.Kind, err)
		}
		return raw, nil
	})
	var seen []byte
	judged := policies.FromAdmission(request, j.Clock(), labels)
	judged.Kind = metav1.GroupVersionKind(kind)
	judged.Stored, judged.UserKnown, judged.Stray = true, false, true
	judged.Fields = fields.Of(kind)
	judged.Load = func() (_, old []byte, err error) {
		if seen, err = read(); err == nil && normal {
			if seen, err = j.Normal(written, seen); err != nil {
				err = fmt.Errorf("failed to read the %s: %w", written.Kind, err)
			}
		}
		if operation == v1.OperationUpdate {
			old = seen
		}
		return seen, old, err
	}
	judged.Scope, judged.Reach = scope, j.Reach
	judged.Scope.Upstream = kind != written
	judged.Scope.Holds = once(func(conditions []admissionregistrationv1.MatchCondition) (bool, error) {
		raw, err := read()
		if err != nil {
			return false, err
		}
		request.Object.Raw = raw
		if operation == v1.OperationUpdate {
			request.OldObject.Raw = raw
		}
		holds, err := cel.Hold(ctx, conditions, request, cel.Requester{})
		if err != nil && operation == v1.OperationCreate && slices.ContainsFunc(conditions, readsOldObject) {
			// The fault may be that of a creation alone, which has no old object. As an
			// update it is seen whether there is one.
			return false, nil
		}
		return holds, err
	})
	found := Judgement{Verdict: snapshot.Judge(ctx, judged), At: func(path string) string { return path }}
	if kind != written {
		found.At = conversion.FieldPaths(written, seen)
	}
	return found
}

func readsOldObject(condition admissionregistrationv1.MatchCondition) bool {
	return strings.Contains(condition.Expression, "oldObject")
}

// namespaceOf is the namespace of requests for an object: that of a Namespace is
// itself.
func namespaceOf(object *unstructured.Unstructured) string {
	if kind := object.GroupVersionKind(); kind.Group == "" && kind.Kind == "Namespace" {
		return object.GetName()
	}
	return object.GetNamespace()
}

// once evaluates equal match conditions once: many policies have the same.
func once(evaluate func([]admissionregistrationv1.MatchCondition) (bool, error)) func([]admissionregistrationv1.MatchCondition) (bool, error) {
	type answer struct {
		conditions []admissionregistrationv1.MatchCondition
		holds      bool
		err        error
	}
	var answers []answer
	return func(conditions []admissionregistrationv1.MatchCondition) (bool, error) {
		for _, one := range answers {
			if slices.Equal(one.conditions, conditions) {
				return one.holds, one.err
			}
		}
		holds, err := evaluate(conditions)
		answers = append(answers, answer{conditions, holds, err})
		return holds, err
	}
}

// JudgedBy reports whether a policy judges what is stored at all, and not
// only deletions or connections.
func JudgedBy(spec *v1.WorkloadPolicySpec) bool {
	operations := policies.OperationsOf(&spec.Match)
	return slices.Contains(operations, v1.OperationCreate) || slices.Contains(operations, v1.OperationUpdate)
}

// JudgesOtherwise reports whether anything changed but what a policy says of
// itself.
func JudgesOtherwise(old, policy *v1.WorkloadPolicySpec) bool {
	before, after := *old, *policy
	before.Description, after.Description = "", ""
	return !equality.Semantic.DeepEqual(before, after)
}
