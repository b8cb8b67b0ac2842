package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/ray"
	"github.com/penstock-dev/penstock/reconcilers/training"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// workload is a kind that is measured.
type workload struct {
	// name is in the names of bars, each is one of them, title are several.
	name, each, title string
	// pods is how many one has.
	pods int
	// writesLimit is how many creations and status writes one may take, cpuLimit
	// how many milliseconds of CPU; 0 where that is not held.
	writesLimit, cpuLimit float64

	list   func() client.ObjectList
	object func(namespace string, i int) client.Object
	plan   func(client.Object) ([]runtime.ApplyConfiguration, []plan.Object)
	// runs says whether one does its work with all its pods.
	runs func(client.Object) bool
	// end brings all of a namespace to their end, so that their pods take no room.
	end func(ctx context.Context, b *bench, namespace string, n int) error
}

const podsPerJob, podsPerCluster = 4, 3

var workloads = map[string]workload{
	"training": {
		name: "training", each: "job", title: "jobs", pods: podsPerJob,
		// Pods, services and four more for a job from its creation to its end.
		writesLimit: 2*podsPerJob + 4,
		list:        func() client.ObjectList { return &v1.TrainingJobList{} },
		object:      newJob,
		plan: func(job client.Object) ([]runtime.ApplyConfiguration, []plan.Object) {
			result := training.Plan(job.(*v1.TrainingJob), plan.Observed{}, time.Now())
			return result.Apply, result.Create
		},
		runs: func(job client.Object) bool {
			status := job.(*v1.TrainingJob).Status
			return status.Phase == v1.PhaseRunning && status.RolesReady == fmt.Sprintf("%d/%d", podsPerJob, podsPerJob)
		},
		end: endJobs,
	},
	"ray": {
		name: "ray", each: "cluster", title: "clusters", pods: podsPerCluster,
		writesLimit: 7,
		// What KubeRay takes.
		cpuLimit: 26,
		list:     func() client.ObjectList { return &v1.RayClusterList{} },
		object:   newCluster,
		plan: func(cluster client.Object) ([]runtime.ApplyConfiguration, []plan.Object) {
			result := ray.Plan(cluster.(*v1.RayCluster), plan.Observed{}, time.Now())
			return result.Apply, result.Create
		},
		runs: func(cluster client.Object) bool { return cluster.(*v1.RayCluster).Status.Phase == v1.PhaseRunning },
		end:  endClusters,
	},
}

func newJob(namespace string, i int) client.Object {
	job := fixtures.TrainingJob(fmt.Sprintf("job-%d", i), fixtures.Master(), fixtures.Workers(podsPerJob-1),
		fixtures.Template(func(template *corev1.PodTemplateSpec) {
			template.Annotations = map[string]string{cluster.SimulateRunSeconds: "forever"}
		}))
	job.Namespace, job.UID, job.Generation, job.CreationTimestamp = namespace, "", 0, metav1.Time{}
	return job
}

// newCluster returns the smallest cluster of workers: a head, a group of two.
func newCluster(namespace string, i int) client.Object {
	c := fixtures.RayCluster(fmt.Sprintf("ray-%d", i), fixtures.RayGroup(v1.RoleHead, small), fixtures.RayGroup("small", small))
	c.Namespace, c.UID, c.Generation, c.CreationTimestamp = namespace, "", 0, metav1.Time{}
	return c
}

// small lets many pods onto one node.
func small(role *v1.RayRole) {
	role.Template.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = fixtures.Quantity("100m")
}

// endJobs ends the pods, as kubelets would whose containers have exited, and
// waits until the jobs have.
func endJobs(ctx context.Context, b *bench, namespace string, n int) error {
	var pods corev1.PodList
	if err := b.client.List(ctx, &pods, client.InNamespace(namespace), fromMemory); err != nil {
		return fmt.Errorf("failed to list pods: %w", err)
	}
	err := inParallel(ctx, len(pods.Items), func(i int) error {
		pod := &pods.Items[i]
		before := pod.DeepCopy()
		fixtures.Succeeded()(pod)
		return b.client.Status().Patch(ctx, pod, client.MergeFrom(before))
	})
	if err != nil {
		return err
	}
	return b.await(ctx, namespace, n, "have succeeded", func(job client.Object) bool {
		return job.(*v1.TrainingJob).Status.Phase == v1.PhaseSucceeded
	})
}

// endClusters deletes the clusters, which have no end of their own.
func endClusters(ctx context.Context, b *bench, namespace string, _ int) error {
	clusters, err := b.list(ctx, namespace)
	if err != nil {
		return err
	}
	err = inParallel(ctx, len(clusters), func(i int) error {
		return client.IgnoreNotFound(b.client.Delete(ctx, clusters[i]))
	})
	if err != nil {
		return err
	}
	return b.gone(ctx, namespace)
}
