package conversion

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

var (
	rayClusterAlpha  = v1.RayClusterGroupKind.WithVersion("v1alpha1")
	trainingJobAlpha = v1.TrainingJobGroupKind.WithVersion("v1alpha1")
)

// upstreamKinds pairs each upstream kind with the Penstock kind and version
// whose spec has the same shape.
var upstreamKinds = map[schema.GroupVersionKind]schema.GroupVersionKind{
	{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}:  trainingJobAlpha,
	{Group: "kubeflow.org", Version: "v1", Kind: "TFJob"}:       trainingJobAlpha,
	{Group: "kubeflow.org", Version: "v1", Kind: "MPIJob"}:      trainingJobAlpha,
	{Group: "kubeflow.org", Version: "v2beta1", Kind: "MPIJob"}: trainingJobAlpha,
	{Group: "kubeflow.org", Version: "v1", Kind: "PaddleJob"}:   trainingJobAlpha,
	{Group: "kubeflow.org", Version: "v1", Kind: "XGBoostJob"}:  trainingJobAlpha,
	{Group: "kubeflow.org", Version: "v1", Kind: "JAXJob"}:      trainingJobAlpha,
	{Group: "ray.io", Version: "v1", Kind: "RayCluster"}:        rayClusterAlpha,
	{Group: "ray.io", Version: "v1alpha1", Kind: "RayCluster"}:  rayClusterAlpha,
}

// Upstream gives the Penstock kind and version that has the shape of an
// upstream kind.
func Upstream(kind schema.GroupVersionKind) (own schema.GroupVersionKind, ok bool) {
	own, ok = upstreamKinds[kind]
	return own, ok
}

// UpstreamKinds lists the upstream kinds, sorted.
func UpstreamKinds() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(upstreamKinds), func(a, b schema.GroupVersionKind) int {
		return cmp.Compare(a.String(), b.String())
	})
}

// FromUpstream gives the JSON of an upstream object, such as a kubeflow.org
// PyTorchJob, as the Penstock object of the same shape. Its status stays
// behind: it is not ours. The error is an *UnknownVersionError, or says where
// raw is not a JSON object.
func FromUpstream(raw []byte) ([]byte, error) {
	object, err := splitObject(raw)
	if err != nil {
		return nil, err
	}
	kind := object.gvk()
	own, ok := upstreamKinds[kind]
	if !ok {
		return nil, fmt.Errorf("no Penstock kind has the shape of an upstream object: %w", &UnknownVersionError{kind})
	}
	object.apiVersion, object.kind = own.GroupVersion().String(), own.Kind
	object.rest = nil
	return object.appendTo(nil), nil
}
