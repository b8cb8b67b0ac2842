package webhooks

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AccessReviews gives an authorizer that asks the cluster by SubjectAccessReviews.
// That of the API server's own library would bring its server's tracing and gRPC.
func AccessReviews(reviews client.Writer) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: accessReviewOf(asked)}
		if err := reviews.Create(ctx, review); err != nil {
			return authorizer.DecisionNoOpinion, "", fmt.Errorf("failed to ask what %q may do: %w", review.Spec.User, err)
		}
		switch status := review.Status; {
		case status.Allowed:
			return authorizer.DecisionAllow, status.Reason, nil
		case status.EvaluationError != "":
			return authorizer.DecisionNoOpinion, status.Reason, errors.New(status.EvaluationError)
		case status.Denied:
			return authorizer.DecisionDeny, status.Reason, nil
		default:
			return authorizer.DecisionNoOpinion, status.Reason, nil
		}
	})
}

func accessReviewOf(asked authorizer.Attributes) authorizationv1.SubjectAccessReviewSpec {
	var spec authorizationv1.SubjectAccessReviewSpec
	if user := asked.GetUser(); user != nil {
		spec.User, spec.UID, spec.Groups = user.GetName(), user.GetUID(), user.GetGroups()
		spec.Extra = map[string]authorizationv1.ExtraValue{}
		for key, values := range user.GetExtra() {
			spec.Extra[key] = values
		}
	}
	if !asked.IsResourceRequest() {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: asked.GetPath(), Verb: asked.GetVerb()}
		return spec
	}
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Namespace: asked.GetNamespace(), Verb: asked.GetVerb(), Group: asked.GetAPIGroup(), Version: asked.GetAPIVersion(),
		Resource: asked.GetResource(), Subresource: asked.GetSubresource(), Name: asked.GetName(),
	}
	// A selector narrows what is asked for: one that cannot be read is left out, and
	// more is asked for.
	if required, err := asked.GetLabelSelector(); err == nil && len(required) > 0 {
		spec.ResourceAttributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{RawSelector: labels.NewSelector().Add(required...).String()}
	}
	if required, err := asked.GetFieldSelector(); err == nil && len(required) > 0 {
		spec.ResourceAttributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: fieldSelector(required)}
	}
	return spec
}

func fieldSelector(required fields.Requirements) string {
	texts := make([]string, len(required))
	for i, one := range required {
		operator := "="
		if one.Operator == selection.NotEquals {
			operator = "!="
		}
		texts[i] = one.Field + operator + fields.EscapeValue(one.Value)
	}
	return strings.Join(texts, ",")
}
