package reconcilers

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

const (
	// followPeriod is how often to ask which kinds are served. Nothing tells:
	// an API of Kubernetes itself comes with a restart of the API server, and
	// watching every CustomResourceDefinition would hold all of them in memory.
	followPeriod = 5 * time.Second
	// servedRetry is how soon to reconcile, and to ask, again while the answer
	// is not known.
	servedRetry = 200 * time.Millisecond
	// syncTimeout bounds the filling of a cache, which fails for ever where
	// reading is not allowed.
	syncTimeout = 30 * time.Second
)

// servedKind is a child kind that the API server knows now.
type servedKind struct {
	object plan.Object
	gvk    schema.GroupVersionKind
	// reader reads children that are ours from memory.
	reader client.Reader
}

// follower follows which child kinds of a kind are served. One that comes is
// cached and watched, one that goes is forgotten: neither holds up readiness or
// the objects that have nothing to do with it. Each has a cache of its own,
// since the manager's cannot hold a kind that is not served when it starts.
type follower struct {
	discovery  discovery.ServerResourcesInterface
	config     *rest.Config
	http       *http.Client
	scheme     *runtime.Scheme
	mapper     meta.RESTMapper
	controller controller.Controller
	owner      plan.Object
	// name of the owner's kind in lower case, and as it is written.
	name, ownerKind string

	kinds []*followed

	mu    sync.Mutex
	known bool
}

// followed is one child kind.
type followed struct {
	servedKind
	// stop ends the cache; nil while the kind is not served.
	stop context.CancelFunc
}

func newFollower(mgr ctrl.Manager, c controller.Controller, owner plan.Object, name string, kinds []plan.Object) (*follower, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("failed to make a discovery client: %w", err)
	}
	gvk, err := apiutil.GVKForObject(owner, mgr.GetScheme())
	if err != nil {
		return nil, fmt.Errorf("failed to find the kind of %T: %w", owner, err)
	}
	f := &follower{
		discovery: d, config: mgr.GetConfig(), http: mgr.GetHTTPClient(), scheme: mgr.GetScheme(), mapper: mgr.GetRESTMapper(),
		controller: c, owner: owner, name: name, ownerKind: gvk.Kind,
	}
	for _, kind := range kinds {
		gvk, err := apiutil.GVKForObject(kind, f.scheme)
		if err != nil {
			return nil, fmt.Errorf("failed to find the kind of %T: %w", kind, err)
		}
		f.kinds = append(f.kinds, &followed{servedKind: servedKind{object: kind, gvk: gvk}})
	}
	return f, nil
}

// served returns the kinds that are served now, and false until the first
// answer of the API server.
func (f *follower) served() ([]servedKind, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var served []servedKind
	for _, kind := range f.kinds {
		if kind.stop != nil {
			served = append(served, kind.servedKind)
		}
	}
	return served, f.known
}

// Start follows until the context ends. As the controller, it runs where the
// lease is.
func (f *follower) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName("served").WithValues("controller", f.name))
	for {
		wait := followPeriod
		if err := f.look(ctx); err != nil {
			log.FromContext(ctx).Error(err, "Failed to see which kinds are served")
			wait = time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// look asks once. What could not be asked stays as it was; a kind that cannot
// be read, for lack of a right, counts as not served.
func (f *follower) look(ctx context.Context) error {
	for _, kind := range f.kinds {
		served, err := f.serves(kind.gvk)
		switch {
		case err != nil:
			return fmt.Errorf("failed to discover %s: %w", kind.gvk.GroupVersion(), err)
		case served && kind.stop == nil:
			if err := f.follow(ctx, kind); err != nil {
				log.FromContext(ctx).Error(err, "A kind is served and cannot be used", "kind", kind.gvk)
				continue
			}
			log.FromContext(ctx).Info("A kind is served", "kind", kind.gvk)
		case !served && kind.stop != nil:
			f.forget(kind)
			log.FromContext(ctx).Info("A kind is not served any more", "kind", kind.gvk)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = true
	return nil
}

func (f *follower) serves(gvk schema.GroupVersionKind) (bool, error) {
	resources, err := f.discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, resource := range resources.APIResources {
		if resource.Kind == gvk.Kind {
			return true, nil
		}
	}
	return false, nil
}

// follow caches a kind, and wakes the owner of a child on each of its events.
func (f *follower) follow(ctx context.Context, kind *followed) error {
	c, err := cache.New(f.config, cache.Options{
		HTTPClient: f.http, Scheme: f.scheme, Mapper: f.mapper,
		DefaultLabelSelector: ours(), DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return fmt.Errorf("failed to make a cache of %s: %w", kind.gvk, err)
	}
	running, stop := context.WithCancel(ctx)
	go func() {
		if err := c.Start(running); err != nil {
			log.FromContext(ctx).Error(err, "A cache ended", "kind", kind.gvk)
		}
	}()
	err = func() error {
		if err := c.IndexField(running, kind.object, ownerIndex(f.name), ownerUID(f.ownerKind)); err != nil {
			return err
		}
		syncing, cancel := context.WithTimeout(running, syncTimeout)
		defer cancel()
		if _, err := c.GetInformer(syncing, kind.object); err != nil {
			return err
		}
		return f.controller.Watch(source.Kind[client.Object](c, kind.object,
			handler.EnqueueRequestForOwner(f.scheme, f.mapper, f.owner, handler.OnlyControllerOwner())))
	}()
	if err != nil {
		stop()
		return fmt.Errorf("failed to watch %s: %w", kind.gvk, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	kind.reader, kind.stop = c, stop
	return nil
}

func (f *follower) forget(kind *followed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind.stop()
	kind.reader, kind.stop = nil, nil
}
