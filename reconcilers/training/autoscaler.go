package training

import (
	"encoding/json"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// planAutoscaler makes a horizontal pod autoscaler for an elastic job that
// names metrics, once the stored status says which pods it scales. It writes
// spec.elastic.replicas through the scale subresource, so what it asks for is
// judged like any other edit.
func (p *planner) planAutoscaler() {
	elastic := p.job.Spec.Elastic
	if elastic == nil || len(elastic.Metrics) == 0 {
		p.removeAutoscaler("the job names no metrics")
		return
	}
	if p.job.Status.Elastic == nil || p.job.Status.Elastic.Selector == "" {
		// An autoscaler that finds no selector in the scale subresource warns
		// that it has none. No event tells that the status was written.
		p.wakeAt(p.now.Add(time.Second))
		return
	}
	least := max(ptr.Deref(elastic.MinReplicas, 1), 1)
	p.result.Apply = append(p.result.Apply, autoscalingv2ac.HorizontalPodAutoscaler(p.job.Name, p.job.Namespace).
		WithLabels(jobLabels(p.job)).
		WithSpec(autoscalingv2ac.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().
				WithAPIVersion(v1.GroupVersion.String()).
				WithKind(v1.TrainingJobKind).
				WithName(p.job.Name)).
			WithMinReplicas(least).
			WithMaxReplicas(max(ptr.Deref(elastic.MaxReplicas, least), least)).
			WithMetrics(metricsOf(elastic)...)))
}

// metricsOf returns the metrics as fields to apply. The two types have the same
// JSON, so converting one into the other cannot fail.
func metricsOf(elastic *v1.Elastic) []*autoscalingv2ac.MetricSpecApplyConfiguration {
	metrics := make([]*autoscalingv2ac.MetricSpecApplyConfiguration, 0, len(elastic.Metrics))
	for i := range elastic.Metrics {
		metric := autoscalingv2ac.MetricSpec()
		if data, err := json.Marshal(&elastic.Metrics[i]); err == nil && json.Unmarshal(data, metric) == nil {
			metrics = append(metrics, metric)
		}
	}
	return metrics
}

// removeAutoscaler removes it wherever nothing may scale.
func (p *planner) removeAutoscaler(reason string) {
	for _, autoscaler := range plan.ChildrenOf[*autoscalingv2.HorizontalPodAutoscaler](p.observed) {
		p.remove(autoscaler, reason)
	}
}
