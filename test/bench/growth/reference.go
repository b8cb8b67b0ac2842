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
)

// reference returns how long the cluster by itself takes to run the pods and
// services of n workloads, in seconds for each: somebody who knows them all
// creates them and looks at nothing.
func (b *bench) reference(ctx context.Context, namespace string, n int) (float64, error) {
	if err := b.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return 0, fmt.Errorf("failed to create a namespace: %w", err)
	}
	began := time.Now()
	err := inParallel(ctx, n, func(i int) error {
		children, err := childrenOf(b.workload.plan(b.workload.object(namespace, i)))
		if err != nil {
			return err
		}
		for _, child := range children {
			if err := b.client.Create(ctx, child); err != nil {
				return fmt.Errorf("failed to create a child: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	err = until(ctx, fmt.Sprintf("%d pods run", n*b.workload.pods), func() (bool, error) {
		var pods corev1.PodList
		if err := b.client.List(ctx, &pods, client.InNamespace(namespace), fromMemory); err != nil {
			return false, fmt.Errorf("failed to list pods: %w", err)
		}
		running := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == n*b.workload.pods, nil
	})
	took := time.Since(began).Seconds() / float64(n)
	if err != nil {
		return 0, err
	}
	return took, b.clear(ctx, namespace)
}

// clear deletes the pods and services of a namespace. It does so one by one: a
// loaded API server does not come to the end of a collection in time.
func (b *bench) clear(ctx context.Context, namespace string) error {
	var pods corev1.PodList
	var services corev1.ServiceList
	var all []client.Object
	for _, list := range []client.ObjectList{&pods, &services} {
		if err := b.client.List(ctx, list, client.InNamespace(namespace), fromMemory); err != nil {
			return fmt.Errorf("failed to list children: %w", err)
		}
	}
	for i := range pods.Items {
		all = append(all, &pods.Items[i])
	}
	for i := range services.Items {
		all = append(all, &services.Items[i])
	}
	err := inParallel(ctx, len(all), func(i int) error {
		return client.IgnoreNotFound(b.client.Delete(ctx, all[i], client.GracePeriodSeconds(0)))
	})
	if err != nil {
		return fmt.Errorf("failed to delete children: %w", err)
	}
	return b.gone(ctx, namespace)
}

// childrenOf returns the services and pods that a plan wants, as nobody's.
func childrenOf(apply []runtime.ApplyConfiguration, create []plan.Object) ([]client.Object, error) {
	var children []client.Object
	for _, child := range apply {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
		if err != nil {
			return nil, fmt.Errorf("failed to convert a service: %w", err)
		}
		service := &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, service); err != nil {
			return nil, fmt.Errorf("failed to convert a service: %w", err)
		}
		children = append(children, service)
	}
	for _, child := range create {
		children = append(children, child)
	}
	for _, child := range children {
		// The manager holds what carries it in memory.
		delete(child.GetLabels(), v1.ManagedByLabel)
	}
	return children, nil
}
