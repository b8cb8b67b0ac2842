package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// metricsAPI stands in for a metrics server: the API server itself keeps the
// metrics that a spec writes, in the form in which autoscalers read them.
const metricsAPI = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pods.metrics.k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, a test's"}
spec:
  group: metrics.k8s.io
  scope: Namespaced
  names: {kind: PodMetrics, listKind: PodMetricsList, plural: pods, singular: pod}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// podUses writes the memory that a worker of a job uses.
func podUses(ctx context.Context, ns, name string, index int, memory string) {
	GinkgoHelper()
	Eventually(func() (string, error) {
		return kubectl(ctx, fmt.Sprintf(`apiVersion: metrics.k8s.io/v1beta1
kind: PodMetrics
metadata:
  name: %[1]s-worker-%[2]d
  labels: {%[3]s: %[1]s, %[4]s: worker}
timestamp: "2026-01-01T00:00:00Z"
window: 30s
containers: [{name: pytorch, usage: {memory: %[5]s, cpu: "1"}}]
`, name, index, v1.JobNameLabel, v1.RoleLabel, memory), "apply", "-n", ns, "-f", "-")
	}).WithContext(ctx).Should(ContainSubstring("worker"))
}

var _ = Describe("an autoscaler", Serial, func() {
	It("grows an elastic job within its bounds, and warns of nothing", func(ctx context.Context) {
		mustKubectl(ctx, metricsAPI, "apply", "-f", "-")
		DeferCleanup(func(ctx context.Context) {
			mustKubectl(ctx, "", "delete", "crd", "pods.metrics.k8s.io")
		})
		ns := newNamespace(ctx)
		podUses(ctx, ns, "auto", 0, "8Gi")
		submit(ctx, ns, "auto", forever, fixtures.Workers(1), fixtures.Elastic(1, 3), func(job *v1.TrainingJob) {
			job.Spec.Elastic.Metrics = []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceMemory, Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("2Gi")),
				}},
			}}
		})
		grown := eventuallyJob(ctx, ns, "auto", allReady("3/3"))
		Expect(grown.Spec.Elastic.Replicas).To(HaveValue(Equal(int32(3))))

		var events corev1.EventList
		Expect(k8s.List(ctx, &events, client.InNamespace(ns))).To(Succeed())
		for _, event := range events.Items {
			// The controller of autoscalers learns of new kinds within 30 seconds,
			// and this cluster has just been given them.
			if event.InvolvedObject.Kind == "HorizontalPodAutoscaler" && !strings.Contains(event.Message, "no matches for kind") {
				Expect(event.Type).To(Equal(corev1.EventTypeNormal), "%s: %s", event.Reason, event.Message)
			}
		}

		By("healing the autoscaler, and taking it away while the job is suspended")
		mustKubectl(ctx, "", "patch", "hpa", "-n", ns, "auto", "--type=merge", "-p", `{"spec":{"maxReplicas":9,"minReplicas":2}}`)
		hpa := func(g Gomega, ctx context.Context) autoscalingv2.HorizontalPodAutoscalerSpec {
			var object autoscalingv2.HorizontalPodAutoscaler
			g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "auto"}, &object)).To(Succeed())
			return object.Spec
		}
		Eventually(hpa).WithContext(ctx).Should(And(HaveField("MaxReplicas", int32(3)), HaveField("MinReplicas", HaveValue(Equal(int32(1))))))
		patch(ctx, ns, "tj/auto", `{"spec":{"runPolicy":{"suspend":true}}}`)
		Eventually(func(ctx context.Context) error {
			return k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "auto"}, &autoscalingv2.HorizontalPodAutoscaler{})
		}).WithContext(ctx).Should(MatchError(ContainSubstring("not found")))
	})
})

var _ = Describe("an elastic job", func() {
	It("ends although a worker finds no room", func(ctx context.Context) {
		newPool(ctx, "crowded", "a", "a")
		ns := newNamespace(ctx)
		submit(ctx, ns, "crowded", fixtures.Elastic(1, 4), fixtures.Scaled(3), in("crowded"),
			simulate(map[string]string{cluster.SimulateRunSeconds: "8"}))
		eventuallyJob(ctx, ns, "crowded", allReady("2/3"))
		// Or the third would take the place of the first that ends.
		mustKubectl(ctx, "", "cordon", "crowded-a-0", "crowded-a-1")
		done := eventuallyJob(ctx, ns, "crowded", inPhase(v1.PhaseSucceeded))
		Expect(done.Status.Roles[0].Succeeded).To(HaveValue(Equal(int32(2))))
	})

	It("is judged by policy when it is scaled", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "judged", forever, fixtures.Workers(1), fixtures.Elastic(1, 8))
		eventuallyJob(ctx, ns, "judged", allReady("1/1"))
		mustKubectl(ctx, fmt.Sprintf(`apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: few-%[1]s}
spec:
  match:
    resources: [{group: penstock.dev, kinds: [TrainingJob], subresources: ["", scale]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  action: Deny
  rego: |
    package few
    violation contains {"msg": "is more than 2 workers", "field": "spec.elastic.replicas", "fix": "ask for fewer"} if {
      input.object.spec.elastic.replicas > 2
    }
`, ns), "apply", "-f", "-")
		DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "", "delete", "workloadpolicy", "few-"+ns) })
		Eventually(func(ctx context.Context) string {
			out, _ := kubectl(ctx, "", "scale", "-n", ns, "tj/judged", "--replicas=3", "--dry-run=server")
			return out
		}).WithContext(ctx).Should(ContainSubstring("is more than 2 workers"))
		Expect(now(ctx, job(ns, "judged")).Spec.Elastic.Replicas).To(HaveValue(Equal(int32(1))))
		mustKubectl(ctx, "", "scale", "-n", ns, "tj/judged", "--replicas=2")
		eventuallyJob(ctx, ns, "judged", allReady("2/2"))
	})
})
