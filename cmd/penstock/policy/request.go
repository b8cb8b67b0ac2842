package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks/cel"
	"github.com/penstock-dev/penstock/webhooks/fields"
)

// caseRequest is the request of a case, and the same in v1 where it is written
// in another version or as an upstream kind.
type caseRequest struct {
	requests  []policies.Request
	paths     []func(string) string
	inventory map[schema.GroupVersionKind][]map[string]any
}

// requestOf makes the request of a case. Penstock's own kinds, and upstream
// kinds, are what rules see in the cluster: v1 with its defaults.
func (r *policyReader) requestOf(ctx context.Context, one *Case, dir string) (*caseRequest, error) {
	object, err := objectOf(one.Object, dir, "object")
	if err != nil {
		return nil, err
	}
	old, err := objectOf(one.OldObject, dir, "oldObject")
	if err != nil {
		return nil, err
	}
	operation := one.operation(old != nil)
	if operation == penstockv1.OperationDelete && old == nil {
		object, old = nil, object // what is deleted, under the other name
	}
	judged := object
	if judged == nil {
		judged = old
	}
	if judged == nil {
		return nil, errors.New("object: a case needs one")
	}
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(judged, &head); err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	if head.Kind == "" || head.APIVersion == "" {
		return nil, errors.New("object: needs apiVersion and kind")
	}
	written := head.GroupVersionKind()
	resource, _ := meta.UnsafeGuessKindToResource(written)
	namespace := r.checker.NamespaceOf(written, head.Namespace)
	base := policies.Request{
		Kind: metav1.GroupVersionKind(written), Resource: metav1.GroupVersionResource(resource), SubResource: one.SubResource,
		Namespace: namespace, Name: head.Name, Operation: operation,
		Object: object, OldObject: old, Now: time.Now(), Offline: true,
		NamespaceLabels: func() (map[string]string, error) { return labelsOf(namespace, one.NamespaceLabels), nil },
	}
	if one.Now != nil {
		base.Now = *one.Now
	}
	if one.User != nil {
		base.User, base.UserKnown = *one.User, true
	}
	made := &caseRequest{}
	if base.Reach = r.checker.Reach(); written.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		base.Namespace = head.Name
		// Its labels are those that are being written.
		base.NamespaceLabels = func() (map[string]string, error) { return labelsOf(head.Name, head.Labels), nil }
	}
	if written.Group != penstockv1.GroupName {
		made.add(ctx, base, itself)
	}
	if err := r.addNormal(ctx, made, base, written); err != nil {
		return nil, err
	}
	made.inventory, err = readInventory(one.Inventory, dir)
	return made, err
}

func (c *Case) operation(hasOld bool) penstockv1.PolicyOperation {
	if hasOld {
		return cmp.Or(c.Operation, penstockv1.OperationUpdate)
	}
	return cmp.Or(c.Operation, penstockv1.OperationCreate)
}

func itself(path string) string { return path }

// askConditions has match conditions evaluated on a request, as an API server does.
func askConditions(ctx context.Context, request *policies.Request) {
	asked := &admissionv1.AdmissionRequest{
		Kind: request.Kind, Resource: request.Resource, SubResource: request.SubResource, Name: request.Name, Namespace: request.Namespace,
		Operation: admissionv1.Operation(request.Operation), UserInfo: request.User,
		Object: runtime.RawExtension{Raw: request.Object}, OldObject: runtime.RawExtension{Raw: request.OldObject},
	}
	known := request.UserKnown
	request.Scope.Holds = func(conditions []admissionregistrationv1.MatchCondition) (bool, error) {
		return cel.Hold(ctx, conditions, asked, cel.Requester{Known: known})
	}
	if request.Operation == penstockv1.OperationUpdate && request.SubResource == "" {
		request.Scope.HeldBefore = cel.HeldBefore(ctx, asked, cel.Requester{Known: known})
	}
}

// add adds a request, by whose own objects match conditions are evaluated.
func (m *caseRequest) add(ctx context.Context, request policies.Request, paths func(string) string) {
	askConditions(ctx, &request)
	request.Fields, request.Stray = fields.Of(schema.GroupVersionKind(request.Kind)), true
	m.requests, m.paths = append(m.requests, request), append(m.paths, paths)
}

// addNormal adds the request for an object of Penstock's own kinds, or in the
// shape of one, in v1.
func (r *policyReader) addNormal(ctx context.Context, made *caseRequest, base policies.Request, written schema.GroupVersionKind) error {
	own, upstream := conversion.Upstream(written)
	if !upstream {
		if written.Group != penstockv1.GroupName {
			return nil
		}
		own = written
	}
	var err error
	if base.Object, err = r.checker.Normal(written, base.Object); err != nil {
		return fmt.Errorf("object: %w", err)
	}
	if base.OldObject, err = r.checker.Normal(written, base.OldObject); err != nil {
		return fmt.Errorf("oldObject: %w", err)
	}
	hub := penstockv1.GroupVersion.WithKind(own.Kind)
	base.Kind = metav1.GroupVersionKind(hub)
	if !upstream {
		// An upstream object stays one, however it is judged.
		resource, _ := meta.UnsafeGuessKindToResource(hub)
		base.Resource = metav1.GroupVersionResource(resource)
	}
	base.Scope.Upstream = upstream
	judged := base.Object
	if len(judged) == 0 {
		judged = base.OldObject
	}
	made.add(ctx, base, conversion.FieldPaths(written, judged))
	return nil
}

// judge has one policy judge the request. Each has an engine of its own, whose
// coverage is the policy's.
func (m *caseRequest) judge(ctx context.Context, policy *penstockv1.WorkloadPolicy, world *world, timeout time.Duration) (policies.Verdict, error) {
	options := policies.Options{Deadline: timeout}
	if world.coverage != nil {
		options.Tracer = world.coverage
	}
	engine := policies.NewEngine(options)
	if err := engine.Set(policy); err != nil {
		return policies.Verdict{}, fmt.Errorf("policy %s: %w", policy.Name, err)
	}
	for _, need := range engine.Inventory().Needs() {
		if err := engine.Inventory().Replace(need.Kind, m.inventory[need.Kind]); err != nil {
			return policies.Verdict{}, fmt.Errorf("inventory: %w", err)
		}
	}
	var all policies.Verdict
	for i, request := range m.requests {
		verdict := engine.Snapshot().Judge(ctx, request)
		for _, found := range [][]policies.Violation{verdict.Violations, verdict.Tolerated} {
			for j := range found {
				found[j].Field = m.paths[i](found[j].Field)
			}
		}
		join(&all, verdict)
	}
	return all, nil
}

// join adds what another verdict says of the same object.
func join(all *policies.Verdict, verdict policies.Verdict) {
	all.Judged = append(all.Judged, verdict.Judged...)
	all.Violations = append(all.Violations, verdict.Violations...)
	all.Tolerated = append(all.Tolerated, verdict.Tolerated...)
	all.Errors = append(all.Errors, verdict.Errors...)
	all.Expiring = append(all.Expiring, verdict.Expiring...)
	all.Excepted = append(all.Excepted, verdict.Excepted...)
	all.NotEvaluated = append(all.NotEvaluated, verdict.NotEvaluated...)
}

// exception says by which exception the request passes a policy.
func (m *caseRequest) exception(policy *penstockv1.WorkloadPolicy) string {
	i := policies.ExceptionOf(policy.Spec.Exceptions, &m.requests[0])
	if i < 0 {
		return ""
	}
	one := policy.Spec.Exceptions[i]
	return fmt.Sprintf("excepted by exceptions[%d] of policy %s until %s (%s)", i, policy.Name, one.Until.UTC().Format(time.RFC3339), one.Reason)
}

// readInventory reads the inventory of a case by kind.
func readInventory(raw []json.RawMessage, dir string) (map[schema.GroupVersionKind][]map[string]any, error) {
	found := map[schema.GroupVersionKind][]map[string]any{}
	for i, one := range raw {
		field := fmt.Sprintf("inventory[%d]", i)
		objects, err := objectsOf(one, dir, field)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			decoder := json.NewDecoder(strings.NewReader(string(object)))
			decoder.UseNumber()
			var content map[string]any
			if err := decoder.Decode(&content); err != nil {
				return nil, fmt.Errorf("%s: %w", field, err)
			}
			version, _ := content["apiVersion"].(string)
			kind, _ := content["kind"].(string)
			metadata, _ := content["metadata"].(map[string]any)
			if slices.Contains([]string{version, kind}, "") || metadata["name"] == nil {
				return nil, fmt.Errorf("%s: needs apiVersion, kind and metadata.name", field)
			}
			gvk := schema.FromAPIVersionAndKind(version, kind)
			found[gvk] = append(found[gvk], content)
		}
	}
	return found, nil
}
