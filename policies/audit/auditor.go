package audit

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
	"github.com/penstock-dev/penstock/policies/stored"
)

const (
	// requestQPS bounds the requests of the audit to the API server, watches aside.
	requestQPS = 50
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

// userAgent is what the audit calls itself to the API server.
const userAgent = "penstock-audit"

// wildcard stands for every group, kind or subresource.
const wildcard = "*"

// Options say what an audit works with.
type Options struct {
	// Engine has the policies in force and the inventory that they read.
	Engine *policies.Engine
	Mapper stored.KindMapper
	Judge  *stored.Judge
	// NoReports keeps reports from being written.
	NoReports bool
}

// An Auditor judges stored objects: each when it changes, all of its kinds when a
// policy changes, those of a namespace when its labels change, those that an
// exception let pass when it ends, and all that a policy judges when the
// inventory that it reads changes. Objects are watched and not kept; nothing is
// listed on a timer. Only the leader audits.
type Auditor struct {
	engine *policies.Engine
	mapper stored.KindMapper
	client dynamic.Interface
	cache  cache.Cache
	stored *stored.Judge
	// changed tells that the status of policies has to follow.
	changed chan event.GenericEvent
	// reports is nil where none are written.
	reports *reporter
	pace    pace
	// woken tells that policies changed, and the first time that they are known; work,
	// that there is something to judge.
	woken, work chan struct{}

	mu       sync.Mutex
	results  *results
	policies map[string]*auditedPolicy
	watches  map[schema.GroupVersionKind]*kindWatch
	scans    map[schema.GroupVersionKind]*kindScan
	// followed tells that the policies have been looked at.
	followed bool
	// scanning is the scan under way; fresh are the objects that changed
	// meanwhile, which the scan would read as they were.
	scanning *kindScan
	fresh    map[objectKey]bool
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
	kinds   []stored.Kind
	unseen  []stored.UnseenKind
	pending bool
	// namespaceLabels tells that what it says may depend on them.
	namespaceLabels bool
	// dirty tells that it may say something else than was published.
	dirty     bool
	published *v1.PolicyAudit
}

// Setup adds an auditor to a manager. It begins once it is woken.
func Setup(mgr ctrl.Manager, options Options) (*Auditor, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.UserAgent, config.QPS, config.Burst = userAgent, requestQPS, requestQPS
	config.RateLimiter = nil
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("failed to make the client of the audit: %w", err)
	}
	auditor := newAuditor(options.Engine, options.Mapper, client, options.Judge)
	auditor.cache = mgr.GetCache()
	if !options.NoReports {
		if auditor.reports, err = newReporter(config, client, auditor); err != nil {
			return nil, err
		}
	}
	if err := mgr.Add(auditor); err != nil {
		return nil, fmt.Errorf("failed to add the audit: %w", err)
	}
	metrics.Registry.MustRegister(auditor)
	return auditor, nil
}

func newAuditor(engine *policies.Engine, mapper stored.KindMapper, client dynamic.Interface, judge *stored.Judge) *Auditor {
	return &Auditor{
		engine: engine, mapper: mapper, client: client, stored: judge,
		changed: make(chan event.GenericEvent, 1024), woken: make(chan struct{}, 1), work: make(chan struct{}, 1),
		results: newResults(), policies: map[string]*auditedPolicy{},
		watches: map[schema.GroupVersionKind]*kindWatch{}, scans: map[schema.GroupVersionKind]*kindScan{},
		versions: map[schema.GroupVersionKind]uint64{},
	}
}

// NeedLeaderElection is true: one replica speaks for all.
func (*Auditor) NeedLeaderElection() bool { return true }

// Start audits until the process ends.
func (a *Auditor) Start(ctx context.Context) error {
	// Whoever knows of no policies yet would take all reports for left over.
	select {
	case <-ctx.Done():
		return nil
	case <-a.woken:
	}
	if err := a.watchNamespaces(ctx); err != nil {
		return err
	}
	go a.scan(ctx)
	if a.reports != nil {
		go a.reports.run(ctx)
	}
	publish, inventory, served := time.NewTicker(publishPeriod), time.NewTicker(inventoryPeriod), time.NewTicker(stored.ServedRetry)
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

// Wake tells that the policies in force changed; the first time, that all of them are
// loaded.
func (a *Auditor) Wake() { signal(a.woken) }

// Changed gives the policies whose results changed.
func (a *Auditor) Changed() <-chan event.GenericEvent { return a.changed }

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// follow makes watches and scans of what changed in the policies in force, and in
// the kinds that are served.
func (a *Auditor) follow(ctx context.Context) {
	states, mapper := a.engine.Snapshot().Policies(), stored.AskOnce(a.mapper)
	next := make(map[string]*auditedPolicy, len(states))
	for _, state := range states {
		one := &auditedPolicy{
			uid: state.UID, digest: state.Digest, spec: state.Spec, generation: state.Enforced, namespaceLabels: state.NamespaceLabels, dirty: true,
		}
		next[state.Name] = one
		if state.Spec == nil || !stored.JudgedBy(state.Spec) {
			continue
		}
		var err error
		if one.kinds, one.unseen, err = stored.Kinds(state.Spec, mapper); err != nil {
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
func (a *Auditor) adopt(name string, old, next *auditedPolicy) {
	judged := next.kinds
	if old != nil {
		a.forget(name, slices.DeleteFunc(slices.Clone(old.kinds), func(kind stored.Kind) bool { return slices.Contains(next.kinds, kind) }))
		if old.uid == next.uid {
			next.published = old.published
			next.dirty = old.dirty || old.generation != next.generation || old.digest != next.digest || !slices.Equal(old.unseen, next.unseen) || !slices.Equal(old.kinds, next.kinds)
			if old.digest == next.digest || (old.spec != nil && next.spec != nil && !stored.JudgesOtherwise(old.spec, next.spec)) {
				judged = slices.DeleteFunc(slices.Clone(next.kinds), func(kind stored.Kind) bool { return slices.Contains(old.kinds, kind) })
			}
		}
	}
	a.readInventory(next)
	for _, kind := range judged {
		// A kind that nobody judged so far is read by its watch.
		if a.watches[kind.GroupVersionKind] != nil {
			a.want(kind).all[name] = true
		}
	}
}

// forget drops what a policy says of kinds. Its caller holds mu.
func (a *Auditor) forget(name string, of []stored.Kind) {
	for _, kind := range of {
		for _, key := range a.results.dropPolicy(name, kind.GroupVersionKind) {
			a.report(key)
		}
		if scan := a.scans[kind.GroupVersionKind]; scan != nil {
			scan.drop(name)
		}
	}
}

// followKinds starts and stops watches. Its caller holds mu.
func (a *Auditor) followKinds(ctx context.Context) {
	needed := map[schema.GroupVersionKind]stored.Kind{}
	status := map[schema.GroupVersionKind]bool{}
	for _, policy := range a.policies {
		for _, kind := range policy.kinds {
			needed[kind.GroupVersionKind] = kind
			status[kind.GroupVersionKind] = status[kind.GroupVersionKind] || judgesStatus(policy.spec, kind.GroupVersionKind.GroupKind())
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
			w = &kindWatch{Kind: kind}
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
func (a *Auditor) dropKind(kind schema.GroupVersionKind) {
	for _, key := range a.results.keys(kind) {
		a.soil(a.results.drop(kind, key))
		a.report(key)
	}
}

// soil notes that policies say something else. Its caller holds mu.
func (a *Auditor) soil(names []string) {
	for _, name := range names {
		if policy := a.policies[name]; policy != nil {
			policy.dirty = true
		}
	}
}

// report has the report on an object follow. Its caller holds mu.
func (a *Auditor) report(key objectKey) {
	if a.reports != nil {
		a.reports.queue.Add(key)
	}
}
