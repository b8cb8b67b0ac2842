package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks/cel"
	"github.com/penstock-dev/penstock/webhooks/fields"
)

// Cluster is what a Gate has to ask the cluster.
type Cluster interface {
	// NamespaceLabels gives the labels of a namespace.
	NamespaceLabels(ctx context.Context, name string) (map[string]string, error)
	// KindOf gives the kind of a resource.
	KindOf(ctx context.Context, resource schema.GroupVersionResource) (schema.GroupVersionKind, error)
	// Object gives the JSON of a stored object.
	Object(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) ([]byte, error)
	// Labels gives the labels of a stored object.
	Labels(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (map[string]string, error)
}

// A Gate defaults and judges requests for Penstock's own kinds. It may be used
// by several goroutines.
type Gate struct {
	GateOptions
	kinds map[schema.GroupKind]kind
}

// Authors is whom a Gate asks about those who write policies.
type Authors interface {
	// Faults gives a fault for each kind that a policy matches or reads and its
	// author may not list. old is nil where the policy is new.
	Faults(ctx context.Context, author authenticationv1.UserInfo, old, policy *v1.WorkloadPolicy) (field.ErrorList, error)
}

// Preview tells the author of a policy what it would mean for stored objects.
type Preview interface {
	// Warnings gives the lines to show; old is nil where the policy is new.
	Warnings(ctx context.Context, author authenticationv1.UserInfo, old, policy *v1.WorkloadPolicy) []string
}

// Kinds knows which kinds are served.
type Kinds interface {
	// Advice gives what the author of a policy should know of the kinds that it
	// names.
	Advice(ctx context.Context, policy *v1.WorkloadPolicy) field.ErrorList
}

// GateOptions are what a Gate decides by. All are required, but for Authors,
// Kinds, Preview, Authorizer, Decisions, Offline and Reach.
type GateOptions struct {
	Engine  *policies.Engine
	Cluster Cluster
	Clock   func() time.Time
	// Loaded reports whether all policies were loaded; until then nothing is
	// judged, because a part of them would let through what the rest refuses.
	Loaded func() bool
	// Authors may be nil where there is no cluster, which would know what the
	// author of a policy may do.
	Authors Authors
	// Kinds may be nil where it is not known which are served.
	Kinds Kinds
	// Preview may be nil where there are no stored objects.
	Preview Preview
	// Authorizer knows what users may do, which match conditions may ask; nil where
	// there is no cluster.
	Authorizer authorizer.Authorizer
	// Decisions is told of every decision; nil for nobody.
	Decisions *DecisionLog
	// Offline says that there is no cluster: requests without a user come from
	// one who is not known, and an error of Cluster means that it was not told.
	// Policies that need either are not evaluated instead of failing.
	Offline bool
	// SystemNamespaces are those that the operator has named as never to be
	// behind Penstock.
	SystemNamespaces []string
	// Reach is what the API server asks about; nil for everything.
	Reach *policies.Reach
}

// A kind is how the requests for one kind are defaulted and judged. Objects
// are v1 JSON.
type kind interface {
	// patch gives what defaults change, nothing where the object cannot be
	// decoded; or the faults, in v1 paths, that are to be told before the API
	// server tells them.
	patch(request *admissionv1.AdmissionRequest) (patch, []fault, error)
	// faults gives what would make the object meaningless, in v1 paths.
	faults(ctx context.Context, request *admissionv1.AdmissionRequest) ([]fault, error)
	// transitions gives those of an update's faults that its object does not have by
	// itself, in v1 paths. Those of an upstream object are not among its faults: no
	// cluster holds it to them.
	transitions(ctx context.Context, request *admissionv1.AdmissionRequest) ([]fault, error)
	// warnings gives what its author should know of an object that is admitted,
	// in v1 paths.
	warnings(ctx context.Context, request *admissionv1.AdmissionRequest) []fault
	// complete gives an object with every default.
	complete(raw []byte) ([]byte, error)
	// judged reports whether policies judge the kind.
	judged() bool
}

// A fault is one thing that is wrong with an object, in v1 paths.
type fault struct {
	field   string
	message string
	reason  metav1.CauseType
	// yields says that it need not be said where a policy says it of the field.
	yields bool
}

// NewGate makes a gate for all of Penstock's kinds. It is an error if the
// generated CustomResourceDefinitions cannot be read.
func NewGate(options GateOptions) (*Gate, error) {
	rayClusters, err := newRayClusters()
	if err != nil {
		return nil, err
	}
	trainingJobs, err := newTrainingJobs()
	if err != nil {
		return nil, err
	}
	systemUnnamed := len(options.SystemNamespaces) == 0
	workloadPolicies, err := newWorkloadPolicies(systemUnnamed)
	if err != nil {
		return nil, err
	}
	if options.Authors != nil {
		workloadPolicies.permit = options.Authors.Faults
	}
	workloadPolicies.advise = adviseWorkloadPolicy(&options)
	if options.Preview != nil {
		workloadPolicies.warn = options.Preview.Warnings
	}
	return &Gate{
		GateOptions: options,
		kinds: map[schema.GroupKind]kind{
			rayClusters.groupKind:      rayClusters,
			trainingJobs.groupKind:     trainingJobs,
			workloadPolicies.groupKind: workloadPolicies,
		},
	}, nil
}

// Default answers a request by the defaults that its object lacks.
func (g *Gate) Default(_ context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	kind, ok := g.kinds[groupKind(request)]
	if !ok {
		return unknownKind(request)
	}
	if request.Operation == admissionv1.Delete {
		return allowed(request)
	}
	if err := incomplete(request); err != nil {
		return badRequest(request, err)
	}
	operations, faults, err := kind.patch(request)
	switch {
	case err != nil:
		return broken(request, err)
	case len(faults) > 0:
		return decide(request, faults).Response
	case len(operations) == 0:
		return allowed(request)
	default:
		return patched(request, operations)
	}
}

// Validate answers a request by the invariants of its kind and the policies in
// force. A refusal is 422 Invalid with one cause for each fault, in the paths
// of the kind and version that the request was made in.
func (g *Gate) Validate(ctx context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return g.logged(request, func() Decision { return g.Decide(ctx, request) })
}

// logged gives the response of a decision, and has it logged.
func (g *Gate) logged(request *admissionv1.AdmissionRequest, decide func() Decision) *admissionv1.AdmissionResponse {
	if g.Decisions == nil {
		return decide().Response
	}
	start := time.Now()
	decision := decide()
	g.Decisions.Log(request, decision, time.Since(start))
	return decision.Response
}

// Decide is Validate for callers that want to know more than a response says.
func (g *Gate) Decide(ctx context.Context, request *admissionv1.AdmissionRequest) Decision {
	request = named(request)
	if err := incomplete(request); err != nil {
		return Decision{Response: badRequest(request, err)}
	}
	request, err := g.onParent(ctx, request)
	switch {
	case errors.Is(err, errNotElastic):
		return decide(request, []fault{{field: "spec.elastic", message: err.Error(), reason: metav1.CauseTypeFieldValueRequired}})
	case err != nil:
		return Decision{Response: broken(request, err)}
	}
	kind, ok := g.kinds[groupKind(request)]
	if !ok {
		return Decision{Response: unknownKind(request)}
	}
	if cannotMatter(request) {
		return Decision{Response: allowed(request)}
	}
	var faults []fault
	if request.Operation != admissionv1.Delete {
		if faults, err = kind.faults(ctx, request); err != nil {
			return Decision{Response: broken(request, err)}
		}
	}
	var judgements []judgement
	if kind.judged() {
		if !g.Loaded() {
			return g.notLoaded(request)
		}
		judgements = append(judgements, judgement{g.judge(ctx, g.Engine.Snapshot(), request, groupKind(request), g.ownScope(ctx, request)), writtenPaths(request)})
	}
	decision := decide(request, faults, judgements...)
	if request.Operation != admissionv1.Delete && decision.Response.Allowed {
		decision.warn(request, kind.warnings(ctx, request))
	}
	return decision
}

// incomplete is the fault of a request that lacks an object it must have.
func incomplete(request *admissionv1.AdmissionRequest) error {
	if request.Operation != admissionv1.Delete && isAbsent(request.Object.Raw) {
		return fmt.Errorf("the request to %s has no object", request.Operation)
	}
	// The old object of a scale is read with its parent.
	if request.Operation != admissionv1.Create && request.SubResource != scaleSubresource && isAbsent(request.OldObject.Raw) {
		return fmt.Errorf("the request to %s has no oldObject", request.Operation)
	}
	return nil
}

func isAbsent(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// ownScope asks the policies without match conditions: those with conditions
// are asked by entries of their own, once the API server found that they hold.
// Those have no deletions: these are to work while Penstock is down, whatever the
// failure policy of an entry, and are asked about by a webhook that is ignored then.
// Offline there is no API server, and nobody else to ask them.
func (g *Gate) ownScope(ctx context.Context, request *admissionv1.AdmissionRequest) policies.Scope {
	if g.Offline || request.Operation == admissionv1.Delete {
		return g.scope(ctx, request, "")
	}
	return policies.Scope{}
}

// judge asks the policies of a snapshot that name a kind. A request is judged by
// one snapshot, however often it is.
func (g *Gate) judge(ctx context.Context, snapshot *policies.Snapshot, request *admissionv1.AdmissionRequest, kind schema.GroupKind, scope policies.Scope) policies.Verdict {
	return snapshot.Judge(ctx, g.policyRequest(ctx, request, kind, scope))
}

// policyRequest is a request as the engine takes it.
func (g *Gate) policyRequest(ctx context.Context, request *admissionv1.AdmissionRequest, kind schema.GroupKind, scope policies.Scope) policies.Request {
	judged := policies.FromAdmission(request, g.Clock(), func() (map[string]string, error) {
		if request.Namespace == "" {
			return nil, nil
		}
		if isNamespace(request) && request.SubResource == "" && request.Operation != admissionv1.Delete {
			// Its labels are those that are being written, as for the API server.
			var written metav1.PartialObjectMetadata
			err := json.Unmarshal(request.Object.Raw, &written)
			return written.Labels, err
		}
		labels, err := g.Cluster.NamespaceLabels(ctx, request.Namespace)
		if err != nil {
			return nil, fmt.Errorf("failed to read namespace %s: %w", request.Namespace, err)
		}
		return labels, nil
	})
	judged.MatchKind, judged.Scope, judged.Reach = kind, scope, g.Reach
	judged.Offline, judged.OptionsUnknown, judged.Stray = g.Offline, g.Offline, g.Offline
	judged.Fields = fields.Of(schema.GroupVersionKind(request.Kind))
	judged.UserKnown = g.userKnown(request)
	if request.SubResource != "" && !g.Offline {
		judged.ParentLabels = func() (map[string]string, error) { return g.parentLabels(ctx, request) }
	}
	return judged
}

func (g *Gate) userKnown(request *admissionv1.AdmissionRequest) bool {
	return !g.Offline || request.UserInfo.Username != ""
}

func (g *Gate) requester(request *admissionv1.AdmissionRequest) cel.Requester {
	return cel.Requester{Known: g.userKnown(request), Authorizer: g.Authorizer}
}

// isNamespace reports whether the request is for a Namespace, which is then the
// request's namespace as well.
func isNamespace(request *admissionv1.AdmissionRequest) bool {
	return request.Resource.Group == "" && request.Resource.Resource == "namespaces"
}

func groupKind(request *admissionv1.AdmissionRequest) schema.GroupKind {
	return schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}
}
