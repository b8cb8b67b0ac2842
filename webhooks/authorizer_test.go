package webhooks_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-dev/penstock/webhooks"
)

// reviewing answers SubjectAccessReviews and keeps what was asked.
type reviewing struct {
	client.Writer
	asked  authorizationv1.SubjectAccessReviewSpec
	answer authorizationv1.SubjectAccessReviewStatus
	fails  error
}

func (r *reviewing) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	review := object.(*authorizationv1.SubjectAccessReview)
	r.asked, review.Status = review.Spec, r.answer
	return r.fails
}

func TestAccessReviews(t *testing.T) {
	jo := &user.DefaultInfo{Name: "jo", UID: "7", Groups: []string{"a"}, Extra: map[string][]string{"scopes": {"x", "y"}}}
	asJo := func(more func(*authorizationv1.SubjectAccessReviewSpec)) authorizationv1.SubjectAccessReviewSpec {
		spec := authorizationv1.SubjectAccessReviewSpec{
			User: "jo", UID: "7", Groups: []string{"a"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"x", "y"}},
		}
		more(&spec)
		return spec
	}
	label, err := labels.ParseToRequirements("a in (b, c),!d")
	if err != nil {
		t.Fatal(err)
	}
	field := fields.ParseSelectorOrDie(`spec.nodeName=a\,b,metadata.name!=c`).Requirements()
	pods := authorizer.AttributesRecord{
		User: jo, Verb: "list", Namespace: "team", APIGroup: "g", APIVersion: "v1", Resource: "pods", Subresource: "log", Name: "n", ResourceRequest: true,
		LabelSelectorRequirements: label, FieldSelectorRequirements: field,
	}
	unreadable := pods
	unreadable.LabelSelectorParsingErr, unreadable.FieldSelectorParsingErr = errors.New("no"), errors.New("no")
	withPods := func(label, field string) authorizationv1.SubjectAccessReviewSpec {
		return asJo(func(spec *authorizationv1.SubjectAccessReviewSpec) {
			spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
				Verb: "list", Namespace: "team", Group: "g", Version: "v1", Resource: "pods", Subresource: "log", Name: "n",
			}
			if label != "" {
				spec.ResourceAttributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{RawSelector: label}
				spec.ResourceAttributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: field}
			}
		})
	}
	tests := map[string]struct {
		asked   authorizer.Attributes
		answer  authorizationv1.SubjectAccessReviewStatus
		fails   error
		want    authorizationv1.SubjectAccessReviewSpec
		decides authorizer.Decision
		wantErr bool
	}{
		"allowed":                        {asked: pods, answer: authorizationv1.SubjectAccessReviewStatus{Allowed: true}, want: withPods("a in (b,c),!d", `metadata.name!=c,spec.nodeName=a\,b`), decides: authorizer.DecisionAllow},
		"denied, selectors unreadable":   {asked: unreadable, answer: authorizationv1.SubjectAccessReviewStatus{Denied: true}, want: withPods("", ""), decides: authorizer.DecisionDeny},
		"no opinion":                     {asked: unreadable, want: withPods("", ""), decides: authorizer.DecisionNoOpinion},
		"the cluster could not decide":   {asked: unreadable, answer: authorizationv1.SubjectAccessReviewStatus{EvaluationError: "no"}, want: withPods("", ""), decides: authorizer.DecisionNoOpinion, wantErr: true},
		"the cluster could not be asked": {asked: unreadable, fails: errors.New("no"), want: withPods("", ""), decides: authorizer.DecisionNoOpinion, wantErr: true},
		"something that is not an object": {
			asked: authorizer.AttributesRecord{User: jo, Verb: "get", Path: "/metrics"}, decides: authorizer.DecisionNoOpinion,
			want: asJo(func(spec *authorizationv1.SubjectAccessReviewSpec) {
				spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
			}),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reviews := &reviewing{answer: tc.answer, fails: tc.fails}
			decides, _, err := webhooks.AccessReviews(reviews).Authorize(t.Context(), tc.asked)
			if decides != tc.decides || (err != nil) != tc.wantErr {
				t.Errorf("got %v, %v", decides, err)
			}
			if diff := cmp.Diff(tc.want, reviews.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}
