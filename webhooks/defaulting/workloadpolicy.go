package defaulting

import (
	v1 "github.com/penstock-dev/penstock/api/v1"
)

// DefaultWorkloadPolicy writes every default of a policy: the action Deny, the
// failure policy Fail, leaving upstream kinds alone, and judging what is made
// or changed.
func DefaultWorkloadPolicy(policy *v1.WorkloadPolicy) {
	spec := &policy.Spec
	if spec.Action == "" {
		spec.Action = v1.ActionDeny
	}
	if spec.FailurePolicy == "" {
		spec.FailurePolicy = v1.FailurePolicyFail
	}
	if spec.UpstreamKinds == "" {
		spec.UpstreamKinds = v1.UpstreamKindsIgnore
	}
	if len(spec.Match.Operations) == 0 {
		spec.Match.Operations = []v1.PolicyOperation{v1.OperationCreate, v1.OperationUpdate}
	}
}
