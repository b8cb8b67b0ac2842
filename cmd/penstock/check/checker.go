// Package check says offline what the cluster would say to a manifest: it takes
// an object through the steps of the flow that the API server and Penstock
// take it through, with the same converter, defaulter, schemas, invariants and
// policies, and so in the same words.
//
//   - read.go reads files into objects;
//   - checker.go holds what is known of the cluster, and its kinds;
//   - admission.go is the way of one object;
//   - foreign.go is the way of an object that only policies judge;
//   - stored.go makes an update of an object whose stored state is given;
//   - policies.go reads policies and namespaces, inventory.go what else the
//     cluster has; kinds.go knows which kinds policies may name;
//   - report.go says what was found, text.go, sarif.go and junit.go write it,
//     and explain.go says how it was found;
//   - lines.go finds where in a file a field is written.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/cmd/penstock/render"
	"github.com/penstock-dev/penstock/config/crd"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/controller"
	"github.com/penstock-dev/penstock/webhooks"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// policyDeadline is long: a machine of CI that is busy must not change a
// verdict, and nobody waits for an answer as the API server does.
const policyDeadline = 30 * time.Second

// Options are what a Checker knows of the cluster.
type Options struct {
	// Policies are in force.
	Policies []*penstockv1.WorkloadPolicy
	// Namespaces gives the labels of the namespaces that are known.
	Namespaces map[string]map[string]string
	// Inventory are objects of the cluster, for policies that read them; nil
	// when none was given.
	Inventory []Object
	// Namespace is where objects are that name none.
	Namespace string
	// SystemNamespaces are what the manager's flag of that name says.
	SystemNamespaces []string
	// User makes the requests; without a username nobody knows who does.
	User authenticationv1.UserInfo
	// Render gives the children of a v1 object that is admitted; nil for none.
	Render func(hub []byte) ([]render.Child, error)
	// Now is the time that policies and exceptions go by.
	Now time.Time
	// Explain has faults carry an Explanation, in which Sources tells where
	// policies are written, by name.
	Explain bool
	Sources map[string]Source
}

// A Checker judges objects one by one. It is for one goroutine.
type Checker struct {
	options Options
	kinds   map[schema.GroupKind]*definition
	// own judges our kinds, and others by policies alone. upstream knows no
	// policies: it holds the kinds whose shape ours take to our invariants.
	own, upstream *webhooks.Gate
	stored        map[identity]*stored
	// unknown are the kinds, by the names of policies, that the policy reads and
	// the inventory does not hold.
	unknown map[string][]schema.GroupVersionKind
}

// A definition is what the API server knows of one of our kinds.
type definition struct {
	resource   string
	namespaced bool
	schemas    map[string]*validation.Schema
}

// New makes a Checker. It is an error if a policy does not compile, or an
// object of the inventory cannot be one.
func New(options Options) (*Checker, error) {
	definitions, err := definitions()
	if err != nil {
		return nil, err
	}
	checker := &Checker{options: options, kinds: definitions, stored: map[identity]*stored{}}
	engine, err := newEngine(options, options.Policies)
	if err != nil {
		return nil, err
	}
	checker.own, err = webhooks.NewGate(webhooks.GateOptions{
		Engine:  engine,
		Cluster: namespaces(options.namespaces()),
		Clock:   func() time.Time { return options.Now },
		Loaded:  func() bool { return true },
		Kinds:   knownKinds{},
		Offline: true, SystemNamespaces: options.SystemNamespaces, Reach: options.reach(),
	})
	if err != nil {
		return nil, fmt.Errorf("failed to make the gate: %w", err)
	}
	upstream := *checker.own
	if upstream.Engine, err = newEngine(options, nil); err != nil {
		return nil, err
	}
	checker.upstream = &upstream
	if err := checker.takeInventory(); err != nil {
		return nil, err
	}
	return checker, nil
}

// penstockNamespace is where the manifests put Penstock.
const penstockNamespace = "penstock-system"

// reach is what the cluster asks about.
func (o Options) reach() *policies.Reach {
	return controller.RulesOptions{Namespace: penstockNamespace, SystemNamespaces: o.SystemNamespaces}.Reach()
}

// Reach is what the cluster asks about.
func (c *Checker) Reach() *policies.Reach { return c.options.reach() }

// unasked says why Penstock is never asked about an object, whatever policies
// say; nothing if it may be.
func (c *Checker) unasked(kind schema.GroupVersionKind, namespace, name string) string {
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	if kind.GroupKind() == namespaceKind {
		namespace = name
	}
	switch reason := c.Reach().Bars(policies.EntryFail, resource.GroupResource(), namespace); reason {
	case "":
		return ""
	case policies.ReasonSystemNamespace:
		return fmt.Sprintf("no policy is ever asked about namespace %s, as %s", namespace, reason)
	default:
		return fmt.Sprintf("no policy is ever asked about %s, as %s", resource.Resource, reason)
	}
}

// definitions are those of all of our kinds, which do not change.
var definitions = sync.OnceValues(func() (map[schema.GroupKind]*definition, error) {
	manifests, err := crd.All()
	if err != nil {
		return nil, err
	}
	made := map[schema.GroupKind]*definition{}
	for _, from := range manifests {
		kind := schema.GroupKind{Group: from.Spec.Group, Kind: from.Spec.Names.Kind}
		schemas, err := validation.Schemas(kind)
		if err != nil {
			return nil, err
		}
		made[kind] = &definition{resource: from.Spec.Names.Plural, namespaced: from.Spec.Scope == apiextensionsv1.NamespaceScoped, schemas: schemas}
	}
	return made, nil
})

func newEngine(options Options, inForce []*penstockv1.WorkloadPolicy) (*policies.Engine, error) {
	engine := policies.NewEngine(policies.Options{Deadline: policyDeadline, Explain: options.Explain})
	var errs []error
	for _, err := range engine.Replace(inForce) {
		errs = append(errs, err)
	}
	return engine, errors.Join(errs...)
}

// A subject is how an object is judged.
type subject struct {
	*definition
	// written is the kind and version that the author wrote, own the one of
	// ours that has its shape.
	written, own schema.GroupVersionKind
	gate         *webhooks.Gate
}

func (s *subject) isUpstream() bool { return s.written != s.own }

// schema is that of the version the request is made in. The schemas of
// upstream kinds are not ours; v1alpha1's has their shape.
func (s *subject) schema() *validation.Schema { return s.schemas[s.own.Version] }

func (s *subject) hub() *validation.Schema { return s.schemas[penstockv1.GroupVersion.Version] }

// subjectOf gives how an object of a kind is judged, or nil if it is not.
func (c *Checker) subjectOf(written schema.GroupVersionKind) *subject {
	own, gate := written, c.own
	if shape, ok := conversion.Upstream(written); ok {
		own, gate = shape, c.upstream
	}
	definition := c.kinds[own.GroupKind()]
	if definition == nil || definition.schemas[own.Version] == nil {
		return nil
	}
	return &subject{definition: definition, written: written, own: own, gate: gate}
}

// Normal gives an object of one of Penstock's kinds, in any version, or of an
// upstream kind, as policies see it: in v1, with its defaults. Nothing stays
// nothing.
func (c *Checker) Normal(kind schema.GroupVersionKind, raw []byte) ([]byte, error) {
	if len(raw) > 0 && kind.Group == penstockv1.GroupName {
		var err error
		if raw, err = conversion.Convert(raw, penstockv1.GroupVersion); err != nil {
			return nil, err
		}
		kind.Version = penstockv1.GroupVersion.Version
	}
	return c.own.Normal(kind, raw)
}

// NamespaceOf is the namespace of an object that names one or none.
func (c *Checker) NamespaceOf(kind schema.GroupVersionKind, named string) string {
	definition := c.kinds[kind.GroupKind()]
	switch {
	case definition != nil && !definition.namespaced, validation.ClusterScoped(kind.GroupKind()):
		return ""
	case named != "":
		return named
	default:
		return cmp.Or(c.options.Namespace, "default")
	}
}

// namespaces stand for a cluster of which nothing else is known.
type namespaces map[string]map[string]string

var _ webhooks.Cluster = namespaces{}

var errNotGiven = errors.New("it was not given")

func (n namespaces) NamespaceLabels(_ context.Context, name string) (map[string]string, error) {
	labels, ok := n[name]
	if !ok {
		return nil, errNotGiven
	}
	return labels, nil
}

func (n namespaces) KindOf(context.Context, schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return schema.GroupVersionKind{}, errNotGiven
}

func (n namespaces) Object(context.Context, schema.GroupVersionKind, string, string) ([]byte, error) {
	return nil, errNotGiven
}

func (n namespaces) Labels(context.Context, schema.GroupVersionKind, string, string) (map[string]string, error) {
	return nil, errNotGiven
}
