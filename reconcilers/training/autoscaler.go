package training

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// planAutoscaler makes a horizontal pod autoscaler for an elastic job that
// names metrics. It writes spec.elastic.replicas through the scale subresource,
// so what it asks for is judged like any other edit.
func (p *planner) planAutoscaler() {
	elastic := p.job.Spec.Elastic
	if elastic == nil || len(elastic.Metrics) == 0 {
		p.removeAutoscaler("the job names no metrics")
		return
	}
	least := max(ptr.Deref(elastic.MinReplicas, 1), 1)
	p.result.Apply = append(p.result.Apply, &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: metav1.ObjectMeta{
			Name:      p.job.Name,
			Namespace: p.job.Namespace,
			Labels:    jobLabels(p.job),
		},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: v1.GroupVersion.String(),
				Kind:       v1.TrainingJobKind,
				Name:       p.job.Name,
			},
			MinReplicas: ptr.To(least),
			MaxReplicas: max(ptr.Deref(elastic.MaxReplicas, least), least),
			Metrics:     elastic.DeepCopy().Metrics,
		},
	})
}

// removeAutoscaler removes it wherever nothing may scale.
func (p *planner) removeAutoscaler(reason string) {
	for _, autoscaler := range plan.ChildrenOf[*autoscalingv2.HorizontalPodAutoscaler](p.observed) {
		p.remove(autoscaler, reason)
	}
}
