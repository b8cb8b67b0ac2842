package webhooks

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// Deleting a policy is never behind Penstock: it may be the way out.
//
// +kubebuilder:webhook:path=/mutate-penstock-dev-v1-workloadpolicy,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,reinvocationPolicy=IfNeeded,timeoutSeconds=10,groups=penstock.dev,resources=workloadpolicies,verbs=create;update,versions=v1,name=default.workloadpolicy.penstock.dev,admissionReviewVersions=v1,serviceName=penstock-webhook,serviceNamespace=penstock-system
// +kubebuilder:webhook:path=/validate-penstock-dev-v1-workloadpolicy,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=penstock.dev,resources=workloadpolicies,verbs=create;update,versions=v1,name=validate.workloadpolicy.penstock.dev,admissionReviewVersions=v1,serviceName=penstock-webhook,serviceNamespace=penstock-system

func newWorkloadPolicies() (*typed[v1.WorkloadPolicy], error) {
	schema, err := newSchema(v1.WorkloadPolicyGroupKind)
	if err != nil {
		return nil, err
	}
	return &typed[v1.WorkloadPolicy]{
		groupKind: v1.WorkloadPolicyGroupKind,
		schema:    schema,
		defaults:  defaulting.DefaultWorkloadPolicy,
		validate:  validateWorkloadPolicy,
		// In the parameters of an override, null removes a parameter.
		nulls: true,
	}, nil
}

// validateWorkloadPolicy compiles the policy, so that one that could not be
// enforced is not stored.
func validateWorkloadPolicy(_, policy *v1.WorkloadPolicy) field.ErrorList {
	errs := validation.ValidateWorkloadPolicy(policy)
	_, err := policies.Compile(policy)
	var compileError *policies.CompileError
	switch {
	case errors.As(err, &compileError):
		return append(errs, compileError.ErrorList()...)
	case err != nil:
		return append(errs, field.InternalError(field.NewPath("spec", "rego"), err))
	default:
		return errs
	}
}
