package webhooks

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// As for training jobs; see there.
//
// +kubebuilder:webhook:path=/mutate-penstock-dev-v1-raycluster,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,reinvocationPolicy=IfNeeded,timeoutSeconds=10,groups=penstock.dev,resources=rayclusters,verbs=create;update,versions=v1,name=default.raycluster.penstock.dev,admissionReviewVersions=v1,serviceName=penstock-webhook,serviceNamespace=penstock-system,patch=`{"matchConditions":[{"name":"not-being-deleted","expression":"request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp)"}]}`
// +kubebuilder:webhook:path=/validate-penstock-dev-v1-raycluster,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=penstock.dev,resources=rayclusters,verbs=create;update,versions=v1,name=validate.raycluster.penstock.dev,admissionReviewVersions=v1,serviceName=penstock-webhook,serviceNamespace=penstock-system,patch=`{"matchConditions":[{"name":"not-being-deleted","expression":"request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp)"}]}`
// +kubebuilder:webhook:path=/validate-penstock-dev-v1-raycluster,mutating=false,failurePolicy=ignore,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=penstock.dev,resources=rayclusters,verbs=delete,versions=v1,name=delete.raycluster.penstock.dev,admissionReviewVersions=v1,serviceName=penstock-webhook,serviceNamespace=penstock-system

func newRayClusters() (*typed[v1.RayCluster], error) {
	schema, spokes, err := newSchemas(v1.RayClusterGroupKind)
	if err != nil {
		return nil, err
	}
	return &typed[v1.RayCluster]{
		groupKind: v1.RayClusterGroupKind,
		schema:    schema,
		spokes:    spokes,
		defaults:  defaulting.DefaultRayCluster,
		inherit:   defaulting.InheritRayCluster,
		validate:  pure(validation.ValidateRayCluster),
		advise: func(_ context.Context, old, cluster *v1.RayCluster) field.ErrorList {
			return validation.AdviseRayCluster(old, cluster)
		},
		policies: true,
	}, nil
}
