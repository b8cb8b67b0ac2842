package integration

import (
	"context"
	"maps"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

const (
	queueLabel      = "kueue.x-k8s.io/queue-name"
	podSetLabel     = "kueue.x-k8s.io/podset"
	workloadKey     = "kueue.x-k8s.io/workload"
	topologyRequest = "kueue.x-k8s.io/podset-required-topology"
	topologyGate    = "kueue.x-k8s.io/topology"
)

// queue plays Kueue's reconciler and its ungater for one job, in one version of
// the API: it knows where the templates are, and the job's suspend field.
type queue struct {
	version, ns, name string
	// templates returns the pod templates of a job by role.
	templates func(job *unstructured.Unstructured) map[string]map[string]any
	// original holds the templates as they were before the job was admitted.
	original map[string]map[string]any
}

func alphaTemplates(job *unstructured.Unstructured) map[string]map[string]any {
	templates := map[string]map[string]any{}
	for role, spec := range valueAt(job, "spec", "pytorchReplicaSpecs").(map[string]any) {
		templates[role] = spec.(map[string]any)["template"].(map[string]any)
	}
	return templates
}

func hubTemplates(job *unstructured.Unstructured) map[string]map[string]any {
	templates := map[string]map[string]any{}
	for _, role := range valueAt(job, "spec", "roles").([]any) {
		role := role.(map[string]any)
		templates[role["name"].(string)] = role["template"].(map[string]any)
	}
	return templates
}

// edit changes the job by one patch.
func (q *queue) edit(ctx context.Context, change func(job *unstructured.Unstructured)) {
	GinkgoHelper()
	job := get(ctx, q.version, v1.TrainingJobKind, q.ns, q.name)
	before := job.DeepCopy()
	change(job)
	Expect(k8s.Patch(ctx, job, client.MergeFrom(before))).To(Succeed())
}

// admit releases the job to a flavor of nodes: suspend and what the flavor adds
// to each template are one write.
func (q *queue) admit(ctx context.Context, flavor string) {
	GinkgoHelper()
	q.edit(ctx, func(job *unstructured.Unstructured) {
		q.original = map[string]map[string]any{}
		for role, template := range q.templates(job) {
			copied := (&unstructured.Unstructured{Object: template}).DeepCopy().Object
			q.original[role] = copied
			merge(template, []string{"metadata", "labels"}, map[string]any{podSetLabel: role})
			merge(template, []string{"metadata", "annotations"}, map[string]any{workloadKey: "job-" + q.name})
			merge(template, []string{"spec", "nodeSelector"}, map[string]any{"pool.example/flavor": flavor})
			spec := template["spec"].(map[string]any)
			spec["tolerations"] = []any{map[string]any{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}}
			spec["schedulingGates"] = []any{map[string]any{"name": topologyGate}}
		}
		Expect(unstructured.SetNestedField(job.Object, false, "spec", "runPolicy", "suspend")).To(Succeed())
	})
}

// evict suspends the job and takes back what the flavor added, by one write.
func (q *queue) evict(ctx context.Context) {
	GinkgoHelper()
	q.edit(ctx, func(job *unstructured.Unstructured) {
		for role, template := range q.templates(job) {
			clear(template)
			maps.Copy(template, q.original[role])
		}
		Expect(unstructured.SetNestedField(job.Object, true, "spec", "runPolicy", "suspend")).To(Succeed())
	})
}

// ungate lets the pods go to nodes of its choice.
func (q *queue) ungate(ctx context.Context) {
	GinkgoHelper()
	for _, pod := range q.pods(ctx) {
		before := pod.DeepCopy()
		pod.Spec.SchedulingGates = nil
		pod.Spec.NodeSelector["kubernetes.io/hostname"] = "node-" + pod.Labels[v1.IndexLabel]
		Expect(k8s.Patch(ctx, &pod, client.StrategicMergeFrom(before))).To(Succeed())
	}
}

func merge(object map[string]any, path []string, values map[string]any) {
	GinkgoHelper()
	there, _, err := unstructured.NestedMap(object, path...)
	Expect(err).NotTo(HaveOccurred())
	if there == nil {
		there = map[string]any{}
	}
	maps.Copy(there, values)
	Expect(unstructured.SetNestedMap(object, there, path...)).To(Succeed())
}

func (q *queue) pods(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	return podsOf(ctx, NewGomega(func(message string, _ ...int) { Fail(message) }), q.ns, q.name)
}

func (q *queue) eventuallyPods(ctx context.Context, matches OmegaMatcher) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) { g.Expect(podsOf(ctx, g, q.ns, q.name)).To(matches) }).WithContext(ctx).Should(Succeed())
}

func (q *queue) eventuallyPhase(ctx context.Context, phase v1.Phase) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		g.Expect(valueAt(get(ctx, q.version, v1.TrainingJobKind, q.ns, q.name), "status", "phase")).To(Equal(string(phase)))
	}).WithContext(ctx).Should(Succeed())
}

// of matches the pods of a flavor.
func of(flavor string) OmegaMatcher {
	return And(HaveLen(3), HaveEach(And(
		HaveField("Spec.NodeSelector", HaveKeyWithValue("pool.example/flavor", flavor)),
		HaveField("Spec.Tolerations", ContainElement(HaveField("Key", "nvidia.com/gpu"))),
		HaveField("Spec.SchedulingGates", ConsistOf(corev1.PodSchedulingGate{Name: topologyGate})),
		HaveField("Annotations", And(HaveKey(workloadKey), HaveKeyWithValue(topologyRequest, "topology.example/rack"))),
		HaveField("Labels", And(HaveKey(podSetLabel), HaveKey(v1.IndexLabel))),
		HaveField("DeletionTimestamp", BeNil()),
	)))
}

var _ = Describe("a job in a queue", func() {
	const annotated = `        metadata:
          annotations: {kueue.x-k8s.io/podset-required-topology: topology.example/rack}
`
	DescribeTable("starts when it is admitted, and gives everything back when it is evicted", func(ctx context.Context, q queue, manifest string) {
		q.ns = newNamespace(ctx, nil)
		mustKubectl(ctx, manifest, "apply", "-n", q.ns, "-f", "-")
		mustKubectl(ctx, "", "label", "-n", q.ns, "tj/"+q.name, queueLabel+"=team-a")
		q.eventuallyPhase(ctx, v1.PhaseSuspended)
		before := get(ctx, q.version, v1.TrainingJobKind, q.ns, q.name)
		q.eventuallyPods(ctx, BeEmpty())

		By("admitting it")
		q.admit(ctx, "reserved")
		q.eventuallyPods(ctx, of("reserved"))
		Expect(valueAt(get(ctx, "v1", v1.TrainingJobKind, q.ns, q.name), "metadata", "labels")).To(HaveKeyWithValue(queueLabel, "team-a"))

		By("ungating its pods, which stay the same")
		uids := map[string]string{}
		for _, pod := range q.pods(ctx) {
			uids[pod.Name] = string(pod.UID)
		}
		q.ungate(ctx)
		for _, pod := range q.pods(ctx) {
			fixtures.Running()(&pod)
			Expect(k8s.Status().Update(ctx, &pod)).To(Succeed())
		}
		q.eventuallyPhase(ctx, v1.PhaseRunning)
		Consistently(func(g Gomega, ctx context.Context) {
			for _, pod := range podsOf(ctx, g, q.ns, q.name) {
				g.Expect(uids).To(HaveKeyWithValue(pod.Name, string(pod.UID)))
				g.Expect(pod.Spec.NodeSelector).To(HaveKeyWithValue("kubernetes.io/hostname", "node-"+pod.Labels[v1.IndexLabel]))
			}
		}).WithContext(ctx).WithTimeout(time.Second).Should(Succeed())

		By("refusing what nobody but the queue may do, and only while it is suspended")
		out, err := kubectl(ctx, "", "patch", "-n", q.ns, "trainingjobs.v1.penstock.dev/"+q.name, "--type=json",
			`-p=[{"op":"add","path":"/spec/roles/0/template/spec/priorityClassName","value":"high"}]`)
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("cannot change while the job is not suspended"))

		By("evicting it")
		q.evict(ctx)
		q.eventuallyPhase(ctx, v1.PhaseSuspended)
		q.eventuallyPods(ctx, Or(BeEmpty(), HaveEach(HaveField("DeletionTimestamp", Not(BeNil())))))
		// Nobody stops the containers here.
		Expect(k8s.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(q.ns), client.GracePeriodSeconds(0))).To(Succeed())
		after := get(ctx, q.version, v1.TrainingJobKind, q.ns, q.name)
		Expect(after.Object["spec"]).To(Equal(before.Object["spec"]))

		By("admitting it again, elsewhere, and letting it end")
		q.admit(ctx, "spot")
		q.eventuallyPods(ctx, of("spot"))
		for _, pod := range q.pods(ctx) {
			fixtures.Succeeded()(&pod)
			Expect(k8s.Status().Update(ctx, &pod)).To(Succeed())
		}
		q.eventuallyPhase(ctx, v1.PhaseSucceeded)
	},
		Entry("through v1alpha1", queue{version: "v1alpha1", name: "alpha", templates: alphaTemplates},
			alphaJob("alpha", "backoffLimit: 3", "backoffLimit: 3\n    suspend: true",
				"        metadata:\n          creationTimestamp: null\n", annotated,
				"      replicas: 2\n      restartPolicy: OnFailure\n      template:\n", "      replicas: 2\n      restartPolicy: OnFailure\n      template:\n"+annotated)),
		Entry("through v1", queue{version: "v1", name: "hub", templates: hubTemplates},
			hubJob("hub", "  framework: PyTorch\n", "  framework: PyTorch\n  runPolicy: {suspend: true}\n", "replicas: 2", "replicas: 3",
				"    template:\n", "    template:\n      metadata:\n        annotations: {kueue.x-k8s.io/podset-required-topology: topology.example/rack}\n")),
		Entry("through v1alpha1, with what only v1 can say", queue{version: "v1alpha1", name: "both", templates: alphaTemplates},
			hubJob("both", "  framework: PyTorch\n", "  framework: PyTorch\n  runPolicy: {suspend: true}\n", "replicas: 2", "replicas: 3",
				"    template:\n", "    template:\n      metadata:\n        annotations: {kueue.x-k8s.io/podset-required-topology: topology.example/rack}\n")),
	)
})
