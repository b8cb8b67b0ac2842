package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

// +kubebuilder:rbac:groups=penstock.dev,resources=workloadpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=penstock.dev,resources=workloadpolicies/status,verbs=update;patch

// A Loader keeps an engine at the policies that the cluster has. It runs on
// every replica, because every replica judges requests.
type Loader struct {
	client client.Client
	engine *policies.Engine
	// changed is called after each change of the engine; nil for nobody.
	changed   func()
	inventory *Inventory
	// audit is nil where nothing is audited.
	audit  Audit
	loaded atomic.Bool
	// mu is held from reading the cache to changing the engine, so that what was
	// read later is what stays.
	mu sync.Mutex
}

// Options say what Setup works with.
type Options struct {
	// Engine is the one to keep at the cluster's policies.
	Engine *policies.Engine
	Kinds  *ServedKinds
	Rules  RulesOptions
	// Audit is told of the policies, and gives results for their status; nil where
	// nothing is audited.
	Audit Audit
}

// An Audit judges stored objects by the policies in force, for their status.
type Audit interface {
	// Wake tells it that the policies in force changed; the first time, that all of
	// them are loaded.
	Wake()
	// Changed gives the policies whose results changed.
	Changed() <-chan event.GenericEvent
	// Result gives what to write into the status of a policy, and whether anything is
	// known of it yet.
	Result(policy *v1.WorkloadPolicy) (result v1.PolicyAudit, known bool)
}

// Setup adds to a manager what keeps an engine at the cluster's policies, what
// keeps the webhook configuration at what they match, what keeps their inventory,
// and what writes their status.
func Setup(mgr ctrl.Manager, options Options) (*Loader, error) {
	live, err := dynamic.NewForConfig(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("failed to make the client of the inventory: %w", err)
	}
	inventory := newInventory(options.Engine, live, options.Kinds)
	if err := mgr.Add(inventory); err != nil {
		return nil, fmt.Errorf("failed to add the inventory: %w", err)
	}
	metrics.Registry.MustRegister(inventory)
	loader := &Loader{client: mgr.GetClient(), engine: options.Engine, changed: inventory.follow, inventory: inventory, audit: options.Audit}
	if err := mgr.Add(loader); err != nil {
		return nil, fmt.Errorf("failed to add the policy loader: %w", err)
	}
	everyReplica := false
	err = ctrl.NewControllerManagedBy(mgr).
		Named("policy-loader").
		For(&v1.WorkloadPolicy{}).
		WithOptions(controller.Options{NeedLeaderElection: &everyReplica}).
		Complete(loader)
	if err != nil {
		return nil, fmt.Errorf("failed to set up the policy loader: %w", err)
	}
	known, changed := &coverages{}, make(chan event.GenericEvent)
	err = setupStatus(mgr, &status{
		client: mgr.GetClient(), engine: options.Engine, coverages: known, inventory: inventory, audit: options.Audit,
	}, changed)
	if err != nil {
		return nil, err
	}
	rules := options.Rules
	rules.Spelling = options.Kinds.Spelling
	err = setupConfigurer(mgr, &configurer{
		client: mgr.GetClient(), mapper: options.Kinds, options: rules, coverages: known, changed: changed,
	})
	if err != nil {
		return nil, err
	}
	return loader, nil
}

// Start loads all policies in one step, so that a process never judges by some
// of them only.
func (l *Loader) Start(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list v1.WorkloadPolicyList
	if err := l.client.List(ctx, &list); err != nil {
		return fmt.Errorf("failed to list the policies: %w", err)
	}
	all := make([]*v1.WorkloadPolicy, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	log := ctrl.LoggerFrom(ctx)
	for name, err := range l.engine.Replace(all) {
		log.Info("Policy does not compile and answers by its failure policy", "WorkloadPolicy", name, "fault", err.Error())
	}
	l.loaded.Store(true)
	l.tell()
	log.Info("Policies loaded", "count", len(all), "digest", l.engine.Snapshot().Digest())
	return nil
}

// Inventory is what keeps the objects that the policies read.
func (l *Loader) Inventory() *Inventory { return l.inventory }

func (l *Loader) tell() {
	if l.changed != nil {
		l.changed()
	}
	// Before the first pass, an audit would take some policies for all.
	if l.audit != nil && l.Loaded() {
		l.audit.Wake()
	}
}

// NeedLeaderElection is false: every replica judges requests.
func (*Loader) NeedLeaderElection() bool { return false }

// Loaded reports whether the first pass over all policies is done. A policy
// that does not compile does not hold it up.
func (l *Loader) Loaded() bool { return l.loaded.Load() }

// Check is Loaded as a readiness check.
func (l *Loader) Check(*http.Request) error {
	if !l.Loaded() {
		return errors.New("the policies are not compiled yet")
	}
	return nil
}

// Reconcile hands one policy to the engine. A policy that does not compile is
// no error here: trying again would not mend it, and its status says so.
func (l *Loader) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.tell()
	var policy v1.WorkloadPolicy
	err := l.client.Get(ctx, request.NamespacedName, &policy)
	switch {
	case apierrors.IsNotFound(err):
		l.engine.Remove(request.Name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("failed to get the policy: %w", err)
	}
	if err := l.engine.Set(&policy); err != nil {
		ctrl.LoggerFrom(ctx).Info("Policy does not compile", "fault", err.Error())
	}
	return reconcile.Result{}, nil
}
