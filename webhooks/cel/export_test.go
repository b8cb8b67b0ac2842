package cel

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// HoldAsSent evaluates conditions on a request as it is, as an API server does.
func HoldAsSent(ctx context.Context, conditions []admissionregistrationv1.MatchCondition, request *admissionv1.AdmissionRequest) (bool, error) {
	attributes, err := attributesOf(request)
	if err != nil {
		return false, err
	}
	result := matcherOf(conditions).Match(ctx, attributes, nil, nobodyKnows)
	return result.Matches, result.Error
}
