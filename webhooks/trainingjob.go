package webhooks

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// The API server converts every served version to v1 before it asks, so v1 is
// the only version to be matched. Writes of status have webhooks of no concern:
// they come by a subresource that no rule names.
//
// +kubebuilder:webhook:path=/mutate-penstock-dev-v1-trainingjob,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,reinvocationPolicy=IfNeeded,timeoutSeconds=10,groups=penstock.dev,resources=trainingjobs,verbs=create;update,versions=v1,name=default.trainingjob.penstock.dev,admissionReviewVersions=v1,serviceName=penstock-webhook,serviceNamespace=penstock-system,patch=`{"matchConditions":[{"name":"not-being-deleted","expression":"request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp)"}]}`
// +kubebuilder:webhook:path=/validate-penstock-dev-v1-trainingjob,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=penstock.dev,resources=trainingjobs;trainingjobs/scale,verbs=create;update,versions=v1,name=validate.trainingjob.penstock.dev,admissionReviewVersions=v1,serviceName=penstock-webhook,serviceNamespace=penstock-system,patch=`{"matchConditions":[{"name":"not-being-deleted","expression":"request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp)"}]}`
//
// Deleting is judged by the policies that name DELETE, and only while somebody
// answers: a cluster where Penstock is down must still be able to free its GPUs
// and to finish deleting a namespace.
//
// +kubebuilder:webhook:path=/validate-penstock-dev-v1-trainingjob,mutating=false,failurePolicy=ignore,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=penstock.dev,resources=trainingjobs,verbs=delete,versions=v1,name=delete.trainingjob.penstock.dev,admissionReviewVersions=v1,serviceName=penstock-webhook,serviceNamespace=penstock-system

func newTrainingJobs() (*typed[v1.TrainingJob], error) {
	schema, spokes, err := newSchemas(v1.TrainingJobGroupKind)
	if err != nil {
		return nil, err
	}
	return &typed[v1.TrainingJob]{
		groupKind: v1.TrainingJobGroupKind,
		schema:    schema,
		spokes:    spokes,
		defaults:  defaulting.DefaultTrainingJob,
		validate:  pure(validation.ValidateTrainingJob),
		advise: func(_ context.Context, old, job *v1.TrainingJob) field.ErrorList {
			return validation.AdviseTrainingJob(old, job)
		},
		policies: true,
	}, nil
}
