package validation

import (
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateMetrics finds why the API server would refuse the autoscaler that is
// made of metrics, whatever kind holds them
// (Kubernetes 1.37, pkg/apis/autoscaling/validation).
func ValidateMetrics(metrics []autoscalingv2.MetricSpec, path *field.Path) field.ErrorList {
	f := &findings{}
	for i := range metrics {
		f.metric(&metrics[i], path.Index(i))
	}
	return f.errs
}

func (f *findings) metric(metric *autoscalingv2.MetricSpec, path *field.Path) {
	if metric.Type == "" {
		f.required(path.Child("type"), "say what is measured: write Resource, ContainerResource, Pods, Object or External")
		return
	}
	sources := map[autoscalingv2.MetricSourceType]string{
		autoscalingv2.ResourceMetricSourceType: "resource", autoscalingv2.ContainerResourceMetricSourceType: "containerResource",
		autoscalingv2.PodsMetricSourceType: "pods", autoscalingv2.ObjectMetricSourceType: "object", autoscalingv2.ExternalMetricSourceType: "external",
	}
	want, known := sources[metric.Type]
	if !known {
		oneOf(f, path.Child("type"), metric.Type, autoscalingv2.ResourceMetricSourceType, autoscalingv2.ContainerResourceMetricSourceType,
			autoscalingv2.PodsMetricSourceType, autoscalingv2.ObjectMetricSourceType, autoscalingv2.ExternalMetricSourceType)
		return
	}
	there := false
	for _, source := range members(member{"resource", metric.Resource != nil}, member{"containerResource", metric.ContainerResource != nil},
		member{"pods", metric.Pods != nil}, member{"object", metric.Object != nil}, member{"external", metric.External != nil}) {
		there = there || source == want
		if source != want {
			f.forbidden(path.Child(source), fmt.Sprintf("is not for a metric of type %s: remove it, or change the type", metric.Type))
		}
	}
	if !there {
		f.required(path.Child(want), fmt.Sprintf("a metric of type %s is described here: write it with its target", metric.Type))
		return
	}
	f.metricSource(metric, path.Child(want))
}

func (f *findings) metricSource(metric *autoscalingv2.MetricSpec, path *field.Path) {
	switch metric.Type {
	case autoscalingv2.ResourceMetricSourceType:
		f.source(string(metric.Resource.Name), "the resource, as cpu", path.Child("name"))
		f.target(&metric.Resource.Target, path.Child("target"), "averageUtilization", "averageValue")
	case autoscalingv2.ContainerResourceMetricSourceType:
		f.source(string(metric.ContainerResource.Name), "the resource, as cpu", path.Child("name"))
		f.source(metric.ContainerResource.Container, "the container", path.Child("container"))
		f.label(path.Child("container"), metric.ContainerResource.Container)
		f.target(&metric.ContainerResource.Target, path.Child("target"), "averageUtilization", "averageValue")
	case autoscalingv2.PodsMetricSourceType:
		f.metricName(metric.Pods.Metric.Name, path)
		f.target(&metric.Pods.Target, path.Child("target"), "averageValue", "")
	case autoscalingv2.ObjectMetricSourceType:
		f.source(metric.Object.DescribedObject.Kind, "the kind of the object", path.Child("describedObject", "kind"))
		f.source(metric.Object.DescribedObject.Name, "the object", path.Child("describedObject", "name"))
		f.metricName(metric.Object.Metric.Name, path)
		f.target(&metric.Object.Target, path.Child("target"), "value", "averageValue")
	case autoscalingv2.ExternalMetricSourceType:
		f.metricName(metric.External.Metric.Name, path)
		f.target(&metric.External.Target, path.Child("target"), "value", "averageValue")
	}
}

func (f *findings) metricName(name string, path *field.Path) {
	path = path.Child("metric", "name")
	f.source(name, "the metric", path)
	if name == "." || name == ".." || strings.ContainsAny(name, "/%") {
		f.invalid(path, name, "must be the name of a metric: use no slash and no %")
	}
}

// target judges what a metric shall come to, which is said in one of two ways.
func (f *findings) target(target *autoscalingv2.MetricTarget, path *field.Path, usual, other string) {
	if target.Type == "" {
		f.required(path.Child("type"), "say how the target is meant: write Utilization, Value or AverageValue")
	}
	oneOf(f, path.Child("type"), target.Type, autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType)
	set := map[string]bool{"value": target.Value != nil, "averageValue": target.AverageValue != nil, "averageUtilization": target.AverageUtilization != nil}
	switch {
	case !set[usual] && !set[other]:
		fix := "write " + usual
		if other != "" {
			fix += " or " + other
		}
		f.required(path.Child(usual), "say what the metric shall come to: "+fix)
	case usual == "averageUtilization" && set[usual] && set[other]:
		f.forbidden(path.Child(other), "must not stand beside averageUtilization: keep one of the two")
	}
	for _, amount := range []struct {
		name  string
		value *resource.Quantity
	}{{"value", target.Value}, {"averageValue", target.AverageValue}} {
		if amount.value != nil && amount.value.Sign() <= 0 {
			f.invalid(path.Child(amount.name), amount.value.String(), "must be greater than 0: say what the metric shall come to")
		}
	}
	if percent := target.AverageUtilization; percent != nil {
		f.atLeast(path.Child("averageUtilization"), int64(*percent), 1, "give a share of the request, in percent")
	}
}
