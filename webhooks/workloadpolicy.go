package webhooks

import (
	"context"
	"errors"
	"slices"

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

// newWorkloadPolicies takes whether no system namespaces are named, so that a
// policy on all pods could keep the cluster from starting.
func newWorkloadPolicies(systemUnnamed bool) (*typed[v1.WorkloadPolicy], error) {
	schema, spokes, err := newSchemas(v1.WorkloadPolicyGroupKind)
	if err != nil {
		return nil, err
	}
	return &typed[v1.WorkloadPolicy]{
		groupKind: v1.WorkloadPolicyGroupKind,
		schema:    schema,
		spokes:    spokes,
		defaults:  defaulting.DefaultWorkloadPolicy,
		validate: func(ctx context.Context, _, policy *v1.WorkloadPolicy) field.ErrorList {
			errs := validateWorkloadPolicy(policy)
			if systemUnnamed {
				refused, _ := barsPods(ctx, &policy.Spec)
				errs = append(errs, refused...)
			}
			return errs
		},
		// A null among parameters is refused, and not dropped without a word.
		nulls: true,
	}, nil
}

// validateWorkloadPolicy compiles the policy, so that one that could not be
// enforced is not stored, and refuses what would not do what it says.
func validateWorkloadPolicy(policy *v1.WorkloadPolicy) field.ErrorList {
	errs := validation.ValidateWorkloadPolicy(policy)
	path := field.NewPath("spec")
	for i, resources := range policy.Spec.Match.Resources {
		for j, kind := range resources.Kinds {
			if resources.Group == v1.GroupName && kind != "*" && !slices.Contains(workloadKinds(), kind) {
				errs = append(errs, field.NotSupported(path.Child("match", "resources").Index(i).Child("kinds").Index(j), kind, workloadKinds()))
			}
		}
	}
	compiled, err := policies.Compile(policy)
	if compileError, ok := errors.AsType[*policies.CompileError](err); ok {
		return append(errs, compileError.ErrorList()...)
	}
	if err != nil {
		return append(errs, field.InternalError(path.Child("rego"), err))
	}
	faults, _ := unknownReads(&policy.Spec, compiled)
	return append(errs, faults...)
}

// adviseWorkloadPolicy gives what gives advice on a policy.
func adviseWorkloadPolicy(options *GateOptions) func(ctx context.Context, old, policy *v1.WorkloadPolicy) field.ErrorList {
	return func(ctx context.Context, _, policy *v1.WorkloadPolicy) field.ErrorList {
		spec := &policy.Spec
		var advice field.ErrorList
		if options.Kinds != nil {
			advice = options.Kinds.Advice(ctx, policy)
		}
		if len(options.SystemNamespaces) == 0 {
			_, more := barsPods(ctx, spec)
			advice = append(advice, more...)
		}
		advice = slices.Concat(advice, outOfReach(spec, options.Reach), overExceptions(spec, options.Clock()), changedTypes(spec), unknownInConditions(spec), failingCreations(ctx, spec))
		// It compiled, or it would not have been admitted.
		if compiled, err := policies.Compile(policy); err == nil {
			_, more := unknownReads(spec, compiled)
			advice = slices.Concat(advice, more, unreadParameters(compiled), unaskedOperations(spec, compiled), oddOperations(compiled), unaskedSubresources(spec),
				holdsUpNamespaces(spec, compiled), unnamedSubresources(spec, compiled), likelyTypos(spec, compiled))
		}
		return advice
	}
}

func workloadKinds() []string {
	var names []string
	for _, kind := range v1.WorkloadKinds() {
		names = append(names, kind.Kind)
	}
	return names
}
