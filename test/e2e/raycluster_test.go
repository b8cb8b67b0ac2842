package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// launch applies a Ray cluster with kubectl.
func launch(ctx context.Context, ns string, cluster *v1.RayCluster) {
	GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cluster)
	Expect(err).NotTo(HaveOccurred())
	annotations := map[string]any{}
	for key, value := range cluster.Annotations {
		annotations[key] = value
	}
	content["metadata"] = map[string]any{"name": cluster.Name, "annotations": annotations}
	delete(content, "status")
	text, err := json.Marshal(content)
	Expect(err).NotTo(HaveOccurred())
	mustKubectl(ctx, string(text), "apply", "-n", ns, "-f", "-")
}

// rayCluster reads a cluster; for Eventually.
func rayCluster(ns, name string) func(Gomega, context.Context) *v1.RayCluster {
	return func(g Gomega, ctx context.Context) *v1.RayCluster {
		cluster := &v1.RayCluster{}
		g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, cluster)).To(Succeed())
		return cluster
	}
}

func eventuallyCluster(ctx context.Context, ns, name string, matches ...OmegaMatcher) *v1.RayCluster {
	GinkgoHelper()
	Eventually(rayCluster(ns, name)).WithContext(ctx).Should(And(matches...))
	return now(ctx, rayCluster(ns, name))
}

// observed matches a cluster whose status is of its newest spec.
func observed() OmegaMatcher {
	return WithTransform(func(c *v1.RayCluster) bool { return c.Status.ObservedGeneration == c.Generation }, BeTrue())
}

// rayPods reads the pods of a cluster by name; for Eventually.
func rayPods(ns, name string) func(Gomega, context.Context) map[string]corev1.Pod {
	return func(g Gomega, ctx context.Context) map[string]corev1.Pod {
		var list corev1.PodList
		g.Expect(k8s.List(ctx, &list, client.InNamespace(ns), client.MatchingLabels{v1.ClusterNameLabel: name})).To(Succeed())
		byName := map[string]corev1.Pod{}
		for _, pod := range list.Items {
			byName[pod.Name] = pod
		}
		return byName
	}
}

// jobEvents reads the reasons of the events of a job; for Eventually.
func jobEvents(ns, name string) func(Gomega, context.Context) []string {
	return func(g Gomega, ctx context.Context) []string {
		var list corev1.EventList
		g.Expect(k8s.List(ctx, &list, client.InNamespace(ns))).To(Succeed())
		var reasons []string
		for _, event := range list.Items {
			if event.InvolvedObject.Kind == "Job" && event.InvolvedObject.Name == name {
				reasons = append(reasons, event.Reason)
			}
		}
		return reasons
	}
}

var _ = Describe("a Ray cluster", func() {
	It("takes at most 7 creations and status writes to be ready, and none after that", func(ctx context.Context) {
		ns := newNamespace(ctx)
		launch(ctx, ns, fixtures.RayCluster("a"))
		cluster := eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning), allReady("3/3"), observed())
		Expect(cluster.Status.Head).To(And(
			HaveField("PodName", "a-head"), HaveField("PodIP", Not(BeEmpty())), HaveField("ServiceName", "a-head-svc")))
		Expect(cluster.Status.Resources.CPU.String()).To(Equal("3"))
		Expect(meta.IsStatusConditionTrue(cluster.Status.Conditions, v1.RayClusterReadyCondition)).To(BeTrue())
		mustKubectl(ctx, "", "annotate", "-n", ns, "rayclusters.penstock.dev", "a", "touched=1")
		before := now(ctx, rayCluster(ns, "a"))
		Consistently(rayCluster(ns, "a")).WithContext(ctx).WithTimeout(2 * time.Second).Should(HaveField("ResourceVersion", Equal(before.ResourceVersion)))
	})

	It("has exactly one new head when the head is deleted", func(ctx context.Context) {
		ns := newNamespace(ctx)
		launch(ctx, ns, fixtures.RayCluster("a"))
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning))
		before := now(ctx, rayPods(ns, "a"))
		mustKubectl(ctx, "", "delete", "-n", ns, "pod", "a-head", "--wait=false")
		Eventually(rayPods(ns, "a")).WithContext(ctx).Should(HaveKeyWithValue("a-head", anotherUID(before["a-head"].UID)))
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning), allReady("3/3"))
		after := now(ctx, rayPods(ns, "a"))
		Expect(after).To(HaveLen(3))
		Expect(after["a-small-0-0"].UID).To(Equal(before["a-small-0-0"].UID), "workers that restart in place stay")
	})

	It("withdraws ready while it has not all pods, also where a quota keeps them from being made", func(ctx context.Context) {
		ns := newNamespace(ctx)
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods", Namespace: ns}, Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourcePods: fixtures.Quantity("3")},
		}}
		Expect(k8s.Create(ctx, quota)).To(Succeed())
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
			g.Expect(quota.Status.Hard).NotTo(BeEmpty())
		}).WithContext(ctx).Should(Succeed())
		launch(ctx, ns, fixtures.RayCluster("a"))
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning))
		launch(ctx, ns, fixtures.RayCluster("a", fixtures.RayGroup("small", fixtures.Replicas(3))))
		cluster := eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseScaling), allReady("3/4"), observed())
		Expect(meta.IsStatusConditionFalse(cluster.Status.Conditions, v1.RayClusterReadyCondition)).To(BeTrue())
		Eventually(rayCluster(ns, "a")).WithContext(ctx).Should(
			WithTransform(func(c *v1.RayCluster) *metav1.Condition {
				return meta.FindStatusCondition(c.Status.Conditions, v1.RayClusterInvalidCondition)
			}, And(Not(BeNil()), HaveField("Reason", v1.ChildForbiddenReason))))
		launch(ctx, ns, fixtures.RayCluster("a"))
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning), allReady("3/3"))
	})

	It("makes its head first under a quota, and room for it when it is lost", func(ctx context.Context) {
		ns := newNamespace(ctx)
		mustKubectl(ctx, "", "create", "-n", ns, "quota", "q", "--hard=pods=3")
		Eventually(func(ctx context.Context) string {
			return mustKubectl(ctx, "", "get", "-n", ns, "quota", "q", "-o", "jsonpath={.status.hard.pods}")
		}).WithContext(ctx).Should(Equal("3"))
		launch(ctx, ns, fixtures.RayCluster("a", fixtures.RayGroup("small", fixtures.Replicas(6))))
		eventuallyCluster(ctx, ns, "a", allReady("3/7"))
		Expect(now(ctx, rayPods(ns, "a"))).To(And(HaveLen(3), HaveKey("a-head")))

		By("filling the room of a head that is lost")
		mustKubectl(ctx, "", "patch", "-n", ns, "quota", "q", "-p", `{"spec":{"hard":{"pods":"2"}}}`)
		Eventually(func(ctx context.Context) string {
			return mustKubectl(ctx, "", "get", "-n", ns, "quota", "q", "-o", "jsonpath={.status.hard.pods}")
		}).WithContext(ctx).Should(Equal("2"))
		head := now(ctx, rayPods(ns, "a"))["a-head"]
		mustKubectl(ctx, "", "delete", "-n", ns, "pod", "a-head", "--wait=false")
		// A quota may count a pod late that is gone, or that was made.
		Eventually(rayPods(ns, "a")).WithContext(ctx).WithTimeout(time.Minute).Should(HaveKeyWithValue("a-head", anotherUID(head.UID)))
	})

	It("gives its head the labels back that services find it by", func(ctx context.Context) {
		ns := newNamespace(ctx)
		launch(ctx, ns, fixtures.RayCluster("a"))
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning))
		before := now(ctx, rayPods(ns, "a"))["a-head"]
		mustKubectl(ctx, "", "label", "-n", ns, "pod", "a-head", "--overwrite", "ray.io/cluster-", v1.ManagedByLabel+"-", "penstock.dev/role=x")
		Eventually(rayPods(ns, "a")).WithContext(ctx).Should(HaveKeyWithValue("a-head", And(
			HaveField("Labels", Equal(before.Labels)), HaveField("UID", Equal(before.UID)))))
	})

	It("tells what its deletion waits for", func(ctx context.Context) {
		ns := newNamespace(ctx)
		mustKubectl(ctx, "", "create", "-n", ns, "quota", "q", "--hard=count/jobs.batch=0")
		launch(ctx, ns, fixtures.RayCluster("a", fixtures.InRedis()))
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning))
		mustKubectl(ctx, "", "delete", "-n", ns, "rayclusters.penstock.dev", "a", "--wait=false")
		cluster := eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseDeleting), allReady("0/3"),
			WithTransform(func(c *v1.RayCluster) bool {
				return meta.IsStatusConditionTrue(c.Status.Conditions, v1.InvalidCondition)
			}, BeTrue()))
		Eventually(rayCluster(ns, "a")).WithContext(ctx).Should(WithTransform(func(c *v1.RayCluster) string {
			return meta.FindStatusCondition(c.Status.Conditions, v1.RayClusterReadyCondition).Message
		}, Equal("the state of the cluster is being removed from Redis")))
		Expect(meta.FindStatusCondition(cluster.Status.Conditions, v1.InvalidCondition)).To(HaveField("Message", ContainSubstring("exceeded quota")))
		mustKubectl(ctx, "", "delete", "-n", ns, "quota", "q")
		Eventually(func(ctx context.Context) bool {
			return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "a"}, &v1.RayCluster{}))
		}).WithContext(ctx).WithTimeout(time.Minute).Should(BeTrue())
	})

	It("scales, and loses the pods of a group that is removed", func(ctx context.Context) {
		ns := newNamespace(ctx)
		launch(ctx, ns, fixtures.RayCluster("a", fixtures.RayGroup("gpu", fixtures.Replicas(2), fixtures.Hosts(2), fixtures.Limit("nvidia.com/gpu", "1"))))
		cluster := eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning), allReady("7/7"))
		Expect(cluster.Status.Resources.GPU.String()).To(Equal("4"))
		Expect(now(ctx, rayPods(ns, "a"))).To(HaveKey("a-gpu-1-1"))
		mustKubectl(ctx, "", "delete", "-n", ns, "pod", "a-gpu-1-1", "--wait=false")
		eventuallyCluster(ctx, ns, "a", Not(inPhase(v1.PhaseRunning)))
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning), allReady("7/7"))
		launch(ctx, ns, fixtures.RayCluster("a", fixtures.RayGroup("small", fixtures.Replicas(1))))
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning), allReady("2/2"), observed())
		Expect(now(ctx, rayPods(ns, "a"))).To(And(HaveLen(2), HaveKey("a-head"), HaveKey("a-small-0-0")))
		Expect(now(ctx, rayCluster(ns, "a")).Status.Resources.GPU.String()).To(Equal("0"))
	})

	It("gives its pods back while it is suspended, and keeps its address", func(ctx context.Context) {
		ns := newNamespace(ctx)
		launch(ctx, ns, fixtures.RayCluster("a"))
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning))
		patch(ctx, ns, "rayclusters.penstock.dev/a", `{"spec":{"runPolicy":{"suspend":true}}}`)
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseSuspended))
		Expect(now(ctx, rayPods(ns, "a"))).To(BeEmpty())
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "a-head-svc"}, &corev1.Service{})).To(Succeed())
		for _, suspend := range []string{"false", "true", "false"} {
			patch(ctx, ns, "rayclusters.penstock.dev/a", `{"spec":{"runPolicy":{"suspend":`+suspend+`}}}`)
		}
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning), allReady("3/3"), observed())
		Expect(now(ctx, rayPods(ns, "a"))).To(HaveLen(3))
	})

	It("replaces pods of an older template one by one", func(ctx context.Context) {
		ns := newNamespace(ctx)
		rolling := func(image string) *v1.RayCluster {
			return fixtures.RayCluster("a", fixtures.Upgrades(v1.UpgradeRollingUpdate), fixtures.RayGroup("small", fixtures.Replicas(3), fixtures.RayImage(image)))
		}
		launch(ctx, ns, rolling("ray:1"))
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning), allReady("4/4"))
		head := now(ctx, rayPods(ns, "a"))["a-head"].UID
		launch(ctx, ns, rolling("ray:2"))
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseUpgrading))
		Eventually(func(g Gomega, ctx context.Context) {
			ready := 0
			for _, pod := range rayPods(ns, "a")(g, ctx) {
				for _, c := range pod.Status.Conditions {
					if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
						ready++
					}
				}
			}
			if ready < 3 {
				StopTrying("more than one pod is missing").Now()
			}
			g.Expect(rayCluster(ns, "a")(g, ctx)).To(And(inPhase(v1.PhaseRunning), observed()))
		}).WithContext(ctx).Should(Succeed())
		for name, pod := range now(ctx, rayPods(ns, "a")) {
			if name == "a-head" {
				Expect(pod.UID).To(Equal(head))
			} else {
				Expect(pod.Spec.Containers[0].Image).To(Equal("ray:2"))
			}
		}
	})

	It("does what Ray's autoscaler writes, in the way that it writes it", func(ctx context.Context) {
		ns := newNamespace(ctx)
		launch(ctx, ns, fixtures.RayCluster("a", fixtures.Autoscaled(v1.RayAutoscalerV2), fixtures.RayGroup("small", fixtures.Between(0, 5))))
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning), allReady("3/3"))
		Expect(now(ctx, rayPods(ns, "a"))["a-head"].Spec.Containers).To(HaveLen(2))
		as := "--as=system:serviceaccount:" + ns + ":a-autoscaler"
		jsonPatch := func(change string) {
			GinkgoHelper()
			mustKubectl(ctx, "", "patch", as, "-n", ns, "rayclusters.v1alpha1.penstock.dev/a", "--type=json", "-p", change)
		}
		mustKubectl(ctx, "", "get", as, "-n", ns, "pods")
		jsonPatch(`[{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":4}]`)
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning), allReady("5/5"))
		jsonPatch(`[{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":3},
			{"op":"replace","path":"/spec/workerGroupSpecs/0/scaleStrategy","value":{"workersToDelete":["a-small-1-0"]}}]`)
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning), allReady("4/4"), observed())
		Expect(now(ctx, rayPods(ns, "a"))).NotTo(HaveKey("a-small-1-0"))
		jsonPatch(`[{"op":"replace","path":"/spec/workerGroupSpecs/0/scaleStrategy","value":{"workersToDelete":[]}}]`)
		Consistently(rayPods(ns, "a")).WithContext(ctx).WithTimeout(time.Second).Should(HaveLen(4))

		By("applying the manifest again, which leaves replicas to the autoscaler")
		launch(ctx, ns, fixtures.RayCluster("a", fixtures.Autoscaled(v1.RayAutoscalerV2), fixtures.RayGroup("small", fixtures.Between(0, 5),
			func(role *v1.RayRole) { role.Replicas = nil })))
		Expect(*now(ctx, rayCluster(ns, "a")).Spec.Roles[1].Replicas).To(BeEquivalentTo(3))
	})

	It("follows changes of its service", func(ctx context.Context) {
		ns := newNamespace(ctx)
		service := func(g Gomega, ctx context.Context) *corev1.Service {
			service := &corev1.Service{}
			g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "a-head-svc"}, service)).To(Succeed())
			return service
		}
		launch(ctx, ns, fixtures.RayCluster("a"))
		Eventually(service).WithContext(ctx).Should(HaveField("Spec.ClusterIP", corev1.ClusterIPNone))
		patch(ctx, ns, "rayclusters.penstock.dev/a", `{"spec":{"head":{"serviceType":"NodePort","serviceAnnotations":{"one":"1","two":"2"}}}}`)
		Eventually(service).WithContext(ctx).Should(And(
			HaveField("Spec.Type", corev1.ServiceTypeNodePort), HaveField("Annotations", And(HaveKey("one"), HaveKey("two")))))
		patch(ctx, ns, "rayclusters.penstock.dev/a", `{"spec":{"head":{"serviceAnnotations":{"two":null}}}}`)
		Eventually(service).WithContext(ctx).Should(HaveField("Annotations", And(HaveKey("one"), Not(HaveKey("two")))))
	})

	DescribeTable("is gone only when what it has in Redis is removed", func(ctx context.Context, cascade string) {
		ns := newNamespace(ctx)
		launch(ctx, ns, fixtures.RayCluster("a", fixtures.InRedis()))
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning), HaveField("Finalizers", ConsistOf(v1.RedisCleanupFinalizer)))
		mustKubectl(ctx, "", "delete", "-n", ns, "rayclusters.penstock.dev", "a", "--wait=false", "--cascade="+cascade)
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "a-redis-cleanup"}, &batchv1.Job{})).To(Succeed())
			g.Expect(rayPods(ns, "a")(g, ctx)).NotTo(HaveKey("a-head"))
		}).WithContext(ctx).Should(Succeed())
		Eventually(func(ctx context.Context) bool {
			return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "a"}, &v1.RayCluster{}))
		}).WithContext(ctx).Should(BeTrue())
		// The job goes with the cluster; what is said of it stays. That it was
		// made once, its one pod tells.
		Eventually(jobEvents(ns, "a-redis-cleanup")).WithContext(ctx).Should(ConsistOf("SuccessfulCreate", "Completed"))
	},
		Entry("in the background", "background"),
		Entry("in the foreground", "foreground"),
	)

	It("does not hold up a namespace that goes", func(ctx context.Context) {
		ns := newNamespace(ctx)
		launch(ctx, ns, fixtures.RayCluster("a", fixtures.InRedis()))
		eventuallyCluster(ctx, ns, "a", inPhase(v1.PhaseRunning))
		mustKubectl(ctx, "", "delete", "namespace", ns, "--wait=false")
		Eventually(func(ctx context.Context) bool {
			return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "a"}, &v1.RayCluster{}))
		}).WithContext(ctx).Should(BeTrue())
		mustKubectl(ctx, "", "create", "namespace", ns+"-again")
		mustKubectl(ctx, "", "delete", "namespace", ns+"-again", "--wait=false")
	})

	It("may be KubeRay's own sample, by another apiVersion alone", func(ctx context.Context) {
		upstream := filepath.Join(cmp.Or(os.Getenv("PENSTOCK_SHARED"), filepath.Join(root, "..", "shared")), "upstream", "ray")
		if _, err := os.Stat(upstream); err != nil {
			Skip("the samples of KubeRay are not in " + upstream + "; PENSTOCK_SHARED names the folder above them")
		}
		ns := newNamespace(ctx)
		text, err := os.ReadFile(filepath.Join(upstream, "ray-cluster.complete.yaml"))
		Expect(err).NotTo(HaveOccurred())
		sample := strings.Replace(string(text), "apiVersion: ray.io/v1", "apiVersion: penstock.dev/v1alpha1", 1)
		mustKubectl(ctx, sample, "apply", "-n", ns, "-f", "-")
		eventuallyCluster(ctx, ns, "raycluster-complete", inPhase(v1.PhaseRunning), allReady("2/2"))
	})
})
