package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks/cel"
)

// Judge answers a request for any kind by the policies of one entry of the
// webhook configuration. Kinds that are not Penstock's have no invariants here;
// their own controllers know them.
func (g *Gate) Judge(ctx context.Context, request *admissionv1.AdmissionRequest, entry policies.Entry) *admissionv1.AdmissionResponse {
	return g.logged(request, func() Decision { return g.DecideFor(ctx, request, entry) })
}

// DecideFor is Judge for callers that want to know more than a response says.
// Without an entry it asks every policy whose match conditions hold.
func (g *Gate) DecideFor(ctx context.Context, request *admissionv1.AdmissionRequest, entry policies.Entry) Decision {
	if !g.Loaded() {
		return g.notLoaded(request)
	}
	if request.Kind.Group == v1.GroupName || request.Resource.Group == v1.GroupName {
		return g.decideOwn(ctx, request, entry)
	}
	if unchanged(request) {
		return Decision{Response: allowed(request)}
	}
	request, err := g.onWorkload(ctx, named(request))
	if err != nil {
		return g.undecided(request, entry, err)
	}
	kind, err := g.matchKind(ctx, request)
	if err != nil {
		return g.undecided(request, entry, err)
	}
	scope, snapshot := g.scope(ctx, request, entry), g.Engine.Snapshot()
	judgements := []judgement{{g.judge(ctx, snapshot, request, kind, scope), itself}}
	if found, ok := g.judgeUpstream(ctx, snapshot, request, scope); ok {
		judgements = append(judgements, found)
	}
	return decide(request, nil, judgements...)
}

// named gives a request the name of its object where that is left out, as in the
// deletion of a collection: exceptions and messages go by it.
func named(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionRequest {
	if request.Name != "" || request.Operation != admissionv1.Delete {
		return request
	}
	var old metav1.PartialObjectMetadata
	if err := json.Unmarshal(request.OldObject.Raw, &old); err != nil || old.Name == "" {
		return request // What is wrong with it is said where it is judged.
	}
	known := *request
	known.Name = old.Name
	return &known
}

// decideOwn judges Penstock's own kinds by the policies that have match
// conditions. All others are asked where the kind's invariants are checked.
func (g *Gate) decideOwn(ctx context.Context, request *admissionv1.AdmissionRequest, entry policies.Entry) Decision {
	if entry != "" && !entry.Conditional() {
		return Decision{Response: allowed(request)}
	}
	request, err := g.onParent(ctx, named(request))
	if err != nil {
		// The invariants refuse it.
		return Decision{Response: allowed(request)}
	}
	kind, ok := g.kinds[groupKind(request)]
	if !ok || !kind.judged() || cannotMatter(request) {
		return Decision{Response: allowed(request)}
	}
	return decide(request, nil, judgement{g.judge(ctx, g.Engine.Snapshot(), request, groupKind(request), g.scope(ctx, request, entry)), writtenPaths(request)})
}

// scope asks the policies of an entry, or all whose conditions hold.
func (g *Gate) scope(ctx context.Context, request *admissionv1.AdmissionRequest, entry policies.Entry) policies.Scope {
	scope := policies.Scope{Entry: entry}
	if request.Operation == admissionv1.Update && request.SubResource == "" {
		// Of what users may do nobody is asked for that: where it is not known, they held.
		scope.HeldBefore = cel.HeldBefore(ctx, request, cel.Requester{Known: g.userKnown(request)})
	}
	if entry == "" || entry.Conditional() && request.SubResource == scaleSubresource {
		// The API server has not evaluated them on what is scaled.
		scope.Holds = func(conditions []admissionregistrationv1.MatchCondition) (bool, error) {
			return cel.Hold(ctx, conditions, request, g.requester(request))
		}
	}
	return scope
}

// undecided answers a request that could not be judged, as the failure policy
// of the entry says.
func (g *Gate) undecided(request *admissionv1.AdmissionRequest, entry policies.Entry, err error) Decision {
	if entry.FailurePolicy() != v1.FailurePolicyIgnore {
		return Decision{Response: broken(request, err)}
	}
	decision := Decision{Response: allowed(request)}
	decision.warn(request, []fault{{message: fmt.Sprintf("policies could not be asked: %v", err)}})
	return decision
}

func (g *Gate) notLoaded(request *admissionv1.AdmissionRequest) Decision {
	return Decision{Response: refused(request, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"Penstock is starting and has not loaded its policies yet: try again in a few seconds")}
}

// matchKind gives the kind that policies name. A subresource may carry another
// kind than its parent has: an Eviction is written to a Pod.
func (g *Gate) matchKind(ctx context.Context, request *admissionv1.AdmissionRequest) (schema.GroupKind, error) {
	if request.SubResource == "" {
		return groupKind(request), nil
	}
	kind, err := g.Cluster.KindOf(ctx, schema.GroupVersionResource(request.Resource))
	if err != nil {
		return schema.GroupKind{}, fmt.Errorf("failed to find the kind of %s: %w", request.Resource.Resource, err)
	}
	return kind.GroupKind(), nil
}

// scaledWorkloads are the resources whose objects a write of their count is
// judged on, and where the count is. The other kinds of kubeflow.org have no scale.
var scaledWorkloads = map[schema.GroupResource][]string{
	{Group: "apps", Resource: "deployments"}:         {"spec", "replicas"},
	{Group: "apps", Resource: "statefulsets"}:        {"spec", "replicas"},
	{Group: "apps", Resource: "replicasets"}:         {"spec", "replicas"},
	{Group: "", Resource: "replicationcontrollers"}:  {"spec", "replicas"},
	{Group: "kubeflow.org", Resource: "jaxjobs"}:     {"spec", "jaxReplicaSpecs", "Worker", "replicas"},
	{Group: "kubeflow.org", Resource: "paddlejobs"}:  {"spec", "paddleReplicaSpecs", "Worker", "replicas"},
	{Group: "kubeflow.org", Resource: "pytorchjobs"}: {"spec", "pytorchReplicaSpecs", "Worker", "replicas"},
}

// onWorkload makes a write of the count of a workload into the same write of the
// workload, so that rules see what is scaled. The subresource
// stays: whether it is judged is up to the policy. The Scale of other kinds is
// judged as it is.
func (g *Gate) onWorkload(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionRequest, error) {
	resource := schema.GroupVersionResource(request.Resource)
	count := scaledWorkloads[resource.GroupResource()]
	if request.SubResource != scaleSubresource || request.Operation != admissionv1.Update || count == nil {
		return request, nil
	}
	var scale autoscalingv1.Scale
	if err := json.Unmarshal(request.Object.Raw, &scale); err != nil {
		return request, fmt.Errorf("failed to read the scale: %w", err)
	}
	kind, err := g.Cluster.KindOf(ctx, resource)
	if err != nil {
		return request, fmt.Errorf("failed to find the kind of %s: %w", resource.Resource, err)
	}
	stored, err := g.Cluster.Object(ctx, kind, request.Namespace, request.Name)
	if err != nil {
		return request, fmt.Errorf("failed to read the %s that is scaled: %w", kind.Kind, err)
	}
	content, err := decodeContent(stored)
	if err != nil {
		return request, err
	}
	if err := unstructured.SetNestedField(content, int64(scale.Spec.Replicas), count...); err != nil {
		return request, fmt.Errorf("failed to set the count of the %s that is scaled: %w", kind.Kind, err)
	}
	scaled, err := json.Marshal(content)
	if err != nil {
		return request, fmt.Errorf("failed to write the %s that is scaled: %w", kind.Kind, err)
	}
	parent := *request
	parent.Kind = metav1.GroupVersionKind(kind)
	parent.RequestKind = &parent.Kind
	parent.Object, parent.OldObject = runtime.RawExtension{Raw: scaled}, runtime.RawExtension{Raw: stored}
	return &parent, nil
}

// judgeUpstream judges an object of an upstream kind as the object of ours that
// has its shape, by the policies that ask for that. It is converted only if there
// are some. It reports whether the kind is one.
func (g *Gate) judgeUpstream(ctx context.Context, snapshot *policies.Snapshot, request *admissionv1.AdmissionRequest, scope policies.Scope) (judgement, bool) {
	written := schema.GroupVersionKind(request.Kind)
	own, ok := conversion.Upstream(written)
	if !ok || (request.SubResource != "" && request.SubResource != scaleSubresource) {
		return judgement{}, false
	}
	hub := v1.GroupVersion.WithKind(own.Kind)
	converted := *request
	converted.Kind = metav1.GroupVersionKind(hub)
	scope.Upstream = true
	judged := g.policyRequest(ctx, &converted, hub.GroupKind(), scope)
	judged.Load = func() (object, oldObject []byte, err error) {
		if converted.Object.Raw, err = g.Normal(written, request.Object.Raw); err != nil {
			return nil, nil, fmt.Errorf("failed to read the %s: %w", written.Kind, err)
		}
		if converted.OldObject.Raw, err = g.Normal(written, request.OldObject.Raw); err != nil {
			return nil, nil, fmt.Errorf("failed to read the stored %s: %w", written.Kind, err)
		}
		return converted.Object.Raw, converted.OldObject.Raw, nil
	}
	verdict := snapshot.Judge(ctx, judged)
	return judgement{verdict: verdict, at: conversion.FieldPaths(written, judgedObject(&converted))}, true
}

// Normal gives an object of one of Penstock's kinds, or of an upstream kind, as
// policies see it in a request: in v1, with every default. Nothing stays nothing.
func (g *Gate) Normal(written schema.GroupVersionKind, raw []byte) ([]byte, error) {
	if isAbsent(raw) {
		return nil, nil
	}
	own, ok := conversion.Upstream(written)
	if ok {
		shaped, err := conversion.FromUpstream(raw)
		if err != nil {
			return nil, err
		}
		if raw, err = conversion.Convert(shaped, v1.GroupVersion); err != nil {
			return nil, err
		}
		written = own
	}
	kind, ok := g.kinds[written.GroupKind()]
	if !ok {
		return nil, fmt.Errorf("kind %s is neither Penstock's nor an upstream kind", written)
	}
	return kind.complete(raw)
}

// answerProbe refuses the object of a probe by saying which it is.
func (g *Gate) answerProbe(_ context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	var probe metav1.PartialObjectMetadata
	if err := json.Unmarshal(request.Object.Raw, &probe); err != nil {
		return badRequest(request, err)
	}
	return refused(request, http.StatusForbidden, metav1.StatusReasonForbidden, policies.ProbeAnswer(probe.Labels[v1.ProbeLabel]))
}

// itself is the path of a fault in an object that is judged as it was written.
func itself(path string) string { return path }
