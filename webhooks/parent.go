package webhooks

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// parentLabels gives the labels of the stored object that the subresource of a
// request belongs to.
func (g *Gate) parentLabels(ctx context.Context, request *admissionv1.AdmissionRequest) (map[string]string, error) {
	resource := schema.GroupVersionResource(request.Resource)
	kind, err := g.Cluster.KindOf(ctx, resource)
	if err != nil {
		return nil, fmt.Errorf("failed to find the kind of %s: %w", resource.Resource, err)
	}
	labels, err := g.Cluster.Labels(ctx, kind, request.Namespace, request.Name)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("grant Penstock get on %s, by a ClusterRole labelled %s=true", resource.GroupResource(), v1.ManagerRoleLabel)
	}
	return labels, err
}
