package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/fixtures"
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

// nodesFor returns nodes that bear the pods of n jobs, and some more.
func nodesFor(n int) []cluster.Node {
	nodes := make([]cluster.Node, n*podsPerJob*5/4/podsPerNode+1)
	for i := range nodes {
		nodes[i] = cluster.Node{Name: fmt.Sprintf("node-%d", i), Capacity: corev1.ResourceList{
			corev1.ResourcePods: *resource.NewQuantity(podsPerNode, resource.DecimalSI),
		}}
	}
	return nodes
}

// bench is a cluster with a manager.
type bench struct {
	client    client.Client
	clientset kubernetes.Interface
	pid       int
	metrics   string
}

// figures are what one of n jobs costs.
type figures struct {
	// writes are creations and status writes, from the creation of a job to its
	// end; atRest are those of all jobs while nothing happens.
	writes, atRest float64
	// cpu is of the manager, webhooks included, in seconds.
	cpu float64
	// memory of the manager that it keeps while the jobs run, in bytes.
	memory float64
	// running is the time until all run, in seconds; reference is that of the
	// same pods without a manager.
	running, reference float64
}

func (f figures) print(n int) {
	fmt.Printf("%5d jobs of %d pods: all run after %.1f s, without a manager %.1f s; for each job %.2f writes, %.1f ms of the manager's CPU, %.0f kB of its memory\n",
		n, podsPerJob, f.running*float64(n), f.reference*float64(n), f.writes, f.cpu*1e3, f.memory/1e3)
}

func newBench(ctx context.Context, control *cluster.Cluster) (*bench, error) {
	manager, metrics, err := startManager(ctx, control)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("failed to make the scheme: %w", err)
	}
	b := &bench{pid: manager.PID(), metrics: metrics}
	if b.client, err = client.New(control.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("failed to make a client: %w", err)
	}
	if b.clientset, err = kubernetes.NewForConfig(control.Config); err != nil {
		return nil, fmt.Errorf("failed to make a client: %w", err)
	}
	return b, nil
}

// grow measures n jobs between two references. What has ended stays: it takes no
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

// measure runs n jobs in a namespace of their own from their creation to their
// end.
func (b *bench) measure(ctx context.Context, namespace string, n int) (f figures, err error) {
	if err := b.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return f, fmt.Errorf("failed to create a namespace: %w", err)
	}
	before, err := b.usage(ctx)
	if err != nil {
		return f, err
	}
	began := time.Now()
	if err := b.createJobs(ctx, namespace, n); err != nil {
		return f, err
	}
	if err := b.await(ctx, namespace, n, v1.PhaseRunning); err != nil {
		return f, err
	}
	f.running = time.Since(began).Seconds() / float64(n)
	settled, err := b.settle(ctx)
	if err != nil {
		return f, err
	}
	f.memory = (settled.memory - before.memory) / float64(n)
	time.Sleep(rest)
	rested, err := b.usage(ctx)
	if err != nil {
		return f, err
	}
	f.atRest = rested.writes - settled.writes
	if err := b.endPods(ctx, namespace); err != nil {
		return f, err
	}
	if err := b.await(ctx, namespace, n, v1.PhaseSucceeded); err != nil {
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

func (b *bench) createJobs(ctx context.Context, namespace string, n int) error {
	return inParallel(ctx, n, func(i int) error { return b.client.Create(ctx, newJob(namespace, i)) })
}

func newJob(namespace string, i int) *v1.TrainingJob {
	job := fixtures.TrainingJob(fmt.Sprintf("job-%d", i), fixtures.Master(), fixtures.Workers(podsPerJob-1),
		fixtures.Template(func(template *corev1.PodTemplateSpec) {
			template.Annotations = map[string]string{cluster.SimulateRunSeconds: "forever"}
		}))
	job.Namespace, job.UID, job.Generation, job.CreationTimestamp = namespace, "", 0, metav1.Time{}
	return job
}

// await waits until all jobs of a namespace are in a phase, with all their pods.
func (b *bench) await(ctx context.Context, namespace string, n int, phase v1.Phase) error {
	return until(ctx, fmt.Sprintf("%d jobs are %s", n, phase), func() (bool, error) {
		var jobs v1.TrainingJobList
		if err := b.client.List(ctx, &jobs, client.InNamespace(namespace), fromMemory); err != nil {
			return false, fmt.Errorf("failed to list jobs: %w", err)
		}
		done := 0
		for i := range jobs.Items {
			status := &jobs.Items[i].Status
			if status.Phase == phase && (phase != v1.PhaseRunning || status.RolesReady == fmt.Sprintf("%d/%d", podsPerJob, podsPerJob)) {
				done++
			}
		}
		return done == n, nil
	})
}

// endPods ends the pods, as kubelets would whose containers have exited.
func (b *bench) endPods(ctx context.Context, namespace string) error {
	var pods corev1.PodList
	if err := b.client.List(ctx, &pods, client.InNamespace(namespace), fromMemory); err != nil {
		return fmt.Errorf("failed to list pods: %w", err)
	}
	return inParallel(ctx, len(pods.Items), func(i int) error {
		pod := &pods.Items[i]
		before := pod.DeepCopy()
		fixtures.Succeeded()(pod)
		return b.client.Status().Patch(ctx, pod, client.MergeFrom(before))
	})
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
