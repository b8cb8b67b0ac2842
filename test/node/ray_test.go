package node

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// timeToJoin is for probes, which wait 10 seconds, and the delays of the kubelet.
const timeToJoin = 3 * time.Minute

// launch makes a Ray cluster whose pods run what stands in for Ray.
func launch(ctx context.Context, ns, name string, mods ...fixtures.ClusterMod) {
	GinkgoHelper()
	cluster := fixtures.RayCluster(name, mods...)
	cluster.ObjectMeta = metav1.ObjectMeta{Namespace: ns, Name: name}
	// Of this version on, probes ask one URL; there is no wget here.
	cluster.Spec.RayVersion = new("2.53.0")
	for i := range cluster.Spec.Roles {
		spec := &cluster.Spec.Roles[i].Template.Spec
		spec.TerminationGracePeriodSeconds = new(int64(2))
		container := &spec.Containers[0]
		container.Image, container.ImagePullPolicy = rayImage, corev1.PullNever
		container.Resources.Limits = corev1.ResourceList{
			corev1.ResourceCPU: fixtures.Quantity("150m"), corev1.ResourceMemory: fixtures.Quantity("64Mi"),
		}
	}
	Expect(k8s.Create(ctx, cluster)).To(Succeed())
}

// isReady waits until a cluster runs with all its pods.
func isReady(ctx context.Context, ns, name, count string) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		cluster := &v1.RayCluster{}
		g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, cluster)).To(Succeed())
		g.Expect(cluster.Status.ObservedGeneration).To(Equal(cluster.Generation))
		g.Expect(cluster.Status.Phase).To(Equal(v1.PhaseRunning))
		g.Expect(cluster.Status.RolesReady).To(Equal(count))
	}).WithContext(ctx).WithTimeout(timeToJoin).Should(Succeed())
}

// headSays reads what the head of a cluster has printed; for Eventually.
func headSays(ns, name string) func(Gomega, context.Context) []string {
	return func(g Gomega, ctx context.Context) []string {
		out, _, err := control.Kubectl(ctx, "", "logs", "-n", ns, name+"-head")
		g.Expect(err).NotTo(HaveOccurred())
		return strings.Split(strings.TrimSpace(out), "\n")
	}
}

var _ = Describe("the nodes of a Ray cluster", func() {
	joined := ContainElements("a-small-0-0 of small joined with 1 CPUs", "a-small-1-0 of small joined with 1 CPUs")

	It("join the head by the address that they are given, and the next head when it is lost", func(ctx context.Context) {
		ns := newNamespace(ctx)
		launch(ctx, ns, "a")
		isReady(ctx, ns, "a", "3/3")
		Eventually(headSays(ns, "a")).WithContext(ctx).Should(joined)

		By("the head is deleted: the workers' processes end, and are restarted in place")
		head, worker := &corev1.Pod{}, &corev1.Pod{}
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "a-head"}, head)).To(Succeed())
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "a-small-0-0"}, worker)).To(Succeed())
		Expect(k8s.Delete(ctx, head)).To(Succeed())
		Eventually(headSays(ns, "a")).WithContext(ctx).WithTimeout(timeToJoin).Should(joined)
		isReady(ctx, ns, "a", "3/3")
		uid := worker.UID
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(worker), worker)).To(Succeed())
		Expect(worker.UID).To(Equal(uid))
		Expect(worker.Status.ContainerStatuses[0].RestartCount).NotTo(BeZero())
	})

	It("are made anew with the head where nobody restarts them", func(ctx context.Context) {
		ns := newNamespace(ctx)
		never := fixtures.RayRestart(v1.RestartNever)
		launch(ctx, ns, "a", fixtures.RayGroup(v1.RoleHead, never), fixtures.RayGroup("small", never))
		isReady(ctx, ns, "a", "3/3")
		worker := &corev1.Pod{}
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "a-small-0-0"}, worker)).To(Succeed())
		Expect(k8s.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a-head"}})).To(Succeed())
		Eventually(func(g Gomega, ctx context.Context) {
			next := &corev1.Pod{}
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(worker), next)).To(Succeed())
			g.Expect(next.UID).NotTo(Equal(worker.UID))
		}).WithContext(ctx).Should(Succeed())
		isReady(ctx, ns, "a", "3/3")
		Eventually(headSays(ns, "a")).WithContext(ctx).Should(joined)
	})
})
