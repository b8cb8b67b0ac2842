package training

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// allMetrics is a metric of each kind.
var allMetrics = []autoscalingv2.MetricSpec{
	{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU,
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](80)}}},
	{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "samples"},
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("1500m"))}}},
	{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "queue", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: new(resource.MustParse("30"))}}},
}

func TestAutoscaler(t *testing.T) {
	measured := func(job *v1.TrainingJob) { job.Spec.Elastic.Metrics = allMetrics }
	selected := func(job *v1.TrainingJob) { job.Status.Elastic = &v1.ElasticStatus{Selector: "a=b"} }
	there := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "hpa"}}
	type want struct {
		Bounds  [2]int64
		Deleted int
		After   time.Duration
	}
	for name, tc := range map[string]struct {
		mods  []fixtures.JobMod
		there bool
		want  want
	}{
		"not before the selector is stored": {mods: []fixtures.JobMod{fixtures.Elastic(2, 8), measured}, want: want{After: time.Second}},
		"by the bounds":                     {mods: []fixtures.JobMod{fixtures.Elastic(2, 8), measured, selected}, want: want{Bounds: [2]int64{2, 8}}},
		"at least one":                      {mods: []fixtures.JobMod{fixtures.Elastic(0, 8), measured, selected}, want: want{Bounds: [2]int64{1, 8}}},
		"none without metrics":              {mods: []fixtures.JobMod{fixtures.Elastic(2, 8), selected}, there: true, want: want{Deleted: 1}},
		"none that is not elastic":          {there: true, want: want{Deleted: 1}},
		"none while suspended":              {mods: []fixtures.JobMod{fixtures.Elastic(2, 8), measured, selected, fixtures.Suspended()}, there: true, want: want{Deleted: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var observed plan.Observed
			if tc.there {
				observed.Children = append(observed.Children, there)
			}
			result := Plan(fixtures.TrainingJob("a", tc.mods...), observed, fixtures.Start)
			got := want{Deleted: len(result.Delete), After: result.RequeueAfter}
			for _, child := range result.Apply {
				fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
				if err != nil {
					t.Fatal(err)
				}
				if fields["kind"] != "HorizontalPodAutoscaler" {
					continue
				}
				hpa := &autoscalingv2.HorizontalPodAutoscaler{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, hpa); err != nil {
					t.Fatal(err)
				}
				got.Bounds = [2]int64{int64(*hpa.Spec.MinReplicas), int64(hpa.Spec.MaxReplicas)}
				if diff := cmp.Diff(allMetrics, hpa.Spec.Metrics); diff != "" {
					t.Errorf("metrics (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
