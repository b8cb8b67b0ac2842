package webhooks

import (
	"errors"
	"fmt"
	"strings"

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
		warn:      warnOfUnjudgedKinds,
		// In the parameters of an override, null removes a parameter.
		nulls: true,
	}, nil
}

// validateWorkloadPolicy compiles the policy, so that one that could not be
// enforced is not stored, and refuses what would not do what it says.
func validateWorkloadPolicy(_, policy *v1.WorkloadPolicy) field.ErrorList {
	errs := validation.ValidateWorkloadPolicy(policy)
	path := field.NewPath("spec")
	for i, resources := range policy.Spec.Match.Resources {
		for j, kind := range resources.Kinds {
			if resources.Group == v1.GroupName && kind != "*" && kind != v1.TrainingJobKind {
				errs = append(errs, field.NotSupported(path.Child("match", "resources").Index(i).Child("kinds").Index(j), kind, []string{v1.TrainingJobKind}))
			}
		}
	}
	_, err := policies.Compile(policy)
	if compileError, ok := errors.AsType[*policies.CompileError](err); ok {
		return append(errs, compileError.ErrorList()...)
	}
	if err != nil {
		errs = append(errs, field.InternalError(path.Child("rego"), err))
	}
	return errs
}

// warnOfUnjudgedKinds says which kinds a policy names in vain.
func warnOfUnjudgedKinds(policy *v1.WorkloadPolicy) []fault {
	var found []fault
	for i, resources := range policy.Spec.Match.Resources {
		if resources.Group != v1.GroupName && resources.Group != "*" {
			found = append(found, fault{
				field:   field.NewPath("spec", "match", "resources").Index(i).String(),
				message: fmt.Sprintf("only kinds of %s are judged in the cluster yet: the policy is not asked about %s", v1.GroupName, strings.Join(resources.Kinds, ", ")),
			})
		}
	}
	return found
}
