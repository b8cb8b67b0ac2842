package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

const (
	// auditQPS bounds the requests of the audit to the API server, watches aside.
	auditQPS = 50
	// followDelay is how long to wait for more policies to change: they are
	// applied in numbers.
	followDelay = 300 * time.Millisecond
	// publishPeriod is how often the results of a policy may be written.
	publishPeriod = 3 * time.Second
	// inventoryPeriod is how often to ask whether the inventory changed.
	inventoryPeriod = 5 * time.Second
	// inventoryShare bounds the share of time spent on judging again what the
	// inventory changed for: one in so many.
	inventoryShare = 10
)

// UserAgentAudit is what the audit calls itself to the API server.
const UserAgentAudit = "penstock-audit"

// AuditOptions say what an audit works with.
type AuditOptions struct {
	Stored *Stored
	// NoReports keeps reports from being written.
	NoReports bool
}

// An Audit judges stored objects: each when it changes, all of its kinds when a
// policy changes, those of a namespace when its labels change, those that an
// exception let pass when it ends, and all that a policy judges when the
// inventory that it reads changes. Objects are watched and not kept; nothing is
// listed on a timer. Only the leader audits.
type Audit struct {
	engine *policies.Engine
	mapper KindMapper
	client dynamic.Interface
	cache  cache.Cache
	stored *Stored
	// loaded tells that the policies are known.
	loaded func() bool
	// changed tells that the status of policies has to follow.
	changed chan event.GenericEvent
	// reports is nil where none are written.
	reports *reporter
	pace    pace
	// woken tells that policies changed, work that there is something to judge.
	woken, work chan struct{}

	mu       sync.Mutex
	results  *auditResults
	policies map[string]*auditedPolicy
	watches  map[schema.GroupVersionKind]*auditWatch
	scans    map[schema.GroupVersionKind]*auditScan
	// followed tells that the policies have been looked at.
	followed bool
	// scanning is the scan under way; fresh are the objects that changed
	// meanwhile, which the scan would read as they were.
	scanning *auditScan
	fresh    map[auditKey]bool
	// versions are those of the inventory that was judged with; inventoryAt is
	// when to judge with another next.
	versions    map[schema.GroupVersionKind]uint64
	inventoryAt time.Time
}

// auditedPolicy is a policy in force.
type auditedPolicy struct {
	uid        types.UID
	digest     string
	spec       *v1.WorkloadPolicySpec
	generation int64
	// kinds are judged, unseen are not; pending tells that they are not known yet.
	kinds   []storedKind
	unseen  []unseenKind
	pending bool
	// namespaceLabels tells that what it says may depend on them.
	namespaceLabels bool
	// dirty tells that it may say something else than was published.
	dirty     bool
	published *v1.PolicyAudit
}

// SetupAudit adds an audit to a manager. It is told of the policies by a loader,
// by which their status learns of the results.
func SetupAudit(mgr ctrl.Manager, loader *Loader, options AuditOptions) error {
	config := rest.CopyConfig(mgr.GetConfig())
	config.UserAgent, config.QPS, config.Burst = UserAgentAudit, auditQPS, auditQPS
	config.RateLimiter = nil
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("failed to make the client of the audit: %w", err)
	}
	audit := newAudit(loader.engine, loader.kinds, client, options.Stored)
	audit.cache, audit.changed, audit.loaded = mgr.GetCache(), loader.status.audited, loader.Loaded
	if !options.NoReports {
		if audit.reports, err = newReporter(config, client, audit); err != nil {
			return err
		}
	}
	if err := mgr.Add(audit); err != nil {
		return fmt.Errorf("failed to add the audit: %w", err)
	}
	metrics.Registry.MustRegister(audit)
	loader.audit, loader.status.audit = audit, audit
	return nil
}

func newAudit(engine *policies.Engine, mapper KindMapper, client dynamic.Interface, stored *Stored) *Audit {
	return &Audit{
		engine: engine, mapper: mapper, client: client, stored: stored,
		woken: make(chan struct{}, 1), work: make(chan struct{}, 1),
		results: newAuditResults(), policies: map[string]*auditedPolicy{},
		watches: map[schema.GroupVersionKind]*auditWatch{}, scans: map[schema.GroupVersionKind]*auditScan{},
		versions: map[schema.GroupVersionKind]uint64{},
	}
}

// NeedLeaderElection is true: one replica speaks for all.
func (*Audit) NeedLeaderElection() bool { return true }

// Start audits until the process ends.
func (a *Audit) Start(ctx context.Context) error {
	// Whoever knows of no policies yet would take all reports for left over.
	for !a.loaded() {
		if pause(ctx, nil, followDelay); ctx.Err() != nil {
			return nil
		}
	}
	if err := a.watchNamespaces(ctx); err != nil {
		return err
	}
	go a.scan(ctx)
	if a.reports != nil {
		go a.reports.run(ctx)
	}
	publish, inventory, served := time.NewTicker(publishPeriod), time.NewTicker(inventoryPeriod), time.NewTicker(servedRetry)
	defer publish.Stop()
	defer inventory.Stop()
	defer served.Stop()
	a.follow(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.woken:
			pause(ctx, nil, followDelay)
			a.follow(ctx)
		case <-served.C:
			// Installing a kind tells nobody here. Asking what is served lists no objects.
			a.follow(ctx)
		case <-inventory.C:
			a.followInventory(a.stored.Clock())
		case <-publish.C:
			a.publish()
		}
	}
}

// wake tells that the policies in force changed.
func (a *Audit) wake() { signal(a.woken) }

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// follow makes watches and scans of what changed in the policies in force, and in
// the kinds that are served.
func (a *Audit) follow(ctx context.Context) {
	states, mapper := a.engine.Snapshot().Policies(), askOnce(a.mapper)
	next := make(map[string]*auditedPolicy, len(states))
	for _, state := range states {
		one := &auditedPolicy{
			uid: state.UID, digest: state.Digest, spec: state.Spec, generation: state.Enforced, namespaceLabels: state.NamespaceLabels, dirty: true,
		}
		next[state.Name] = one
		if state.Spec == nil || !judgesStored(state.Spec) {
			continue
		}
		var err error
		if one.kinds, one.unseen, err = storedKinds(state.Spec, mapper); err != nil {
			ctrl.LoggerFrom(ctx).Info("Kinds of a policy are not known yet", "WorkloadPolicy", state.Name, "fault", err.Error())
			one.pending = true
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, one := range next {
		if old := a.policies[name]; one.pending && old != nil {
			next[name] = old
			continue
		}
		a.adopt(name, a.policies[name], one)
	}
	for name, old := range a.policies {
		if next[name] == nil {
			a.forget(name, old.kinds)
		}
	}
	a.policies, a.followed = next, true
	a.followKinds(ctx)
}

// adopt takes up what changed of a policy. Its caller holds mu.
func (a *Audit) adopt(name string, old, next *auditedPolicy) {
	judged := next.kinds
	if old != nil {
		a.forget(name, slices.DeleteFunc(slices.Clone(old.kinds), func(kind storedKind) bool { return slices.Contains(next.kinds, kind) }))
		if old.uid == next.uid {
			next.published = old.published
			next.dirty = old.dirty || old.generation != next.generation || old.digest != next.digest || !slices.Equal(old.unseen, next.unseen) || !slices.Equal(old.kinds, next.kinds)
			if old.digest == next.digest || (old.spec != nil && next.spec != nil && !judgesOtherwise(old.spec, next.spec)) {
				judged = slices.DeleteFunc(slices.Clone(next.kinds), func(kind storedKind) bool { return slices.Contains(old.kinds, kind) })
			}
		}
	}
	a.readInventory(next)
	for _, kind := range judged {
		// A kind that nobody judged so far is read by its watch.
		if a.watches[kind.kind] != nil {
			a.want(kind).all[name] = true
		}
	}
}

// forget drops what a policy says of kinds. Its caller holds mu.
func (a *Audit) forget(name string, of []storedKind) {
	for _, kind := range of {
		for _, key := range a.results.dropPolicy(name, kind.kind) {
			a.report(key)
		}
		if scan := a.scans[kind.kind]; scan != nil {
			scan.drop(name)
		}
	}
}

// followKinds starts and stops watches. Its caller holds mu.
func (a *Audit) followKinds(ctx context.Context) {
	needed := map[schema.GroupVersionKind]storedKind{}
	status := map[schema.GroupVersionKind]bool{}
	for _, policy := range a.policies {
		for _, kind := range policy.kinds {
			needed[kind.kind] = kind
			status[kind.kind] = status[kind.kind] || judgesStatus(policy.spec, kind.kind.GroupKind())
		}
	}
	for of, w := range a.watches {
		if _, ok := needed[of]; ok {
			continue
		}
		w.stop()
		delete(a.watches, of)
		delete(a.scans, of)
		a.dropKind(of)
	}
	for of, kind := range needed {
		w := a.watches[of]
		if w == nil {
			w = &auditWatch{storedKind: kind}
			a.watches[of] = w
			var watching context.Context
			watching, w.stop = context.WithCancel(ctx)
			go a.run(watching, w)
		}
		w.status = status[of]
	}
	if a.reports != nil {
		a.reports.refresh()
	}
}

// judgesStatus reports whether a policy wants to be asked about the status of
// objects of a kind.
func judgesStatus(spec *v1.WorkloadPolicySpec, kind schema.GroupKind) bool {
	return slices.ContainsFunc(spec.Match.Resources, func(resources v1.PolicyResources) bool {
		return (resources.Group == kind.Group || resources.Group == wildcard) &&
			(slices.Contains(resources.Kinds, kind.Kind) || slices.Contains(resources.Kinds, wildcard)) &&
			(slices.Contains(resources.Subresources, "status") || slices.Contains(resources.Subresources, wildcard))
	})
}

// dropKind forgets the objects of a kind. Its caller holds mu.
func (a *Audit) dropKind(kind schema.GroupVersionKind) {
	for _, key := range a.results.keys(kind) {
		a.soil(a.results.drop(kind, key))
		a.report(key)
	}
}

// soil notes that policies say something else. Its caller holds mu.
func (a *Audit) soil(names []string) {
	for _, name := range names {
		if policy := a.policies[name]; policy != nil {
			policy.dirty = true
		}
	}
}

// report has the report on an object follow. Its caller holds mu.
func (a *Audit) report(key auditKey) {
	if a.reports != nil {
		a.reports.queue.Add(key)
	}
}
