package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// scaleSubresource is where a count is written without the rest of the object.
const scaleSubresource = "scale"

// scaledKinds are the kinds whose count is spec.elastic.replicas, by resource.
var scaledKinds = map[string]string{"trainingjobs": v1.TrainingJobKind}

// onParent makes a write of the count through the scale subresource into the
// same write of the object that it belongs to, so that it is judged like any
// other edit. Other requests it gives as they are. The error is errNotElastic
// where the object has no count.
func (g *Gate) onParent(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionRequest, error) {
	name, ok := scaledKinds[request.Resource.Resource]
	if request.SubResource != scaleSubresource || !ok {
		return request, nil
	}
	var scale autoscalingv1.Scale
	if err := json.Unmarshal(request.Object.Raw, &scale); err != nil {
		return request, fmt.Errorf("failed to read the scale: %w", err)
	}
	kind := v1.GroupVersion.WithKind(name)
	stored, err := g.Cluster.Object(ctx, kind, request.Namespace, request.Name)
	if err != nil {
		return request, fmt.Errorf("failed to read the %s that is scaled: %w", name, err)
	}
	scaled, err := withReplicas(stored, scale.Spec.Replicas)
	if err != nil && !errors.Is(err, errNotElastic) {
		return request, err
	}
	parent := *request
	parent.Kind = metav1.GroupVersionKind(kind)
	parent.Object = runtime.RawExtension{Raw: scaled}
	parent.OldObject = runtime.RawExtension{Raw: stored}
	// The author wrote a Scale, through the parent's resource in some version.
	made := parent.Kind
	if through := request.RequestResource; through != nil && through.Group == kind.Group {
		made.Version = through.Version
	}
	parent.RequestKind = &made
	return &parent, err
}

// errNotElastic refuses a count for a workload that has none to change.
var errNotElastic = errors.New("is not set, so there is no count to scale: set elastic, or change the replicas of a role, which takes a suspended job")

// withReplicas gives an object with another count, or errNotElastic.
func withReplicas(raw []byte, replicas int32) ([]byte, error) {
	content, err := decodeContent(raw)
	if err != nil {
		return nil, err
	}
	spec, ok := content["spec"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the object that is scaled has no spec")
	}
	elastic, ok := spec["elastic"].(map[string]any)
	if !ok {
		// The API server would write the block, and so make the workload
		// elastic: that is a decision of its author, not a count.
		return raw, errNotElastic
	}
	elastic["replicas"] = int64(replicas)
	return json.Marshal(content)
}

// requestKind gives the kind and version that a request was made in.
func requestKind(request *admissionv1.AdmissionRequest) schema.GroupVersionKind {
	if request.RequestKind != nil {
		return schema.GroupVersionKind(*request.RequestKind)
	}
	return schema.GroupVersionKind(request.Kind)
}
