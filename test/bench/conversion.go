package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
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

//go:embed job.yaml
var jobYAML []byte

// conversionLimit is the bar of the design: a sixth of what controller-runtime
// takes with typed converters.
const conversionLimit = 1.0 / 6

// conversionBars compares /convert with controller-runtime's own handler over
// the same converters, for one object a review, as the API server sends them.
func conversionBars() ([]bar, error) {
	alpha, err := yaml.YAMLToJSON(jobYAML)
	if err != nil {
		return nil, err
	}
	hub, err := conversion.Convert(alpha, v1.GroupVersion)
	if err != nil {
		return nil, err
	}
	theirs, err := typedHandler()
	if err != nil {
		return nil, err
	}
	var bars []bar
	for _, direction := range []struct {
		name   string
		object []byte
		to     schema.GroupVersion
	}{
		{"conversion-to-hub", alpha, v1.GroupVersion},
		{"conversion-from-hub", hub, v1alpha1.GroupVersion},
	} {
		review, err := conversionReview(direction.object, direction.to)
		if err != nil {
			return nil, err
		}
		value := ratio(direction.name,
			side{"penstock", posting(&conversion.Handler{}, review)},
			side{"controller-runtime, typed", posting(theirs, review)})
		bars = append(bars, bar{direction.name, value, conversionLimit})
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
	construct := ctrlconversion.NewHubSpokeConverter(&v1.TrainingJob{},
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
			}))
	converter, err := construct(scheme)
	if err != nil {
		return nil, fmt.Errorf("failed to make controller-runtime's converter: %w", err)
	}
	registry := ctrlconversion.NewRegistry()
	if err := registry.RegisterConverter(v1.TrainingJobGroupKind, converter); err != nil {
		return nil, err
	}
	return ctrlconversion.NewWebhookHandler(scheme, registry), nil
}
