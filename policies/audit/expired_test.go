package audit

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// An API server that does not know any more what happened since a version says
// so when it is asked to watch from there, or within the watch. What there is by
// then is read anew: what came is judged, and what went is forgotten.
func TestWatchThatExpired(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old resource version: 5 (90)")
	within := func(err *apierrors.StatusError) func() (watch.Interface, error) {
		return func() (watch.Interface, error) {
			told := watch.NewFakeWithChanSize(1, false)
			status := err.Status()
			told.Error(&status)
			return told, nil
		}
	}
	at := func(err error) func() (watch.Interface, error) {
		return func() (watch.Interface, error) { return nil, err }
	}
	for name, first := range map[string]func() (watch.Interface, error){
		"within the watch": within(expired), "when it begins": at(expired),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, w := auditHere(t)
			if err := a.engine.Set(onPods()); err != nil {
				t.Fatal(err)
			}
			var lists, watches atomic.Int32
			second, again := watch.NewFake(), make(chan struct{})
			a.client = expiringClient(&lists, &watches, first, func() watch.Interface { close(again); return second })
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); a.run(ctx, w) }()
			// The fake client's watches do not end with the context.
			defer func() { stop(); second.Stop(); <-ended }()
			select {
			case <-again:
			case <-time.After(20 * time.Second):
				t.Fatalf("listed %d times and watched %d, want twice each", lists.Load(), watches.Load())
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			var names []string
			for _, object := range a.results.found {
				names = append(names, object.name)
			}
			if len(names) != 1 || names[0] != "second" || w.fault != "" || w.closed || !w.synced {
				t.Errorf("found %v, fault %q, closed %v, synced %v", names, w.fault, w.closed, w.synced)
			}
			if !w.hurry {
				t.Error("what fell behind rests while it reads anew")
			}
		})
	}
}

// expiringClient gives another pod with each list, and one watch after the other.
func expiringClient(lists, watches *atomic.Int32, first func() (watch.Interface, error), second func() watch.Interface) *fake.FakeDynamicClient {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{pods: "PodList"})
	client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
		list.SetResourceVersion("5")
		name := "second"
		if lists.Add(1) == 1 {
			name = "first"
		}
		pod := unstructured.Unstructured{}
		pod.SetGroupVersionKind(podKind)
		pod.SetName(name)
		pod.SetNamespace("team")
		pod.SetUID(types.UID(name))
		list.Items = append(list.Items, pod)
		return true, list, nil
	})
	client.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
		if watches.Add(1) == 1 {
			watcher, err := first()
			return true, watcher, err
		}
		return true, second(), nil
	})
	return client
}
