package integration

import (
	"context"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// submitJob creates a job in a namespace.
func submitJob(ctx context.Context, ns, name string, mods ...fixtures.JobMod) *v1.TrainingJob {
	GinkgoHelper()
	job := fixtures.TrainingJob(name, mods...)
	job.Namespace, job.UID, job.Generation, job.CreationTimestamp = ns, "", 0, metav1.Time{}
	Expect(k8s.Create(ctx, job)).To(Succeed())
	return job
}

// gangOf asks for all pods together, by a scheduler.
func gangOf(scheduler string) fixtures.JobMod {
	return func(job *v1.TrainingJob) { job.Spec.Gang = &v1.Gang{Scheduler: scheduler} }
}

// podsOf reads the pods of a job.
func podsOf(ctx context.Context, g Gomega, ns, name string) []corev1.Pod {
	var pods corev1.PodList
	g.Expect(k8s.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{v1.JobNameLabel: name})).To(Succeed())
	return pods.Items
}

// eventuallyGang waits until the condition of a job's gang is as it says.
func eventuallyGang(ctx context.Context, ns, name, reason, message string) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		var job v1.TrainingJob
		g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, &job)).To(Succeed())
		c := meta.FindStatusCondition(job.Status.Conditions, v1.TrainingJobGangScheduledCondition)
		g.Expect(c).NotTo(BeNil())
		g.Expect([]string{c.Reason, c.Message}).To(HaveExactElements(Equal(reason), ContainSubstring(message)))
	}).WithContext(ctx).Should(Succeed())
}

// bind places the pods of a job, as a scheduler would.
func bind(ctx context.Context, ns, name string) {
	GinkgoHelper()
	for _, pod := range podsOf(ctx, NewGomega(func(message string, _ ...int) { Fail(message) }), ns, name) {
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "node"}}
		Expect(clientset.CoreV1().Pods(ns).Bind(ctx, binding, metav1.CreateOptions{})).To(Succeed())
	}
}

// logged waits until the manager has logged a line with all of these words
// since a length of its log.
func logged(ctx context.Context, since int, words ...string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		content, err := os.ReadFile(manager.LogPath())
		g.Expect(err).NotTo(HaveOccurred())
		matchers := []OmegaMatcher{}
		for _, word := range words {
			matchers = append(matchers, ContainSubstring(word))
		}
		g.Expect(strings.Split(string(content[since:]), "\n")).To(ContainElement(And(matchers...)))
	}).WithContext(ctx).Should(Succeed())
}

func logLength() int {
	GinkgoHelper()
	info, err := os.Stat(manager.LogPath())
	Expect(err).NotTo(HaveOccurred())
	return int(info.Size())
}

var _ = Describe("a gang scheduler", Serial, func() {
	plugins := schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"}
	volcano := schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}
	read := func(g Gomega, ctx context.Context, kind schema.GroupVersionKind, ns, name string) *unstructured.Unstructured {
		group := &unstructured.Unstructured{}
		group.SetGroupVersionKind(kind)
		g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, group)).To(Succeed())
		return group
	}
	minMember := func(g Gomega, ctx context.Context, kind schema.GroupVersionKind, ns, name string) int64 {
		n, _, err := unstructured.NestedInt64(read(g, ctx, kind, ns, name).Object, "spec", "minMember")
		g.Expect(err).NotTo(HaveOccurred())
		return n
	}

	It("is used once it comes, and not missed when it goes", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		sized := fixtures.Template(func(template *corev1.PodTemplateSpec) {
			template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
		})
		submitJob(ctx, ns, "early", gangOf(""))
		eventuallyGang(ctx, ns, "early", v1.GangUnsupportedReason, "no gang scheduler is there")
		Eventually(func(g Gomega, ctx context.Context) { g.Expect(podsOf(ctx, g, ns, "early")).To(HaveLen(2)) }).WithContext(ctx).Should(Succeed())

		By("installing the kinds of two")
		since := logLength()
		definitions, err := os.ReadFile("testdata/podgroups.yaml")
		Expect(err).NotTo(HaveOccurred())
		mustKubectl(ctx, string(definitions), "apply", "-f", "-")
		DeferCleanup(func(ctx context.Context) {
			_, _ = kubectl(ctx, "", "delete", "crd", "podgroups.scheduling.x-k8s.io", "podgroups.scheduling.volcano.sh", "--ignore-not-found")
		})
		logged(ctx, since, "A kind is served", plugins.Group)
		logged(ctx, since, "A kind is served", volcano.Group)

		By("placing pods through scheduler-plugins")
		submitJob(ctx, ns, "plugged", gangOf(""), sized)
		Eventually(func(g Gomega, ctx context.Context) {
			pods := podsOf(ctx, g, ns, "plugged")
			g.Expect(pods).To(HaveLen(2))
			g.Expect(pods).To(HaveEach(HaveField("Labels", HaveKeyWithValue("scheduling.x-k8s.io/pod-group", "plugged"))))
			g.Expect(valueAt(read(g, ctx, plugins, ns, "plugged"), "spec", "minResources")).To(Equal(map[string]any{"cpu": "1"}))
		}).WithContext(ctx).Should(Succeed())
		eventuallyGang(ctx, ns, "plugged", v1.GangPendingReason, "0 of 2 pods are placed; scheduler-plugins places them when it can place 2")
		bind(ctx, ns, "plugged")
		eventuallyGang(ctx, ns, "plugged", v1.GangScheduledReason, "2 of 2 pods")

		By("healing what somebody changes")
		group := read(NewWithT(GinkgoT()), ctx, plugins, ns, "plugged")
		Expect(k8s.Patch(ctx, group, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"minMember":1}}`)))).To(Succeed())
		Eventually(minMember).WithArguments(plugins, ns, "plugged").WithContext(ctx).Should(Equal(int64(2)))
		Expect(k8s.Delete(ctx, group)).To(Succeed())
		Eventually(minMember).WithArguments(plugins, ns, "plugged").WithContext(ctx).Should(Equal(int64(2)))

		By("waiting for Volcano's queue")
		submitJob(ctx, ns, "queued", gangOf("volcano"), sized, func(job *v1.TrainingJob) { job.Spec.Gang.QueueName = "team-a" })
		eventuallyGang(ctx, ns, "queued", v1.GangPendingReason, "its queue has not admitted the group yet")
		group = read(NewWithT(GinkgoT()), ctx, volcano, ns, "queued")
		Expect(valueAt(group, "spec")).To(Equal(map[string]any{"minMember": int64(2), "minResources": map[string]any{"cpu": "1"}, "queue": "team-a"}))
		Consistently(func(g Gomega, ctx context.Context) { g.Expect(podsOf(ctx, g, ns, "queued")).To(BeEmpty()) }).WithContext(ctx).WithTimeout(time.Second).Should(Succeed())
		Expect(unstructured.SetNestedField(group.Object, "Inqueue", "status", "phase")).To(Succeed())
		Expect(k8s.Status().Update(ctx, group)).To(Succeed())
		Eventually(func(g Gomega, ctx context.Context) {
			pods := podsOf(ctx, g, ns, "queued")
			g.Expect(pods).To(HaveLen(2))
			g.Expect(pods).To(HaveEach(And(HaveField("Spec.SchedulerName", "volcano"),
				HaveField("Annotations", HaveKeyWithValue("scheduling.k8s.io/group-name", "queued")))))
		}).WithContext(ctx).Should(Succeed())

		By("leaving alone pods that were made before")
		mustKubectl(ctx, "", "label", "-n", ns, "tj/early", "look=again")
		eventuallyGang(ctx, ns, "early", v1.GangUngroupedReason, "the pods are of no pod group")

		By("taking the kinds away")
		since = logLength()
		mustKubectl(ctx, "", "delete", "crd", "podgroups.scheduling.x-k8s.io", "podgroups.scheduling.volcano.sh")
		logged(ctx, since, "not served any more", plugins.Group)
		logged(ctx, since, "not served any more", volcano.Group)
		// While they go, the API server forbids making the groups again.
		upheavals = append(upheavals, [2]int{since, logLength()})
		submitJob(ctx, ns, "late", gangOf(""))
		eventuallyGang(ctx, ns, "late", v1.GangUnsupportedReason, "no gang scheduler is there")
		for _, name := range []string{"plugged", "queued", "late"} {
			Expect(k8s.Delete(ctx, &v1.TrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}})).To(Succeed())
		}
	})
})
