package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlconversion "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
	"github.com/penstock-dev/penstock/conversion"
)

var (
	//go:embed job.yaml
	jobYAML []byte
	//go:embed raycluster.yaml
	rayClusterYAML []byte
)

// conversionLimit is the bar of the design: a sixth of what controller-runtime
// takes with typed converters.
const conversionLimit = 1.0 / 6

// A conversionCase is a review of one object, as the API server sends them.
type conversionCase struct {
	name   string
	review []byte
}

func conversionCases() ([]conversionCase, error) {
	var cases []conversionCase
	for _, kind := range []struct {
		name     string
		manifest []byte
	}{{"conversion", jobYAML}, {"conversion-ray", rayClusterYAML}} {
		alpha, err := yaml.YAMLToJSON(kind.manifest)
		if err != nil {
			return nil, err
		}
		hub, err := conversion.Convert(alpha, v1.GroupVersion)
		if err != nil {
			return nil, err
		}
		up, err := conversionReview(alpha, v1.GroupVersion)
		if err != nil {
			return nil, err
		}
		down, err := conversionReview(hub, v1alpha1.GroupVersion)
		if err != nil {
			return nil, err
		}
		cases = append(cases, conversionCase{kind.name + "-to-hub", up}, conversionCase{kind.name + "-from-hub", down})
	}
	return cases, nil
}

// conversionBars compares /convert with controller-runtime's own handler over
// the same converters.
func conversionBars() ([]bar, error) {
	cases, err := conversionCases()
	if err != nil {
		return nil, err
	}
	theirs, err := typedHandler()
	if err != nil {
		return nil, err
	}
	var bars []bar
	for _, one := range cases {
		ours, reference := posting(&conversion.Handler{}, one.review), posting(theirs, one.review)
		value := ratio(one.name, side{"penstock", ours}, side{"controller-runtime, typed", reference})
		fmt.Printf("%-28s %-36s %8d\n", "", "allocations a call, penstock", testing.Benchmark(ours).AllocsPerOp())
		fmt.Printf("%-28s %-36s %8d\n", "", "allocations a call, reference", testing.Benchmark(reference).AllocsPerOp())
		bars = append(bars, bar{one.name, value, conversionLimit})
	}
	return bars, nil
}

func conversionReview(object []byte, to schema.GroupVersion) ([]byte, error) {
	review := apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{
		UID:               "9f1d3a52-5b6a-4f0e-8f0a-2d9f4f6f1c11",
		DesiredAPIVersion: to.String(),
		Objects:           []runtime.RawExtension{{Raw: object}},
	}}
	review.APIVersion, review.Kind = "apiextensions.k8s.io/v1", "ConversionReview"
	return json.Marshal(review)
}

// posting serves one body again and again, without a network.
func posting(handler http.Handler, body []byte) func(*testing.B) {
	return func(b *testing.B) {
		for b.Loop() {
			recorder := httptest.NewRecorder()
			request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			handler.ServeHTTP(recorder, request)
			if recorder.Code != http.StatusOK || bytes.Contains(recorder.Body.Bytes(), []byte(`"Failure"`)) {
				b.Fatalf("got %d %s", recorder.Code, recorder.Body)
			}
		}
	}
}

// typedHandler is controller-runtime's handler with converters over whole
// typed objects. They are made of the same functions over specs.
func typedHandler() (http.Handler, error) {
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	registry := ctrlconversion.NewRegistry()
	err := errors.Join(
		register(registry, scheme, v1.TrainingJobGroupKind, ctrlconversion.NewHubSpokeConverter(&v1.TrainingJob{},
			ctrlconversion.NewSpokeConverter(&v1alpha1.TrainingJob{},
				func(_ context.Context, src *v1.TrainingJob, dst *v1alpha1.TrainingJob) error {
					dst.ObjectMeta = src.ObjectMeta
					conversion.TrainingJobSpecFromHub(&src.Spec, &dst.Spec)
					return nil
				},
				func(_ context.Context, src *v1alpha1.TrainingJob, dst *v1.TrainingJob) error {
					dst.ObjectMeta = src.ObjectMeta
					conversion.TrainingJobSpecToHub(&src.Spec, &dst.Spec)
					return nil
				}))),
		register(registry, scheme, v1.RayClusterGroupKind, ctrlconversion.NewHubSpokeConverter(&v1.RayCluster{},
			ctrlconversion.NewSpokeConverter(&v1alpha1.RayCluster{},
				func(_ context.Context, src *v1.RayCluster, dst *v1alpha1.RayCluster) error {
					dst.ObjectMeta = src.ObjectMeta
					conversion.RayClusterSpecFromHub(&src.Spec, &dst.Spec)
					return nil
				},
				func(_ context.Context, src *v1alpha1.RayCluster, dst *v1.RayCluster) error {
					dst.ObjectMeta = src.ObjectMeta
					conversion.RayClusterSpecToHub(&src.Spec, &dst.Spec)
					return nil
				}))),
	)
	if err != nil {
		return nil, fmt.Errorf("failed to make controller-runtime's converter: %w", err)
	}
	return ctrlconversion.NewWebhookHandler(scheme, registry), nil
}

func register(registry ctrlconversion.Registry, scheme *runtime.Scheme, kind schema.GroupKind, construct func(*runtime.Scheme) (ctrlconversion.Converter, error)) error {
	converter, err := construct(scheme)
	if err != nil {
		return err
	}
	return registry.RegisterConverter(kind, converter)
}
