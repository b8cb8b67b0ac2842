package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/cluster"
)

const (
	podsPerNode = 250
	// authors is how many clients write at once.
	authors = 8
	// poll is how often to look; lists come from the API server's memory.
	poll = time.Second
	// rest is how long nothing must be written for.
	rest = 10 * time.Second
)

// nodesFor returns nodes that bear n pods, and some more.
func nodesFor(n int) []cluster.Node {
	nodes := make([]cluster.Node, n*5/4/podsPerNode+1)
	for i := range nodes {
		nodes[i] = cluster.Node{Name: fmt.Sprintf("node-%d", i), Capacity: corev1.ResourceList{
			corev1.ResourcePods: *resource.NewQuantity(podsPerNode, resource.DecimalSI),
		}}
	}
	return nodes
}

// bench is a cluster with a manager, and what is measured.
type bench struct {
	workload
	client    client.Client
	clientset kubernetes.Interface
	pid       int
	metrics   string
}

// figures are what one of n workloads costs.
type figures struct {
	// writes are creations and status writes, from the creation of a workload to
	// its end; atRest are those of all while nothing happens.
	writes, atRest float64
	// cpu is of the manager, webhooks included, in seconds.
	cpu float64
	// memory of the manager that it keeps while they run, in bytes; total is all
	// that it has then.
	memory, total float64
	// running is the time until all run, in seconds; reference is that of the
	// same pods without a manager.
	running, reference float64
}

func (f figures) print(w workload, n int) {
	fmt.Printf("%5d %s of %d pods: all run after %.1f s, without a manager %.1f s; for each %.2f writes, %.1f ms of the manager's CPU, %.0f kB of its memory, which is %.0f MB in all\n",
		n, w.title, w.pods, f.running*float64(n), f.reference*float64(n), f.writes, f.cpu*1e3, f.memory/1e3, f.total/1e6)
}

func newBench(ctx context.Context, control *cluster.Cluster, w workload) (*bench, error) {
	manager, metrics, err := startManager(ctx, control)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("failed to make the scheme: %w", err)
	}
	b := &bench{workload: w, pid: manager.PID(), metrics: metrics}
	if b.client, err = client.New(control.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("failed to make a client: %w", err)
	}
	if b.clientset, err = kubernetes.NewForConfig(control.Config); err != nil {
		return nil, fmt.Errorf("failed to make a client: %w", err)
	}
	return b, nil
}

// grow measures n workloads between two references. What has ended stays: it takes no
// room on the nodes, and is what a cluster looks like.
func (b *bench) grow(ctx context.Context, name string, n int) (figures, error) {
	before, err := b.reference(ctx, name+"-before", n)
	if err != nil {
		return figures{}, err
	}
	f, err := b.measure(ctx, name, n)
	if err != nil {
		return f, err
	}
	after, err := b.reference(ctx, name+"-after", n)
	f.reference = (before + after) / 2
	return f, err
}

// measure runs n workloads in a namespace of their own from their creation to
// their end.
func (b *bench) measure(ctx context.Context, namespace string, n int) (f figures, err error) {
	if err := b.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return f, fmt.Errorf("failed to create a namespace: %w", err)
	}
	before, err := b.usage(ctx)
	if err != nil {
		return f, err
	}
	began := time.Now()
	if err := b.createAll(ctx, namespace, n); err != nil {
		return f, err
	}
	if err := b.await(ctx, namespace, n, "run", b.workload.runs); err != nil {
		return f, err
	}
	f.running = time.Since(began).Seconds() / float64(n)
	settled, err := b.settle(ctx)
	if err != nil {
		return f, err
	}
	f.memory, f.total = (settled.memory-before.memory)/float64(n), settled.memory
	time.Sleep(rest)
	rested, err := b.usage(ctx)
	if err != nil {
		return f, err
	}
	f.atRest = rested.writes - settled.writes
	if err := b.workload.end(ctx, b, namespace, n); err != nil {
		return f, err
	}
	ended, err := b.settle(ctx)
	if err != nil {
		return f, err
	}
	f.writes = (ended.writes - before.writes) / float64(n)
	f.cpu = (ended.cpu - before.cpu).Seconds() / float64(n)
	return f, nil
}

func (b *bench) createAll(ctx context.Context, namespace string, n int) error {
	return inParallel(ctx, n, func(i int) error { return b.client.Create(ctx, b.workload.object(namespace, i)) })
}

// await waits until all workloads of a namespace are as a function says.
func (b *bench) await(ctx context.Context, namespace string, n int, what string, is func(client.Object) bool) error {
	return until(ctx, fmt.Sprintf("%d %s %s", n, b.workload.title, what), func() (bool, error) {
		objects, err := b.list(ctx, namespace)
		done := 0
		for _, object := range objects {
			if is(object) {
				done++
			}
		}
		return done == n, err
	})
}

// list returns the workloads of a namespace.
func (b *bench) list(ctx context.Context, namespace string) ([]client.Object, error) {
	list := b.workload.list()
	if err := b.client.List(ctx, list, client.InNamespace(namespace), fromMemory); err != nil {
		return nil, fmt.Errorf("failed to list %s: %w", b.workload.title, err)
	}
	var objects []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		objects = append(objects, item.(client.Object))
		return nil
	})
	return objects, err
}

// gone returns when no pods of a namespace are left.
func (b *bench) gone(ctx context.Context, namespace string) error {
	return until(ctx, "no pods are left", func() (bool, error) {
		var pods corev1.PodList
		err := b.client.List(ctx, &pods, client.InNamespace(namespace), fromMemory)
		return len(pods.Items) == 0, err
	})
}

// fromMemory lists what the API server has in memory, which may be a moment old.
var fromMemory = &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}

func until(ctx context.Context, what string, is func() (bool, error)) error {
	for {
		if done, err := is(); err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, ctx.Err())
		case <-time.After(poll):
		}
	}
}

// inParallel does something n times and returns the first error.
func inParallel(ctx context.Context, n int, do func(i int) error) error {
	var once sync.Once
	var failed error
	workqueue.ParallelizeUntil(ctx, authors, n, func(i int) {
		if err := do(i); err != nil {
			once.Do(func() { failed = err })
		}
	})
	return failed
}
