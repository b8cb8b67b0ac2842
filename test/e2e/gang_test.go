package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// poolLabel keeps the jobs of a spec to nodes of its own, whose room it knows.
const poolLabel = "example.com/pool"

// newPool adds nodes of 8 GPUs, one for each rack that is named, for one spec.
func newPool(ctx context.Context, pool string, racks ...string) {
	GinkgoHelper()
	addToPool(ctx, pool, 0, racks...)
	DeferCleanup(func(ctx context.Context) {
		Expect(k8s.DeleteAllOf(ctx, &corev1.Node{}, client.MatchingLabels{poolLabel: pool})).To(Succeed())
	})
}

func addToPool(ctx context.Context, pool string, first int, racks ...string) {
	GinkgoHelper()
	var nodes []cluster.Node
	for i, rack := range racks {
		nodes = append(nodes, cluster.Node{
			Name: fmt.Sprintf("%s-%s-%d", pool, rack, first+i), Rack: rack, GPUs: 8, Labels: map[string]string{poolLabel: pool},
		})
	}
	Expect(control.AddNodes(ctx, nodes...)).To(Succeed())
}

// in makes each pod take a whole node of a pool.
func in(pool string) fixtures.JobMod {
	return fixtures.Template(func(template *corev1.PodTemplateSpec) {
		template.Spec.NodeSelector = map[string]string{poolLabel: pool}
		template.Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
		template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	})
}

// ganged asks for the pods all together.
func ganged(topology *v1.Topology) fixtures.JobMod {
	return func(job *v1.TrainingJob) { job.Spec.Gang = &v1.Gang{Topology: topology} }
}

var (
	oneRack  = &v1.Topology{Required: cluster.RackLabel}
	bestRack = &v1.Topology{Preferred: cluster.RackLabel}
)

// gangIs matches a job by what its condition says of its gang.
func gangIs(status metav1.ConditionStatus, reason, message string) OmegaMatcher {
	return WithTransform(func(job *v1.TrainingJob) *metav1.Condition {
		return meta.FindStatusCondition(job.Status.Conditions, v1.TrainingJobGangScheduledCondition)
	}, And(Not(BeNil()), HaveField("Status", status), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message))))
}

// nodesOf lists the nodes that pods of a job are on; for Eventually.
func nodesOf(ns, name string) func(Gomega, context.Context) []string {
	return func(g Gomega, ctx context.Context) []string {
		var nodes []string
		for _, pod := range pods(ns, name)(g, ctx) {
			if pod.Spec.NodeName != "" {
				nodes = append(nodes, pod.Spec.NodeName)
			}
		}
		slices.Sort(nodes)
		return nodes
	}
}

// racksOf lists the racks of those nodes, each once.
func racksOf(ctx context.Context, ns, name string) []string {
	GinkgoHelper()
	var racks []string
	for _, node := range now(ctx, nodesOf(ns, name)) {
		var object corev1.Node
		Expect(k8s.Get(ctx, client.ObjectKey{Name: node}, &object)).To(Succeed())
		racks = append(racks, object.Labels[cluster.RackLabel])
	}
	slices.Sort(racks)
	return slices.Compact(racks)
}

// preempted lists the pods of a namespace that the scheduler preempted; for Eventually.
func preempted(ns string) func(Gomega, context.Context) []string {
	return func(g Gomega, ctx context.Context) []string {
		var events eventsv1.EventList
		g.Expect(k8s.List(ctx, &events, client.InNamespace(ns))).To(Succeed())
		var names []string
		for i := range events.Items {
			if events.Items[i].Reason == "Preempted" {
				names = append(names, events.Items[i].Regarding.Name)
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
}

var _ = Describe("a gang", func() {
	It("that fits runs, and its group goes with its end", func(ctx context.Context) {
		newPool(ctx, "fits", "a", "a", "b")
		ns := newNamespace(ctx)
		submit(ctx, ns, "gang", fixtures.Master(), fixtures.Workers(2), in("fits"), ganged(nil),
			simulate(map[string]string{cluster.SimulateRunSeconds: "3"}))
		eventuallyJob(ctx, ns, "gang", And(inPhase(v1.PhaseRunning),
			gangIs(metav1.ConditionTrue, v1.GangScheduledReason, "3 of 3 pods are placed")))
		var group schedulingv1beta1.PodGroup
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "gang"}, &group)).To(Succeed())
		Expect(group.Spec.SchedulingPolicy.Gang.MinCount).To(Equal(int32(3)))
		for _, pod := range now(ctx, pods(ns, "gang")) {
			Expect(pod.Spec.SchedulingGroup.PodGroupName).To(HaveValue(Equal("gang")))
		}
		eventuallyJob(ctx, ns, "gang", inPhase(v1.PhaseSucceeded))
		Eventually(func(ctx context.Context) error {
			return k8s.Get(ctx, client.ObjectKeyFromObject(&group), &group)
		}).WithContext(ctx).Should(MatchError(ContainSubstring("not found")))
	})

	It("that is too large has no pod placed until there is room", func(ctx context.Context) {
		newPool(ctx, "large", "a", "a", "b")
		ns := newNamespace(ctx)
		submit(ctx, ns, "gang", fixtures.Workers(4), in("large"), ganged(nil), forever)
		eventuallyJob(ctx, ns, "gang", gangIs(metav1.ConditionFalse, v1.GangPendingReason,
			"0 of 4 pods are placed; kube-scheduler places them when it can place 4: "))
		Expect(now(ctx, pods(ns, "gang"))).To(HaveLen(4))
		Consistently(nodesOf(ns, "gang")).WithContext(ctx).WithTimeout(3 * time.Second).Should(BeEmpty())

		addToPool(ctx, "large", 3, "b")
		eventuallyJob(ctx, ns, "gang", And(allReady("4/4"), gangIs(metav1.ConditionTrue, v1.GangScheduledReason, "4 of 4")))

		By("losing a pod, whose successor joins the others")
		mustKubectl(ctx, "", "delete", "pod", "-n", ns, "gang-worker-2")
		eventuallyJob(ctx, ns, "gang", And(allReady("4/4"), gangIs(metav1.ConditionTrue, v1.GangScheduledReason, "4 of 4")))

		By("looking at it again, which writes nothing")
		version := func(g Gomega, ctx context.Context) string {
			var group schedulingv1beta1.PodGroup
			g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "gang"}, &group)).To(Succeed())
			return group.ResourceVersion
		}
		before := now(ctx, version)
		mustKubectl(ctx, "", "annotate", "-n", ns, "tj/gang", "look=again")
		Consistently(version).WithContext(ctx).WithTimeout(2 * time.Second).Should(Equal(before))
	})

	It("does not hold what another needs", func(ctx context.Context) {
		newPool(ctx, "two", "a", "a", "b", "b")
		ns := newNamespace(ctx)
		ends := simulate(map[string]string{cluster.SimulateRunSeconds: "3"})
		submit(ctx, ns, "one", fixtures.Workers(3), in("two"), ganged(nil), ends)
		submit(ctx, ns, "other", fixtures.Workers(3), in("two"), ganged(nil), ends)
		placed := func(g Gomega, ctx context.Context) int {
			return len(nodesOf(ns, "one")(g, ctx)) + len(nodesOf(ns, "other")(g, ctx))
		}
		Eventually(placed).WithContext(ctx).Should(BeNumerically(">=", 3))
		Expect([]int{len(now(ctx, nodesOf(ns, "one"))), len(now(ctx, nodesOf(ns, "other")))}).To(ContainElement(3))
		eventuallyJob(ctx, ns, "one", inPhase(v1.PhaseSucceeded))
		eventuallyJob(ctx, ns, "other", inPhase(v1.PhaseSucceeded))
	})

	It("lands in the one rack that has room for all", func(ctx context.Context) {
		newPool(ctx, "racks", "a", "a", "b", "b", "b")
		ns := newNamespace(ctx)
		submit(ctx, ns, "gang", fixtures.Workers(3), in("racks"), ganged(oneRack), forever)
		eventuallyJob(ctx, ns, "gang", allReady("3/3"))
		Expect(racksOf(ctx, ns, "gang")).To(Equal([]string{"b"}))

		submit(ctx, ns, "wide", fixtures.Workers(4), in("racks"), ganged(oneRack), forever)
		eventuallyJob(ctx, ns, "wide", gangIs(metav1.ConditionFalse, v1.GangPendingReason, "0 of 4"))
		submit(ctx, ns, "near", fixtures.Workers(2), in("racks"), ganged(bestRack), forever)
		eventuallyJob(ctx, ns, "near", allReady("2/2"))
		Expect(racksOf(ctx, ns, "near")).To(Equal([]string{"a"}))

		By("making room, and losing a pod, whose successor stays with the others")
		addToPool(ctx, "racks", 5, "a", "b")
		mustKubectl(ctx, "", "delete", "pod", "-n", ns, "gang-worker-1", "--wait=false")
		eventuallyJob(ctx, ns, "gang", allReady("3/3"))
		Eventually(pods(ns, "gang")).WithContext(ctx).Should(HaveLen(3))
		Expect(racksOf(ctx, ns, "gang")).To(Equal([]string{"b"}))
	})

	It("that prefers a rack runs over several where it must", func(ctx context.Context) {
		newPool(ctx, "spread", "a", "b", "c")
		ns := newNamespace(ctx)
		submit(ctx, ns, "gang", fixtures.Workers(3), in("spread"), ganged(bestRack), forever)
		eventuallyJob(ctx, ns, "gang", allReady("3/3"))
		Expect(racksOf(ctx, ns, "gang")).To(Equal([]string{"a", "b", "c"}))
	})

	It("of an elastic job starts with its minimum and grows into the room there is", func(ctx context.Context) {
		newPool(ctx, "elastic", "a", "a")
		ns := newNamespace(ctx)
		submit(ctx, ns, "gang", fixtures.Workers(3), fixtures.Elastic(2, 4), fixtures.Scaled(3), in("elastic"), ganged(nil), forever)
		eventuallyJob(ctx, ns, "gang", And(allReady("2/3"), inPhase(v1.PhaseRunning),
			gangIs(metav1.ConditionTrue, v1.GangScheduledReason, "2 of 3 pods are placed; kube-scheduler places them when it can place 2")))
		addToPool(ctx, "elastic", 2, "b")
		eventuallyJob(ctx, ns, "gang", allReady("3/3"))
	})

	It("is made anew when it is suspended and resumed", func(ctx context.Context) {
		newPool(ctx, "resumed", "a", "a")
		ns := newNamespace(ctx)
		submit(ctx, ns, "gang", fixtures.Workers(2), in("resumed"), ganged(oneRack), forever)
		eventuallyJob(ctx, ns, "gang", allReady("2/2"))
		patch(ctx, ns, "tj/gang", `{"spec":{"runPolicy":{"suspend":true}}}`)
		Eventually(func(g Gomega, ctx context.Context) []schedulingv1beta1.PodGroup {
			var groups schedulingv1beta1.PodGroupList
			g.Expect(k8s.List(ctx, &groups, client.InNamespace(ns))).To(Succeed())
			return groups.Items
		}).WithContext(ctx).Should(BeEmpty())
		patch(ctx, ns, "tj/gang", `{"spec":{"runPolicy":{"suspend":false}}}`)
		eventuallyJob(ctx, ns, "gang", And(allReady("2/2"), gangIs(metav1.ConditionTrue, v1.GangScheduledReason, "2 of 2")))
	})

	It("has one priority, that of its job", func(ctx context.Context) {
		newPool(ctx, "urgent", "a", "a")
		ns := newNamespace(ctx)
		class := "urgent-" + ns
		mustKubectl(ctx, "", "create", "priorityclass", class, "--value=1000")
		DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "", "delete", "priorityclass", class) })
		submit(ctx, ns, "usual", fixtures.Workers(2), in("urgent"), ganged(nil), forever)
		eventuallyJob(ctx, ns, "usual", allReady("2/2"))
		submit(ctx, ns, "urgent", fixtures.Workers(2), in("urgent"), forever,
			func(job *v1.TrainingJob) { job.Spec.Gang = &v1.Gang{PriorityClassName: class} })
		eventuallyJob(ctx, ns, "urgent", allReady("2/2"))
		eventuallyJob(ctx, ns, "usual", gangIs(metav1.ConditionFalse, v1.GangPendingReason, "0 of 2"))
	})

	It("that is restarted whole is preempted whole", func(ctx context.Context) {
		newPool(ctx, "whole", "a", "a", "b")
		ns := newNamespace(ctx)
		class := "urgent-" + ns
		mustKubectl(ctx, "", "create", "priorityclass", class, "--value=1000")
		DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "", "delete", "priorityclass", class) })
		submit(ctx, ns, "usual", fixtures.Workers(3), fixtures.GangRestart(), in("whole"), ganged(nil), forever)
		eventuallyJob(ctx, ns, "usual", allReady("3/3"))
		submit(ctx, ns, "urgent", fixtures.Workers(1), in("whole"), forever,
			func(job *v1.TrainingJob) { job.Spec.Gang = &v1.Gang{PriorityClassName: class} })
		eventuallyJob(ctx, ns, "urgent", allReady("1/1"))
		Eventually(preempted(ns)).WithContext(ctx).Should(ConsistOf("usual-worker-0", "usual-worker-1", "usual-worker-2"))
		job := eventuallyJob(ctx, ns, "usual", gangIs(metav1.ConditionFalse, v1.GangPendingReason, "0 of 3"))
		Expect(job.Status.Restarts).To(HaveValue(BeZero()))
		Expect(job.Status.Attempt).To(HaveValue(BeEquivalentTo(1)))
	})

	It("is not asked of a job that asks for none", func(ctx context.Context) {
		newPool(ctx, "single", "a")
		ns := newNamespace(ctx)
		submit(ctx, ns, "loose", fixtures.Workers(2), in("single"), forever)
		eventuallyJob(ctx, ns, "loose", allReady("1/2"))
		Expect(meta.FindStatusCondition(now(ctx, job(ns, "loose")).Status.Conditions, v1.TrainingJobGangScheduledCondition)).To(BeNil())
		for _, pod := range now(ctx, pods(ns, "loose")) {
			Expect(pod.Spec.SchedulingGroup).To(BeNil())
		}
	})
})
