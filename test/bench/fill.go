package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

const (
	// storedInBench is how many objects a watch cache is filled with.
	storedInBench = 10_000
	// fills is how often each way of converting fills it.
	fills = 3
	// convertPath is where conversions are asked for.
	convertPath = "/convert"
)

// allConversionBars measures the handler, calls over TLS, and the fill of a
// watch cache.
func allConversionBars() ([]bar, error) {
	bars, err := conversionBars()
	if err != nil {
		return nil, err
	}
	return withServers(func(ctx context.Context, l *liveServers) ([]bar, error) {
		cases, err := conversionCases()
		if err != nil {
			return nil, err
		}
		for _, one := range cases {
			if _, err := compare(one.name+", TLS", l.ours.converting().posted(ctx, "penstock", one.review),
				l.reference.converting().posted(ctx, "controller-runtime, typed", one.review)); err != nil {
				return nil, err
			}
		}
		return bars, l.fill(ctx)
	})
}

// fill measures how long the API server takes to fill the watch cache of
// v1alpha1 with objects stored in v1, beside strategy None, which changes
// nothing but apiVersion.
func (l *liveServers) fill(ctx context.Context) error {
	err := l.control.StoreAll(ctx, v1.GroupName, "trainingjobs", jobNamespace, storedInBench, func(i int) (string, []byte) {
		// One that has finished, of which the manager makes nothing.
		job := fixtures.TrainingJob(fmt.Sprintf("stored-%d", i), fixtures.Workers(2))
		job.Namespace = jobNamespace
		job.Status.Phase = v1.PhaseSucceeded
		job.Status.ObservedGeneration = job.Generation
		job.Status.CompletionTime = &job.CreationTimestamp
		job.Status.Conditions = []metav1.Condition{{
			Type: v1.TrainingJobSucceededCondition, Status: metav1.ConditionTrue, Reason: v1.TrainingJobSucceededReason,
			LastTransitionTime: job.CreationTimestamp,
		}}
		content, err := json.Marshal(job)
		if err != nil {
			panic(err) // A fixture can be written.
		}
		return job.Name, content
	})
	if err != nil {
		return err
	}
	var none, webhook []float64
	for range fills {
		for _, way := range []struct {
			strategy apiextensionsv1.ConversionStrategyType
			taken    *[]float64
		}{{apiextensionsv1.NoneConverter, &none}, {apiextensionsv1.WebhookConverter, &webhook}} {
			took, err := l.refill(ctx, way.strategy)
			if err != nil {
				return err
			}
			*way.taken = append(*way.taken, took.Seconds())
		}
	}
	fmt.Printf("watch cache of %d: %.2f s (%.2f to %.2f) by Penstock, %.2f s (%.2f to %.2f) with strategy None, ratio %.2f\n", storedInBench,
		median(webhook), slices.Min(webhook), slices.Max(webhook), median(none), slices.Min(none), slices.Max(none), median(webhook)/median(none))
	return nil
}

// refill changes how v1alpha1 is converted, which has the API server fill the
// watch caches of the kind anew, and gives how long that of v1alpha1 took.
func (l *liveServers) refill(ctx context.Context, strategy apiextensionsv1.ConversionStrategyType) (time.Duration, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "trainingjobs." + v1.GroupName
	if err := l.client.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
		return 0, err
	}
	if l.conversion == nil {
		l.conversion = definition.Spec.Conversion
	}
	definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: strategy}
	if strategy == apiextensionsv1.WebhookConverter {
		definition.Spec.Conversion = l.conversion
	}
	began := time.Now()
	if err := l.client.Update(ctx, definition); err != nil {
		return 0, err
	}
	served, err := dynamic.NewForConfig(l.control.Config)
	if err != nil {
		return 0, err
	}
	jobs := served.Resource(v1alpha1.GroupVersion.WithResource("trainingjobs")).Namespace(jobNamespace)
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		// Until the cache is filled the API server refuses, or serves the old one.
		list, err := jobs.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		return err == nil && len(list.Items) == storedInBench && converted(list.Items[0].Object, strategy), nil
	})
	if err != nil {
		return 0, fmt.Errorf("failed to fill the watch cache: %w", err)
	}
	return time.Since(began), nil
}

// converted reports whether an object came from the cache that a strategy fills.
func converted(object map[string]any, strategy apiextensionsv1.ConversionStrategyType) bool {
	spec, _ := object["spec"].(map[string]any)
	_, upstream := spec["pytorchReplicaSpecs"]
	return upstream == (strategy == apiextensionsv1.WebhookConverter)
}
