package cel_test

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/penstock-dev/penstock/webhooks/cel"
)

func expressions(expressions ...string) []admissionregistrationv1.MatchCondition {
	var all []admissionregistrationv1.MatchCondition
	for i, expression := range expressions {
		all = append(all, admissionregistrationv1.MatchCondition{Name: "c" + string(rune('a'+i)), Expression: expression})
	}
	return all
}

func TestHold(t *testing.T) {
	request := &admissionv1.AdmissionRequest{
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Operation: admissionv1.Create,
		UserInfo:  authenticationv1.UserInfo{Username: "jo"},
		Object:    runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":2}}}]}}`)},
	}
	joLists := authorizer.AuthorizerFunc(func(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
		if asked.GetUser().GetName() == "jo" && asked.GetVerb() == "list" && asked.GetResource() == "pods" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	const gpus = "object.spec.containers.exists(c, has(c.resources) && has(c.resources.limits) && c.resources.limits.exists(r, r.contains('/')))"
	tests := map[string]struct {
		conditions []admissionregistrationv1.MatchCondition
		userKnown  bool
		authorizer authorizer.Authorizer
		want       bool
		wantErr    string
	}{
		"all hold":                            {conditions: expressions(gpus, "request.resource.resource == 'pods'", "oldObject == null"), want: true},
		"one does not":                        {conditions: expressions(gpus, "request.operation == 'DELETE'"), want: false},
		"one cannot be told":                  {conditions: expressions("object.spec.nodeName == 'a'"), wantErr: "no such key: nodeName"},
		"one is false, another cannot be":     {conditions: expressions("object.spec.nodeName == 'a'", "false"), want: false},
		"the user is read and known":          {conditions: expressions("request.userInfo.username == 'jo'"), userKnown: true, want: true},
		"the user is read and unknown":        {conditions: expressions("request.userInfo.username == 'jo'"), wantErr: "reads the user"},
		"the user does not matter":            {conditions: expressions("request.userInfo.username == 'jo'", "false"), want: false},
		"what the user may do":                {conditions: expressions("authorizer.group('').resource('pods').check('list').allowed()"), userKnown: true, authorizer: joLists, want: true},
		"what the user may not do":            {conditions: expressions("authorizer.group('').resource('pods').check('delete').allowed()"), userKnown: true, authorizer: joLists},
		"what a user who is not known may do": {conditions: expressions("authorizer.group('').resource('pods').check('list').allowed()"), authorizer: joLists, wantErr: "what the user may do"},
		"who may do what is not known at all": {conditions: expressions("authorizer.group('').resource('pods').check('list').allowed()"), userKnown: true, wantErr: "what the user may do"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := cel.Hold(t.Context(), tc.conditions, request, cel.Requester{Known: tc.userKnown, Authorizer: tc.authorizer})
			switch {
			case tc.wantErr == "" && err != nil:
				t.Error(err)
			case tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)):
				t.Errorf("got error %v, want %q", err, tc.wantErr)
			case got != tc.want:
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestHeldBefore(t *testing.T) {
	object := func(metadata string) runtime.RawExtension {
		return runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"` + metadata + `},"spec":{}}`)}
	}
	exempt := object(`,"labels":{"exempt":"yes"}`)
	const free = "!('exempt' in object.metadata.?labels.orValue({}))"
	tests := map[string]struct {
		conditions []admissionregistrationv1.MatchCondition
		old        runtime.RawExtension
		want       bool
	}{
		"the object was not exempt":           {conditions: expressions(free), old: object(""), want: true},
		"it was":                              {conditions: expressions(free), old: exempt, want: false},
		"it was, by one of two":               {conditions: expressions("true", free), old: exempt, want: false},
		"of creations":                        {conditions: expressions("request.operation == 'CREATE'", free), old: object(""), want: true},
		"of updates":                          {conditions: expressions("request.operation == 'UPDATE'", free), old: object(""), want: true},
		"of updates, and it was exempt":       {conditions: expressions("request.operation == 'UPDATE'", free), old: exempt, want: false},
		"on the change, which there was none": {conditions: expressions("object.spec != oldObject.spec"), old: exempt, want: true},
		"a condition that fails":              {conditions: expressions("object.spec.nodeName == 'a'"), old: object(""), want: false},
		"who writes":                          {conditions: expressions("request.userInfo.username == 'jo'", free), old: exempt, want: false},
		"what nobody knows":                   {conditions: expressions("authorizer.group('').resource('pods').check('list').allowed()"), old: object(""), want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := &admissionv1.AdmissionRequest{
				Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
				Operation: admissionv1.Update, UserInfo: authenticationv1.UserInfo{Username: "jo"}, Object: object(`,"labels":{"new":"yes"}`), OldObject: tc.old,
			}
			if got := cel.HeldBefore(t.Context(), request, cel.Requester{Known: true})(tc.conditions); got != tc.want {
				t.Errorf("got %t", got)
			}
			if request.Operation != admissionv1.Update || string(request.OldObject.Raw) != string(tc.old.Raw) || string(request.Object.Raw) == string(tc.old.Raw) {
				t.Error("the request was changed")
			}
		})
	}
}
