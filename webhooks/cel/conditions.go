// Package cel evaluates the match conditions of policies where no API server
// does, by the code of the API server, so that offline checks, previews and the
// audit say what the cluster would say. It also knows what conditions read. It is
// pure.
package cel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/admission"
	apiservercel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/penstock-dev/penstock/webhooks/validation"
)

// maxCompiled bounds how many compiled match conditions are kept.
const maxCompiled = 256

// compiledConditions are match conditions by their JSON. Compiling takes a
// thousand times as long as evaluating.
var compiledConditions = struct {
	sync.Mutex
	matchers map[string]matchconditions.Matcher
}{matchers: map[string]matchconditions.Matcher{}}

// Requester is what is known of who makes a request; nothing by default.
type Requester struct {
	// Known tells that the request names its user.
	Known bool
	// Authorizer knows what users may do; nil where nobody does.
	Authorizer authorizer.Authorizer
}

// Hold says whether all conditions hold for a request, as the API
// server does: a condition that is false settles it, whatever errors others
// give. It is an error if that depends on what is not known, and an Error if
// one fails. On a deletion
// they see the old object as the object, as Sent has it in the API server.
func Hold(ctx context.Context, conditions []admissionregistrationv1.MatchCondition, request *admissionv1.AdmissionRequest, requester Requester) (bool, error) {
	if request.Operation == admissionv1.Delete {
		deleted := *request
		deleted.Object = request.OldObject
		request = &deleted
	}
	attributes, err := attributesOf(request)
	if err != nil {
		return false, err
	}
	known, unknown := knowable(conditions, requester)
	authorizer := requester.Authorizer
	if authorizer == nil {
		authorizer = nobodyKnows
	}
	result := matcherOf(known).Match(ctx, attributes, nil, authorizer)
	switch {
	case result.Error != nil && unknown != nil:
		return false, unknown // It may be false, and that would settle it.
	case result.Error != nil:
		return false, failedCondition(ctx, known, attributes, authorizer, result.Error)
	case !result.Matches:
		return false, nil
	default:
		return unknown == nil, unknown
	}
}

// HeldBefore gives what says whether conditions hold for the object before an
// update, as if it were created now or updated without a change. They do where that
// cannot be told: of conditions that need what is not known, and of those on
// the change. For an object that one fails for no policy was ever asked.
func HeldBefore(ctx context.Context, request *admissionv1.AdmissionRequest, requester Requester) func([]admissionregistrationv1.MatchCondition) bool {
	stored := *request
	stored.Object = request.OldObject
	return func(conditions []admissionregistrationv1.MatchCondition) bool {
		onChange := func(one admissionregistrationv1.MatchCondition) bool {
			return slices.Contains(validation.CELNames(one.Expression), "oldObject")
		}
		if slices.ContainsFunc(conditions, onChange) {
			return true
		}
		for _, operation := range []admissionv1.Operation{admissionv1.Update, admissionv1.Create} {
			asked := stored
			if asked.Operation = operation; operation == admissionv1.Create {
				asked.OldObject = runtime.RawExtension{}
			}
			holds, err := Hold(ctx, conditions, &asked, requester)
			if _, fails := errors.AsType[*Error](err); holds || err != nil && !fails {
				return true
			}
		}
		return false
	}
}

// knowable parts the conditions that can be evaluated from those that cannot.
func knowable(conditions []admissionregistrationv1.MatchCondition, requester Requester) (known []admissionregistrationv1.MatchCondition, unknown error) {
	for _, condition := range conditions {
		switch {
		case !requester.Known && slices.Contains(validation.CELNames(condition.Expression), "userInfo"):
			unknown = fmt.Errorf("match condition %s reads the user, who is not known", condition.Name)
		case (!requester.Known || requester.Authorizer == nil) && strings.Contains(condition.Expression, "authorizer"):
			unknown = fmt.Errorf("match condition %s asks what the user may do, which only the API server knows", condition.Name)
		default:
			known = append(known, condition)
		}
	}
	return known, unknown
}

// matcherOf compiles conditions that were not compiled lately.
func matcherOf(conditions []admissionregistrationv1.MatchCondition) matchconditions.Matcher {
	// Conditions are made of strings, which encode always.
	key, _ := json.Marshal(conditions)
	compiledConditions.Lock()
	defer compiledConditions.Unlock()
	if found, ok := compiledConditions.matchers[string(key)]; ok {
		return found
	}
	if len(compiledConditions.matchers) >= maxCompiled {
		clear(compiledConditions.matchers)
	}
	accessors := make([]apiservercel.ExpressionAccessor, len(conditions))
	for i := range conditions {
		accessors[i] = (*matchconditions.MatchCondition)(&conditions[i])
	}
	evaluator := apiservercel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())).
		CompileCondition(accessors, apiservercel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	matcher := matchconditions.NewMatcher(evaluator, new(admissionregistrationv1.Fail), "policy", "validating", "")
	compiledConditions.matchers[string(key)] = matcher
	return matcher
}

// nobodyKnows who may do what. It is required, and not asked: conditions that
// would are not evaluated.
var nobodyKnows = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", errors.New("who may do what is not known")
})

func attributesOf(request *admissionv1.AdmissionRequest) (*admission.VersionedAttributes, error) {
	object, err := unstructuredOf(request.Object.Raw)
	if err != nil {
		return nil, err
	}
	oldObject, err := unstructuredOf(request.OldObject.Raw)
	if err != nil {
		return nil, err
	}
	kind := schema.GroupVersionKind(request.Kind)
	author := &user.DefaultInfo{Name: request.UserInfo.Username, UID: request.UserInfo.UID, Groups: request.UserInfo.Groups, Extra: map[string][]string{}}
	for key, values := range request.UserInfo.Extra {
		author.Extra[key] = values
	}
	return &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(object, oldObject, kind, request.Namespace, request.Name,
			schema.GroupVersionResource(request.Resource), request.SubResource, admission.Operation(request.Operation),
			nil, request.DryRun != nil && *request.DryRun, author),
		VersionedObject:    admission.NewLazyObject(object),
		VersionedOldObject: admission.NewLazyObject(oldObject),
		VersionedKind:      kind,
	}, nil
}

// unstructuredOf gives an object, a nil interface where there is none.
func unstructuredOf(raw []byte) (runtime.Object, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}
