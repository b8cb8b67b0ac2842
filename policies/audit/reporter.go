package audit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/penstock-dev/penstock/policies/stored"
)

// +kubebuilder:rbac:groups=openreports.io,resources=clusterreports;reports,verbs=get;list;create;update;delete
// +kubebuilder:rbac:groups=wgpolicyk8s.io,resources=clusterpolicyreports;policyreports,verbs=get;list;create;update;delete

// A reporter keeps a report on each object that breaks a policy, passes by an
// exception, or that a policy could not be evaluated for; in the first of
// reportAPIs that the API server serves, and nowhere if it serves none.
type reporter struct {
	auditor   *Auditor
	client    dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	// queue holds objects whose report may have to change.
	queue workqueue.TypedRateLimitingInterface[objectKey]
	// look tells to look again which APIs are served.
	look chan struct{}

	mu  sync.Mutex
	api *reportAPI
	// written are the reports that there are.
	written map[objectKey]writtenReport
	// tidied tells that reports left over from before are gone.
	tidied bool
}

// A writtenReport is a report of ours as it is stored.
type writtenReport struct {
	namespace, name string
	digest          string
}

func newReporter(config *rest.Config, client dynamic.Interface, auditor *Auditor) (*reporter, error) {
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("failed to make the client of the reports: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("failed to make the client of the reports: %w", err)
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[objectKey](retryDelay, time.Minute)
	return &reporter{
		auditor: auditor, client: client, metadata: meta, discovery: served, look: make(chan struct{}, 1),
		queue: workqueue.NewTypedRateLimitingQueue(limiter), written: map[objectKey]writtenReport{},
	}, nil
}

// run writes reports until ctx ends.
func (r *reporter) run(ctx context.Context) {
	go func() {
		<-ctx.Done()
		r.queue.ShutDown()
	}()
	go func() {
		for {
			key, over := r.queue.Get()
			if over {
				return
			}
			r.follow(ctx, key)
			r.queue.Done(key)
		}
	}()
	for ctx.Err() == nil {
		if err := r.discover(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Info("Reports are not written", "fault", err.Error())
		}
		r.tidy(ctx)
		pause(ctx, r.look, stored.ServedRetry)
	}
}

// refresh has it look again which APIs are served.
func (r *reporter) refresh() { signal(r.look) }

// forget drops a report that goes with its object.
func (r *reporter) forget(key objectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, key)
}

// discover finds the API to write reports in, and on a change what there is of
// them. Reports in the other API are taken away, as nobody would keep them up.
func (r *reporter) discover(ctx context.Context) error {
	var found *reportAPI
	var others []*reportAPI
	for _, api := range reportAPIs {
		served, err := r.serves(api)
		switch {
		case err != nil:
			return err
		case served && found == nil:
			found = api
		case served:
			others = append(others, api)
		}
	}
	r.mu.Lock()
	known := r.api
	r.mu.Unlock()
	if found == known {
		return nil
	}
	written := map[objectKey]writtenReport{}
	if found != nil {
		for _, kind := range []reportKind{found.namespaced, found.cluster} {
			err := r.ours(ctx, found, kind, func(report *metav1.PartialObjectMetadata) {
				if uid, ok := strings.CutPrefix(report.Name, "penstock-"); ok {
					written[keyOf(types.UID(uid))] = writtenReport{report.Namespace, report.Name, report.Annotations[reportDigest]}
				}
			})
			if err != nil {
				return err
			}
		}
	}
	for _, other := range others {
		if err := r.clear(ctx, other); err != nil {
			return err
		}
	}
	r.mu.Lock()
	r.api, r.written, r.tidied = found, written, false
	r.mu.Unlock()
	if found != nil {
		ctrl.LoggerFrom(ctx).Info("Reports are written", "api", found.version.String())
	}
	r.auditor.mu.Lock()
	defer r.auditor.mu.Unlock()
	for key := range r.auditor.results.found {
		r.queue.Add(key)
	}
	return nil
}

// serves reports whether the API server serves both kinds of an API.
func (r *reporter) serves(api *reportAPI) (bool, error) {
	list, err := r.discovery.ServerResourcesForGroupVersion(api.version.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to ask for %s: %w", api.version, err)
	}
	found := 0
	for _, resource := range list.APIResources {
		if resource.Name == api.namespaced.resource || resource.Name == api.cluster.resource {
			found++
		}
	}
	return found == 2, nil
}

// ours lists the metadata of the reports that are Penstock's.
func (r *reporter) ours(ctx context.Context, api *reportAPI, kind reportKind, each func(*metav1.PartialObjectMetadata)) error {
	options := metav1.ListOptions{LabelSelector: managedByLabel + "=" + reportSource, Limit: pageSize}
	for {
		list, err := r.metadata.Resource(api.version.WithResource(kind.resource)).List(ctx, options)
		if err != nil {
			return fmt.Errorf("failed to list the %s: %w", kind.resource, err)
		}
		for i := range list.Items {
			each(&list.Items[i])
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// clear deletes all reports of Penstock in an API.
func (r *reporter) clear(ctx context.Context, api *reportAPI) error {
	for _, kind := range []reportKind{api.namespaced, api.cluster} {
		var left []writtenReport
		err := r.ours(ctx, api, kind, func(report *metav1.PartialObjectMetadata) {
			left = append(left, writtenReport{namespace: report.Namespace, name: report.Name})
		})
		if err != nil {
			return err
		}
		for _, report := range left {
			if err := r.delete(ctx, api, report); err != nil {
				return err
			}
		}
	}
	return nil
}

// tidy takes away reports on objects that nothing is to be said of, once all are
// judged.
func (r *reporter) tidy(ctx context.Context) {
	r.mu.Lock()
	idle := r.tidied || r.api == nil
	r.mu.Unlock()
	if idle {
		return
	}
	if !r.auditor.allSettled() {
		signalLater(ctx, r.look)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.written {
		r.queue.Add(key)
	}
	r.tidied = true
}

// signalLater is signal in a while.
func signalLater(ctx context.Context, to chan struct{}) {
	go func() {
		pause(ctx, nil, publishPeriod)
		signal(to)
	}()
}

// follow makes the report on an object what it should be.
func (r *reporter) follow(ctx context.Context, key objectKey) {
	r.auditor.mu.Lock()
	object := r.auditor.results.found[key]
	r.auditor.mu.Unlock()
	r.mu.Lock()
	api := r.api
	known, has := r.written[key]
	r.mu.Unlock()
	if api == nil {
		return
	}
	var err error
	switch {
	case object != nil:
		report := api.reportOn(object, r.auditor.stored.Clock())
		digest := report.GetAnnotations()[reportDigest]
		if has && known.digest == digest {
			break
		}
		if err = r.write(ctx, api, report, has); err == nil {
			r.note(key, api, &writtenReport{report.GetNamespace(), report.GetName(), digest})
		}
	case has:
		if err = r.delete(ctx, api, known); err == nil {
			r.note(key, api, nil)
		}
	}
	switch {
	case err == nil, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// From a namespace that is being deleted, the object goes too.
		r.queue.Forget(key)
	case ctx.Err() != nil:
	default:
		ctrl.LoggerFrom(ctx).V(1).Info("Report could not be written", "fault", err.Error())
		if apierrors.IsNotFound(err) {
			r.refresh()
		}
		r.queue.AddRateLimited(key)
	}
}

// note keeps what is written, unless the API is another by now.
func (r *reporter) note(key objectKey, api *reportAPI, report *writtenReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.api != api:
	case report == nil:
		delete(r.written, key)
	default:
		r.written[key] = *report
	}
}

// write creates or updates a report; has tells that there is thought to be one.
func (r *reporter) write(ctx context.Context, api *reportAPI, report *unstructured.Unstructured, has bool) error {
	reports := r.resource(api, report.GetNamespace())
	if !has {
		_, err := reports.Create(ctx, report, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	old, err := reports.Get(ctx, report.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = reports.Create(ctx, report, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	keepTimes(report, old)
	report.SetResourceVersion(old.GetResourceVersion())
	_, err = reports.Update(ctx, report, metav1.UpdateOptions{})
	return err
}

func (r *reporter) delete(ctx context.Context, api *reportAPI, report writtenReport) error {
	err := r.resource(api, report.namespace).Delete(ctx, report.name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (r *reporter) resource(api *reportAPI, namespace string) dynamic.ResourceInterface {
	all := r.client.Resource(api.version.WithResource(api.kindFor(namespace).resource))
	if namespace == "" {
		return all
	}
	return all.Namespace(namespace)
}
