// Package reading reads what is in a cluster, for Gomega's Eventually: each
// function returns one that reads once, and fails the Gomega that it is given.
package reading

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// Job reads a job.
func Job(from client.Reader, ns, name string) func(gomega.Gomega, context.Context) *v1.TrainingJob {
	return func(g gomega.Gomega, ctx context.Context) *v1.TrainingJob {
		job := &v1.TrainingJob{}
		g.Expect(from.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, job)).To(gomega.Succeed())
		return job
	}
}

// Pods reads the pods of a job by name.
func Pods(from client.Reader, ns, job string) func(gomega.Gomega, context.Context) map[string]corev1.Pod {
	return func(g gomega.Gomega, ctx context.Context) map[string]corev1.Pod {
		var list corev1.PodList
		g.Expect(from.List(ctx, &list, client.InNamespace(ns), client.MatchingLabels{v1.JobNameLabel: job})).To(gomega.Succeed())
		byName := map[string]corev1.Pod{}
		for _, pod := range list.Items {
			byName[pod.Name] = pod
		}
		return byName
	}
}

// Now reads at once; a spec ends where that is not possible.
func Now[T any](ctx context.Context, read func(gomega.Gomega, context.Context) T) T {
	ginkgo.GinkgoHelper()
	return read(gomega.NewGomega(func(message string, _ ...int) { ginkgo.Fail(message) }), ctx)
}
