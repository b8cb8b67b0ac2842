package audit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/penstock-dev/penstock/policies/stored"
)

const (
	// pageSize is how many objects are read at once, which is what they take
	// of memory: a reflector would hold all of a kind.
	pageSize = 250
	// retryDelay is how soon to try again what failed.
	retryDelay = time.Second
	// watchTimeout is how long a watch lasts at least; it then goes on
	// from where it was.
	watchTimeout = 5 * time.Minute
)

// kindWatch is the watch of one kind.
type kindWatch struct {
	stored.Kind
	stop context.CancelFunc
	// status tells that what changes status alone is judged.
	status bool
	// synced tells that all objects were judged once; fault, why they cannot be.
	synced bool
	fault  string
	// failures is how often it failed in a row; closed tells that it is for a
	// reason that somebody has to do something about.
	failures int
	closed   bool
	// hurry tells that reading all took longer than the API server remembers.
	hurry bool
}

const (
	// closedAfter is from how many failures on a kind counts as one that is not
	// served or not allowed: an API server that starts refuses everything.
	closedAfter = 3
	// awayAfter is from how many failures on the others of a policy are told of
	// without it.
	awayAfter = 6
)

// settled reports whether waiting for the kind will bring no more soon.
func (w *kindWatch) settled() bool { return w.synced || w.closed || w.failures >= awayAfter }

// run lists and watches one kind until ctx ends.
func (a *Auditor) run(ctx context.Context, w *kindWatch) {
	for ctx.Err() == nil {
		var version string
		err := a.mayWatch(ctx, w)
		if err == nil {
			version, err = a.readAll(ctx, w)
		}
		if err == nil {
			err = a.follows(ctx, w, version)
		}
		wait := retryDelay
		if apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
			// The API server does not know any more what happened since: five minutes
			// ago, as a rule.
			a.hasten(w, true)
			ctrl.LoggerFrom(ctx).Info("Watch of the audit fell behind and begins anew", "GroupVersionKind", w.GroupVersionKind.String())
		} else {
			wait = a.failed(ctx, w, err)
		}
		pause(ctx, nil, wait)
	}
}

// mayWatch asks, for a kind that could not be read for long, whether it can be
// watched by now: reading all of it for nothing would be too much.
func (a *Auditor) mayWatch(ctx context.Context, w *kindWatch) error {
	a.mu.Lock()
	closed := w.closed
	a.mu.Unlock()
	if !closed {
		return nil
	}
	watcher, err := a.client.Resource(w.Resource).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=penstock-probe"})
	if err != nil {
		return err
	}
	watcher.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	w.closed, w.failures = false, 0
	return nil
}

// hasten has a kind read without rest, or not any more.
func (a *Auditor) hasten(w *kindWatch, hurry bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.hurry = hurry
}

// opened notes that a kind is watched.
func (a *Auditor) opened(w *kindWatch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.failures = 0
	if w.fault != "" {
		w.fault = ""
		a.soilKind(w)
	}
}

// unreadable reports whether a kind cannot be read until somebody does something
// about it.
func unreadable(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// failed notes why a kind is not read, and gives how long to wait before trying
// again. What was judged stands while the API server is away for a moment.
func (a *Auditor) failed(ctx context.Context, w *kindWatch, err error) (wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil || a.watches[w.GroupVersionKind] != w {
		return 0
	}
	w.failures++
	w.closed = unreadable(err) && w.failures >= closedAfter
	wait = min(stored.ServedRetry, retryDelay<<min(w.failures-1, 4))
	if !w.settled() || (w.synced && !w.closed) {
		return wait
	}
	fault := err.Error()
	switch {
	case apierrors.IsForbidden(err):
		fault = fmt.Sprintf("grant Penstock list and watch on %s, by a ClusterRole labelled %s", w.Resource.GroupResource(), stored.AggregationLabel)
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		fault = "the API server does not serve it; it is looked at as soon as it does"
	}
	if w.closed {
		wait, w.synced = stored.ServedRetry, false
		a.dropKind(w.GroupVersionKind)
	}
	if w.fault == fault {
		return wait
	}
	w.fault = fault
	a.soilKind(w)
	ctrl.Log.WithName("audit").Info("Kind is not audited", "GroupVersionKind", w.GroupVersionKind.String(), "fault", fault)
	return wait
}

// soilKind notes that there is something else to say of a kind. Its caller holds
// mu.
func (a *Auditor) soilKind(w *kindWatch) {
	for _, policy := range a.policies {
		for _, kind := range policy.kinds {
			policy.dirty = policy.dirty || kind.GroupVersionKind == w.GroupVersionKind
		}
	}
}

// readAll judges all objects of a kind, page by page, and gives the version to
// watch from: what changes while it judges is seen again then.
func (a *Auditor) readAll(ctx context.Context, w *kindWatch) (string, error) {
	seen := map[objectKey]bool{}
	version, err := a.pages(ctx, w.Kind, "", metav1.ListOptions{}, func(object *unstructured.Unstructured) {
		seen[keyOf(object.GetUID())] = true
		a.touch(w, keyOf(object.GetUID()))
		a.judge(ctx, w, object, nil)
	})
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil || a.watches[w.GroupVersionKind] != w {
		return "", ctx.Err()
	}
	for _, key := range a.results.keys(w.GroupVersionKind) {
		if !seen[key] {
			a.soil(a.results.drop(w.GroupVersionKind, key))
			a.report(key)
		}
	}
	w.synced = true
	a.soilKind(w)
	return version, nil
}

// pages lists objects of a namespace, or of all, no more than a page of which is
// held at a time.
func (a *Auditor) pages(ctx context.Context, kind stored.Kind, namespace string, options metav1.ListOptions, each func(*unstructured.Unstructured)) (version string, err error) {
	options.Limit = pageSize
	where := dynamic.ResourceInterface(a.client.Resource(kind.Resource))
	if namespace != "" {
		where = a.client.Resource(kind.Resource).Namespace(namespace)
	}
	for {
		list, err := where.List(ctx, options)
		if err != nil {
			return "", err
		}
		if version == "" {
			version = list.GetResourceVersion()
		}
		for i := range list.Items {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			// A list leaves the kind out of some of its items.
			list.Items[i].SetGroupVersionKind(kind.GroupVersionKind)
			each(&list.Items[i])
			list.Items[i].Object = nil
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return version, nil
		}
	}
}

// follows judges what changes from a version on. It returns when that cannot go
// on: with an error of the API server.
func (a *Auditor) follows(ctx context.Context, w *kindWatch, version string) error {
	for ctx.Err() == nil {
		timeout := int64(watchTimeout.Seconds() * (1 + rand.Float64()))
		watcher, err := a.client.Resource(w.Resource).Watch(ctx, metav1.ListOptions{
			ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &timeout,
		})
		if err == nil {
			a.opened(w)
			version, err = a.events(ctx, w, watcher, version)
		}
		if err != nil && (apierrors.IsGone(err) || apierrors.IsResourceExpired(err) || unreadable(err)) {
			return err
		}
		if err != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("Watch of the audit broke off", "GroupVersionKind", w.GroupVersionKind.String(), "fault", err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryDelay):
		}
	}
	return ctx.Err()
}

// events judges what one watch tells until it ends, and gives the version to go
// on from.
func (a *Auditor) events(ctx context.Context, w *kindWatch, watcher watch.Interface, version string) (string, error) {
	defer watcher.Stop()
	for told := range watcher.ResultChan() {
		if told.Type == watch.Error {
			return version, apierrors.FromObject(told.Object)
		}
		object, ok := told.Object.(*unstructured.Unstructured)
		if !ok {
			return version, errors.New("a watch told of something that is no object")
		}
		switch told.Type {
		case watch.Added, watch.Modified:
			a.hasten(w, false)
			a.changedObject(ctx, w, object)
		case watch.Deleted:
			a.gone(w, keyOf(object.GetUID()))
		}
		version = object.GetResourceVersion()
	}
	return version, nil
}

// changedObject judges an object unless it is to be judged as it was.
func (a *Auditor) changedObject(ctx context.Context, w *kindWatch, object *unstructured.Unstructured) {
	key := keyOf(object.GetUID())
	if object.GetDeletionTimestamp() != nil {
		a.gone(w, key)
		return
	}
	a.touch(w, key)
	a.mu.Lock()
	known, status := a.results.content(w.GroupVersionKind, key), w.status
	a.mu.Unlock()
	if known != 0 && known == contentOf(object.Object, status) {
		return
	}
	a.judge(ctx, w, object, nil)
}

// touch notes that an object is newer than what a scan under way may have read.
func (a *Auditor) touch(w *kindWatch, key objectKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.scanning != nil && a.scanning.kind == w.Kind {
		a.fresh[key] = true
	}
}

// gone forgets an object that is deleted or being deleted. Its report goes with
// it, as the API server collects what an owner leaves behind.
func (a *Auditor) gone(w *kindWatch, key objectKey) {
	a.touch(w, key)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watches[w.GroupVersionKind] != w {
		return
	}
	a.soil(a.results.drop(w.GroupVersionKind, key))
	if a.reports != nil {
		a.reports.forget(key)
	}
}

// judge has policies judge an object and notes what they say: all of them, or as
// part of a scan those that it is for.
func (a *Auditor) judge(ctx context.Context, w *kindWatch, object *unstructured.Unstructured, only map[string]bool) {
	a.mu.Lock()
	hurry := w.hurry
	a.mu.Unlock()
	a.pace.do(ctx, hurry, func() {
		key := keyOf(object.GetUID())
		a.mu.Lock()
		stale, status := only != nil && a.fresh[key], w.status
		a.mu.Unlock()
		if stale {
			return
		}
		now := a.stored.Clock()
		judgements := a.stored.Judge(ctx, a.engine.Snapshot(), only, w.Resource, object)
		if ctx.Err() != nil {
			// What was cut is not what policies say.
			return
		}
		found := auditedObject{
			kind: w.GroupVersionKind, namespace: object.GetNamespace(), name: object.GetName(), uid: object.GetUID(), results: resultsOf(judgements, now),
		}
		var content uint64
		if len(found.results) > 0 {
			content = contentOf(object.Object, status)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.watches[w.GroupVersionKind] != w {
			return
		}
		changed, news := a.results.set(found, content, only)
		a.soil(changed)
		if news {
			a.report(key)
		}
		if slices.ContainsFunc(found.results, func(one policyResult) bool { return !one.due.IsZero() }) {
			// What is due next may be sooner now.
			signal(a.work)
		}
	})
}
