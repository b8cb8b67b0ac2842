package policies

import (
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// Request is one request to judge: what Rego may see of an AdmissionRequest,
// with the objects already in the version that rules are written for.
type Request struct {
	// UID identifies the request; rules see it as input.review.uid.
	UID string
	// Kind, Resource and SubResource say what is being written.
	Kind        metav1.GroupVersionKind
	Resource    metav1.GroupVersionResource
	SubResource string
	// RequestKind, RequestResource and RequestSubResource are what the request was
	// made in, which the API server may have converted; nil for the same.
	RequestKind        *metav1.GroupVersionKind
	RequestResource    *metav1.GroupVersionResource
	RequestSubResource string
	// MatchKind is the kind that policies name: that of the resource, where a
	// subresource carries another, as an Eviction is written to a Pod. Kind when
	// it is zero.
	MatchKind schema.GroupKind
	// Scope says which of the matching policies are asked.
	Scope Scope
	// Reach says what Penstock is asked about at all; nil for everything. By it,
	// Namespace and Resource are those that the request is made for.
	Reach *Reach
	// Namespace is empty for cluster-scoped objects, Name for objects whose
	// name the API server has yet to generate.
	Namespace string
	Name      string
	Operation v1.PolicyOperation

	// User made the request. UserKnown is false in audit, preview and offline
	// checks that were given no user: policies that read the user are then
	// reported in Verdict.NotEvaluated.
	User      authenticationv1.UserInfo
	UserKnown bool

	// Stored says that nobody makes a request: the object is stored, and audit or
	// preview asks what would be said of it if it were written now. As a CREATE it
	// is judged by the policies that judge creations; as an UPDATE, whose OldObject
	// is the object, by those that are not asked about creations: that they judge
	// none, or that their match conditions may leave it out. An update that changes
	// nothing excuses nothing here. Rules that read the options of a request are
	// reported in Verdict.NotEvaluated. Excluded users and groups do not count: who
	// wrote the object is not known. The Observer is not told.
	Stored bool

	// NamespaceLabels returns the labels of the namespace. It is called at most
	// once, and only for a request that some policy's index entry matches. Nil
	// means that they are not known, which counts as an error for policies that
	// depend on them, unless the request is Offline.
	NamespaceLabels func() (map[string]string, error)

	// ParentLabels returns the labels of the object that a subresource belongs to. It
	// is called at most once, and only where what is written is of another kind, as an
	// Eviction or a Scale is, and the objectSelector of some policy looks at them. Nil
	// means that they are not known, which counts as an error for such policies,
	// unless the request is Offline.
	ParentLabels func() (map[string]string, error)

	// Offline says that no cluster is behind the request. What a policy needs
	// of one and was not given (labels of the namespace, inventory) is then no
	// error: the policy is reported in Verdict.NotEvaluated.
	Offline bool
	// OptionsUnknown says that the request has no options because nobody knows which
	// it would have.
	OptionsUnknown bool

	// Load, if set, gives Object and OldObject, for callers whom they cost
	// something. It is called once at the most, and only for a request that some
	// policy is asked about. An error is one of each of these policies.
	Load func() (object, oldObject []byte, err error)

	// Fields says whether objects of the kind may have a field, at the paths that
	// rules give; sure is false where the kind's schema is not known. Nil of kinds
	// of which nothing is known.
	Fields func(path string) (known, sure bool)
	// Stray asks for Violation.Stray.
	Stray bool

	// Object, OldObject and Options are JSON; empty or null when absent.
	Object    []byte
	OldObject []byte
	Options   []byte
	DryRun    bool

	// Now is the request's clock: what time.now_ns returns and what exceptions
	// expire by.
	Now time.Time
}

// matchKind is the kind that policies name.
func (r *Request) matchKind() schema.GroupKind {
	if !r.MatchKind.Empty() {
		return r.MatchKind
	}
	return schema.GroupKind{Group: r.Kind.Group, Kind: r.Kind.Kind}
}

// ofParent reports whether what is written is no object of the kind that policies
// name, and belongs to one: what a policy selects by is then its parent's.
func (r *Request) ofParent() bool {
	return r.SubResource != "" && r.matchKind() != schema.GroupKind{Group: r.Kind.Group, Kind: r.Kind.Kind}
}

// FromAdmission makes a Request of an AdmissionRequest received at now.
func FromAdmission(review *admissionv1.AdmissionRequest, now time.Time, namespaceLabels func() (map[string]string, error)) Request {
	return Request{
		UID:                string(review.UID),
		Kind:               review.Kind,
		Resource:           review.Resource,
		SubResource:        review.SubResource,
		RequestKind:        review.RequestKind,
		RequestResource:    review.RequestResource,
		RequestSubResource: review.RequestSubResource,
		Namespace:          review.Namespace,
		Name:               review.Name,
		Operation:          v1.PolicyOperation(review.Operation),
		User:               review.UserInfo,
		UserKnown:          true,
		NamespaceLabels:    namespaceLabels,
		Object:             review.Object.Raw,
		OldObject:          review.OldObject.Raw,
		Options:            review.Options.Raw,
		DryRun:             review.DryRun != nil && *review.DryRun,
		Now:                now,
	}
}
