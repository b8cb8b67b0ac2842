package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks/cel"
	"github.com/penstock-dev/penstock/webhooks/fields"
)

// The kinds that hold pod templates and the upstream kinds are looked at without
// further ado; an administrator may grant more, see docs/operations.md.
//
// +kubebuilder:rbac:groups=apps,resources=daemonsets;deployments;replicasets;statefulsets,verbs=list;watch
// +kubebuilder:rbac:groups=batch,resources=cronjobs;jobs,verbs=list;watch
// +kubebuilder:rbac:groups=kubeflow.org,resources=jaxjobs;mpijobs;paddlejobs;pytorchjobs;tfjobs;xgboostjobs,verbs=list;watch
// +kubebuilder:rbac:groups=ray.io,resources=rayclusters,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes;podtemplates;replicationcontrollers,verbs=list;watch

// AggregationLabel marks the ClusterRoles that grant Penstock list and watch on
// further kinds.
const AggregationLabel = v1.ManagerRoleLabel + "=true"

// Stored judges stored objects as if they were written now: what preview and
// audit do. It may be used by several goroutines.
type Stored struct {
	// Reach is what policies are asked about.
	Reach *policies.Reach
	// Labels gives the labels of a namespace.
	Labels func(ctx context.Context, namespace string) (map[string]string, error)
	// Normal gives an object of Penstock's kinds and of upstream kinds as
	// policies see it in a request.
	Normal func(written schema.GroupVersionKind, raw []byte) ([]byte, error)
	Clock  func() time.Time
}

// A judgement is what a snapshot says of one stored object.
type judgement struct {
	policies.Verdict
	// at gives the path, in the object as it is stored, of a path that a rule
	// gave.
	at func(string) string
}

// judge judges a stored object. An upstream object is judged twice: as what it
// is, and as the object of ours that has its shape. Objects that no request is
// judged of (those being deleted, and what the API server does not ask about)
// have no judgement. An object is read only if some policy is asked about it. Where
// only is not nil, no others are asked than the policies that it names.
func (s *Stored) judge(ctx context.Context, snapshot *policies.Snapshot, only map[string]bool, resource schema.GroupVersionResource, object *unstructured.Unstructured) []judgement {
	written := object.GroupVersionKind()
	own := written.Group == v1.GroupName
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	found := s.asWritten(ctx, snapshot, only, written, resource, object, own)
	if upstream, ok := conversion.Upstream(written); ok {
		found = append(found, s.asWritten(ctx, snapshot, only, v1.GroupVersion.WithKind(upstream.Kind), resource, object, true)...)
	}
	return found
}

// asWritten judges an object as what it would be if it were written now: a
// creation, and, for the policies that are not asked about that, an update that
// changes nothing.
func (s *Stored) asWritten(ctx context.Context, snapshot *policies.Snapshot, only map[string]bool, kind schema.GroupVersionKind, resource schema.GroupVersionResource,
	object *unstructured.Unstructured, normal bool,
) []judgement {
	created := s.ask(ctx, snapshot, policies.Scope{Only: only}, v1.OperationCreate, kind, resource, object, normal)
	updated := s.ask(ctx, snapshot, policies.Scope{Only: only, Except: created.asked()}, v1.OperationUpdate, kind, resource, object, normal)
	return []judgement{created, updated}
}

// asked are the policies that were.
func (j *judgement) asked() map[string]bool {
	names := map[string]bool{}
	for _, name := range j.Judged {
		names[name] = true
	}
	for _, one := range j.Errors {
		names[one.Policy] = true
	}
	for _, one := range j.NotEvaluated {
		names[one.Policy] = true
	}
	return names
}

// ask judges an object as one of a kind; normal says whether policies see it in
// v1, with every default.
func (s *Stored) ask(ctx context.Context, snapshot *policies.Snapshot, scope policies.Scope, operation v1.PolicyOperation, kind schema.GroupVersionKind,
	resource schema.GroupVersionResource, object *unstructured.Unstructured, normal bool,
) judgement {
	written, namespace := object.GroupVersionKind(), namespaceOf(object)
	labels := func() (map[string]string, error) { return s.Labels(ctx, namespace) }
	if namespace != object.GetNamespace() {
		labels = func() (map[string]string, error) { return object.GetLabels(), nil }
	}
	request := &admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind(written), Resource: metav1.GroupVersionResource(resource), Namespace: namespace, Name: object.GetName(),
		Operation: admissionv1.Operation(operation),
	}
	read := sync.OnceValues(func() ([]byte, error) {
		raw, err := json.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("failed to write the %s: %w", written.Kind, err)
		}
		return raw, nil
	})
	var seen []byte
	judged := policies.FromAdmission(request, s.Clock(), labels)
	judged.Kind = metav1.GroupVersionKind(kind)
	judged.Stored, judged.UserKnown, judged.Stray = true, false, true
	judged.Fields = fields.Of(kind)
	judged.Load = func() (_, old []byte, err error) {
		if seen, err = read(); err == nil && normal {
			if seen, err = s.Normal(written, seen); err != nil {
				err = fmt.Errorf("failed to read the %s: %w", written.Kind, err)
			}
		}
		if operation == v1.OperationUpdate {
			old = seen
		}
		return seen, old, err
	}
	judged.Scope, judged.Reach = scope, s.Reach
	judged.Scope.Upstream = kind != written
	judged.Scope.Holds = once(func(conditions []admissionregistrationv1.MatchCondition) (bool, error) {
		raw, err := read()
		if err != nil {
			return false, err
		}
		request.Object.Raw = raw
		if operation == v1.OperationUpdate {
			request.OldObject.Raw = raw
		}
		holds, err := cel.Hold(ctx, conditions, request, cel.Requester{})
		if err != nil && operation == v1.OperationCreate && slices.ContainsFunc(conditions, readsOldObject) {
			// The fault may be that of a creation alone, which has no old object. As an
			// update it is seen whether there is one.
			return false, nil
		}
		return holds, err
	})
	found := judgement{Verdict: snapshot.Judge(ctx, judged), at: func(path string) string { return path }}
	if kind != written {
		found.at = conversion.FieldPaths(written, seen)
	}
	return found
}

func readsOldObject(condition admissionregistrationv1.MatchCondition) bool {
	return strings.Contains(condition.Expression, "oldObject")
}

// namespaceOf is the namespace of requests for an object: that of a Namespace is
// itself.
func namespaceOf(object *unstructured.Unstructured) string {
	if kind := object.GroupVersionKind(); kind.Group == "" && kind.Kind == "Namespace" {
		return object.GetName()
	}
	return object.GetNamespace()
}

// once evaluates equal match conditions once: many policies have the same.
func once(evaluate func([]admissionregistrationv1.MatchCondition) (bool, error)) func([]admissionregistrationv1.MatchCondition) (bool, error) {
	type answer struct {
		conditions []admissionregistrationv1.MatchCondition
		holds      bool
		err        error
	}
	var answers []answer
	return func(conditions []admissionregistrationv1.MatchCondition) (bool, error) {
		for _, one := range answers {
			if slices.Equal(one.conditions, conditions) {
				return one.holds, one.err
			}
		}
		holds, err := evaluate(conditions)
		answers = append(answers, answer{conditions, holds, err})
		return holds, err
	}
}

// A storedKind is a kind whose stored objects a policy judges.
type storedKind struct {
	kind       schema.GroupVersionKind
	resource   schema.GroupVersionResource
	namespaced bool
}

// unseenKind is a kind whose stored objects are not looked at, and why.
type unseenKind struct {
	kind   string
	reason string
}

// storedKinds lists the kinds whose stored objects a policy judges, in the
// version that it judges them in, and those that are not looked at. Wildcards
// are among the latter: to list, and to keep watching, every kind of a cluster
// would cost more than it tells. It is an error if it cannot be told which kinds
// are served.
func storedKinds(spec *v1.WorkloadPolicySpec, mapper KindMapper) ([]storedKind, []unseenKind, error) {
	var found []storedKind
	var unseen []unseenKind
	add := func(kind schema.GroupKind, versions ...string) error {
		mapping, err := mapper.RESTMapping(kind, versions...)
		switch {
		case meta.IsNoMatchError(err):
			// There are no objects of a kind that is not served.
			return nil
		case err != nil:
			return fmt.Errorf("failed to find the resource of %s: %w", kind, err)
		}
		one := storedKind{mapping.GroupVersionKind, mapping.Resource, mapping.Scope != meta.RESTScopeRoot}
		if policies.Exempt(mapping.Resource.GroupResource()) == "" && !slices.Contains(found, one) {
			found = append(found, one)
		}
		return nil
	}
	for _, kind := range judgedKinds(spec.Match.Resources) {
		if kind.Group == wildcard || kind.Kind == wildcard {
			unseen = append(unseen, unseenKind{kind.String(), "only kinds that are named are looked at"})
			continue
		}
		var versions []string
		if kind.Group == v1.GroupName {
			versions = []string{v1.GroupVersion.Version}
		}
		if err := add(kind, versions...); err != nil {
			return nil, nil, err
		}
	}
	if spec.UpstreamKinds != v1.UpstreamKindsJudge {
		return found, unseen, nil
	}
	for _, kind := range upstreamOf(spec.Match.Resources) {
		if err := add(kind.GroupKind(), kind.Version); err != nil {
			return nil, nil, err
		}
	}
	return found, unseen, nil
}

// judgedKinds lists the kinds, wildcards included, of which a policy judges the
// objects themselves and not only subresources.
func judgedKinds(matched []v1.PolicyResources) []schema.GroupKind {
	var found []schema.GroupKind
	for _, resources := range matched {
		if len(resources.Subresources) > 0 && !slices.Contains(resources.Subresources, "") {
			continue
		}
		for _, kind := range resources.Kinds {
			// Of Penstock's own kinds it is known which there are.
			if resources.Group == v1.GroupName && kind == wildcard {
				found = append(found, v1.WorkloadKinds()...)
				continue
			}
			found = append(found, schema.GroupKind{Group: resources.Group, Kind: kind})
		}
	}
	return found
}

// judgesStored reports whether a policy judges what is stored at all, and not
// only deletions or connections.
func judgesStored(spec *v1.WorkloadPolicySpec) bool {
	operations := policies.OperationsOf(&spec.Match)
	return slices.Contains(operations, v1.OperationCreate) || slices.Contains(operations, v1.OperationUpdate)
}
