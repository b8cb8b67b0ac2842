package policies_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

func TestMatch(t *testing.T) {
	type spec = v1.WorkloadPolicySpec
	labels := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	plain := []byte(`{"kind":"TrainingJob","spec":{}}`)
	tests := map[string]struct {
		policy  func(*spec)
		request func(*policies.Request)
		want    bool
	}{
		"the kind":      {want: true},
		"another kind":  {request: func(r *policies.Request) { r.Kind.Kind = "RayCluster" }},
		"another group": {request: func(r *policies.Request) { r.Kind.Group = "kubeflow.org" }},
		"another version of the kind": {
			request: func(r *policies.Request) { r.Kind.Version = "v2" }, want: true,
		},
		"deletion, when not asked for": {request: func(r *policies.Request) { r.Operation = v1.OperationDelete }},
		"deletion, when asked for": {
			policy:  func(s *spec) { s.Match.Operations = []v1.PolicyOperation{v1.OperationDelete} },
			request: func(r *policies.Request) { r.Operation = v1.OperationDelete }, want: true,
		},
		"a subresource, when not asked for": {request: func(r *policies.Request) { r.SubResource = "scale" }},
		"a subresource, when asked for": {
			policy:  func(s *spec) { s.Match.Resources[0].Subresources = []string{"scale"} },
			request: func(r *policies.Request) { r.SubResource = "scale" }, want: true,
		},
		"the object, when only a subresource is asked for": {
			policy: func(s *spec) { s.Match.Resources[0].Subresources = []string{"scale"} },
		},
		"the object beside a subresource": {
			policy: func(s *spec) { s.Match.Resources[0].Subresources = []string{"", "scale"} }, want: true,
		},
		"any kind of a group": {
			policy:  func(s *spec) { s.Match.Resources[0].Kinds = []string{"*"} },
			request: func(r *policies.Request) { r.Kind.Kind = "RayCluster" }, want: true,
		},
		"any kind of any group": {
			policy:  func(s *spec) { s.Match.Resources[0] = v1.PolicyResources{Group: "*", Kinds: []string{"*"}} },
			request: func(r *policies.Request) { r.Kind = metav1.GroupVersionKind{Kind: "Pod"} }, want: true,
		},
		"any subresource": {
			policy:  func(s *spec) { s.Match.Resources[0].Subresources = []string{"*"} },
			request: func(r *policies.Request) { r.SubResource = "resize" }, want: true,
		},
		"any subresource is not the object": {
			policy: func(s *spec) { s.Match.Resources[0].Subresources = []string{"*"} },
		},
		"a kind named twice": {
			policy: func(s *spec) { s.Match.Resources = append(s.Match.Resources, s.Match.Resources[0]) }, want: true,
		},
		"the namespace's labels":      {policy: func(s *spec) { s.Match.NamespaceSelector = labels("tier", "research") }, want: true},
		"other labels of a namespace": {policy: func(s *spec) { s.Match.NamespaceSelector = labels("tier", "production") }},
		"no namespace, so no selector": {
			policy:  func(s *spec) { s.Match.NamespaceSelector = labels("tier", "production") },
			request: func(r *policies.Request) { r.Namespace = "" }, want: true,
		},
		"the object's labels": {policy: func(s *spec) { s.Match.ObjectSelector = labels("team", "vision") }, want: true},
		"other labels":        {policy: func(s *spec) { s.Match.ObjectSelector = labels("team", "audio") }},
		"the old object's labels, which an update takes off": {
			policy:  func(s *spec) { s.Match.ObjectSelector = labels("team", "vision") },
			request: func(r *policies.Request) { *r = updateRequest(trainingJob, plain) }, want: true,
		},
		"an excluded namespace":  {policy: func(s *spec) { s.Match.Exclude = &v1.PolicyExclude{Namespaces: []string{"team"}} }},
		"excluded by prefix":     {policy: func(s *spec) { s.Match.Exclude = &v1.PolicyExclude{Namespaces: []string{"te*"}} }},
		"not excluded by prefix": {policy: func(s *spec) { s.Match.Exclude = &v1.PolicyExclude{Namespaces: []string{"team"}} }, request: func(r *policies.Request) { r.Namespace = "team2" }, want: true},
		"an excluded user":       {policy: func(s *spec) { s.Match.Exclude = &v1.PolicyExclude{Users: []string{"jane"}} }},
		"another user":           {policy: func(s *spec) { s.Match.Exclude = &v1.PolicyExclude{Users: []string{"joe"}} }, want: true},
		"an excluded group":      {policy: func(s *spec) { s.Match.Exclude = &v1.PolicyExclude{Groups: []string{"admins"}} }},
		"an unknown user is not excluded": {
			policy:  func(s *spec) { s.Match.Exclude = &v1.PolicyExclude{Users: []string{""}, Groups: []string{"admins"}} },
			request: func(r *policies.Request) { r.UserKnown = false }, want: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := policy("p", alwaysFails)
			if tc.policy != nil {
				tc.policy(&p.Spec)
			}
			request := createRequest(trainingJob)
			request.User.Username, request.User.Groups = "jane", []string{"admins"}
			if tc.request != nil {
				tc.request(&request)
			}
			verdict := judge(t, p, request)
			if got := len(verdict.Violations) == 1; got != tc.want {
				t.Errorf("matched is %t, want %t: %+v", got, tc.want, verdict)
			}
		})
	}
}

func TestUnmatchedRequestsAreNotLookedAt(t *testing.T) {
	request := createRequest([]byte("this is not JSON"))
	request.Kind.Kind = "RayCluster"
	request.NamespaceLabels = func() (map[string]string, error) {
		t.Error("the labels of the namespace were read")
		return nil, nil
	}
	if verdict := judge(t, policy("p", alwaysFails), request); !verdict.Allowed() || len(verdict.Judged) > 0 {
		t.Errorf("got %+v", verdict)
	}
}
