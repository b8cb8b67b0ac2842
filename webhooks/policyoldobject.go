package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks/cel"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// failingCreations gives advice on match conditions that read oldObject without a
// guard where the policy is asked about creations: there it is null, and the API
// server refuses them all, or asks the policy about none.
func failingCreations(ctx context.Context, spec *v1.WorkloadPolicySpec) field.ErrorList {
	kinds := createdKinds(&spec.Match)
	var advice field.ErrorList
	for i, condition := range spec.MatchConditions {
		if !slices.Contains(validation.CELNames(condition.Expression), "oldObject") {
			continue
		}
		conditions := append(withoutObject(spec.MatchConditions, i), condition)
		for _, kind := range kinds {
			reason := failsOnCreate(ctx, conditions, kind)
			if reason == "" {
				continue
			}
			consequence := "the API server refuses the creation of every object for which it does"
			if spec.FailurePolicy == v1.FailurePolicyIgnore {
				consequence = "the API server does not ask the policy about a creation for which it does"
			}
			advice = append(advice, field.Forbidden(field.NewPath("spec", "matchConditions").Index(i).Child("expression"), fmt.Sprintf(
				"match condition %s fails on CREATE, where oldObject is null (%s), and %s: %s", condition.Name, reason, consequence, cel.GuardOldObject)))
			break
		}
	}
	return advice
}

// createdKinds are the kinds about whose creation a policy is asked. One stands for
// all where it names all.
func createdKinds(match *v1.PolicyMatch) []schema.GroupVersionKind {
	if !slices.Contains(policies.OperationsOf(match), v1.OperationCreate) {
		return nil
	}
	var found []schema.GroupVersionKind
	for _, resources := range match.Resources {
		if len(resources.Subresources) > 0 && !slices.Contains(resources.Subresources, "") {
			continue
		}
		for _, kind := range resources.Kinds {
			one := schema.GroupVersionKind{Group: resources.Group, Version: "v1", Kind: kind}
			switch versions := versionsOf(resources.Group, kind); {
			case kind == "*" || resources.Group == "*":
				one = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
			case len(versions) > 0:
				one = versions[0]
			}
			found = append(found, one)
		}
	}
	return found
}

// withoutObject are the conditions but one that say the same of all objects and
// users: what is left out by them never gets to that one.
func withoutObject(conditions []admissionregistrationv1.MatchCondition, but int) []admissionregistrationv1.MatchCondition {
	var found []admissionregistrationv1.MatchCondition
	for i, one := range conditions {
		// A member of object is none of the names; object itself is.
		reads := validation.CELNames(one.Expression)
		if i != but && !slices.ContainsFunc([]string{"object", "userInfo", "authorizer"}, func(name string) bool { return slices.Contains(reads, name) }) {
			found = append(found, one)
		}
	}
	return found
}

// leaves stand for what conditions read, whose types are not known.
var leaves = []any{"x", int64(1), int64(1000), true, []any{}, map[string]any{}}

// failsOnCreate gives the reason why the last of some conditions fails for the
// creation of an object for which it does not as an update, empty if there is none
// among those tried: the barest object of the kind, with what the condition does not
// do without.
func failsOnCreate(ctx context.Context, conditions []admissionregistrationv1.MatchCondition, kind schema.GroupVersionKind) string {
	last := conditions[len(conditions)-1]
	for _, leaf := range leaves {
		object := map[string]any{
			"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind,
			"metadata": map[string]any{"name": "name", "namespace": "namespace"},
		}
		if !fill(ctx, last, kind, object, leaf) {
			continue
		}
		_, err := cel.Hold(ctx, conditions, requestOf(kind, admissionv1.Create, object), cel.Requester{Known: true})
		if fault, ok := errors.AsType[*cel.Error](err); ok && fault.Condition == last.Name && fault.Fix == cel.GuardOldObject {
			return fault.Reason
		}
	}
	return ""
}

// maxFilled bounds how many members are added to an object for a condition.
const maxFilled = 16

// fill adds to an object what a condition needs, until it does not fail for an update
// that changes nothing. It reports whether it came to that.
func fill(ctx context.Context, condition admissionregistrationv1.MatchCondition, kind schema.GroupVersionKind, object map[string]any, leaf any) bool {
	reads := cel.Reads(condition.Expression)
	for range maxFilled {
		_, err := cel.Hold(ctx, []admissionregistrationv1.MatchCondition{condition}, requestOf(kind, admissionv1.Update, object), cel.Requester{Known: true})
		if err == nil {
			return true
		}
		fault, ok := errors.AsType[*cel.Error](err)
		if !ok {
			return false
		}
		_, key, missing := strings.Cut(fault.Reason, "no such key: ")
		if !missing || !addMember(object, reads, key, leaf) {
			return false
		}
	}
	return false
}

// addMember adds what is read by a key to an object, the first that is not there. It
// reports whether there was any.
func addMember(object map[string]any, reads []cel.Read, key string, leaf any) bool {
	for _, read := range reads {
		for _, path := range read.Paths {
			if len(path) == 0 || path[len(path)-1] != key || slices.Contains(path, cel.Any) {
				continue
			}
			parent, ok := parentOf(object, path)
			if _, there := parent[key]; !ok || there {
				continue
			}
			parent[key] = leaf
			if slices.ContainsFunc(reads, func(other cel.Read) bool { return other.Below(path) }) {
				parent[key] = map[string]any{}
			}
			return true
		}
	}
	return false
}

// parentOf is what a path leads to but for its last step.
func parentOf(object map[string]any, path []string) (map[string]any, bool) {
	for _, step := range path[:len(path)-1] {
		inside, ok := object[step].(map[string]any)
		if !ok {
			return nil, false
		}
		object = inside
	}
	return object, true
}

// requestOf is a request of somebody for an object: for a creation of it, or an
// update that does not change it.
func requestOf(kind schema.GroupVersionKind, operation admissionv1.Operation, object map[string]any) *admissionv1.AdmissionRequest {
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	request := &admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind(kind), Resource: metav1.GroupVersionResource(resource), Operation: operation,
		Name: "name", Namespace: "namespace", UserInfo: serviceAccount("somebody"),
	}
	// It is made of texts and numbers, which encode always.
	request.Object.Raw, _ = json.Marshal(object)
	if operation == admissionv1.Update {
		request.OldObject.Raw = request.Object.Raw
	}
	return request
}
