package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/fixtures"
)

var _ = Describe("the run policy", func() {
	It("suspends a job, which gives its pods and services back, and starts it anew", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "paused", forever, fixtures.Master(), fixtures.Deadline(600))
		eventuallyJob(ctx, ns, "paused", allReady("3/3"))
		old := now(ctx, pods(ns, "paused"))

		patch(ctx, ns, "trainingjobs.v1alpha1.penstock.dev/paused", `{"spec":{"runPolicy":{"suspend":true}}}`)
		eventuallyJob(ctx, ns, "paused", inPhase(v1.PhaseSuspended))
		Eventually(pods(ns, "paused")).WithContext(ctx).Should(BeEmpty())
		Eventually(services(ns, "paused")).WithContext(ctx).Should(BeEmpty())
		Expect(mustKubectl(ctx, "", "wait", "-n", ns, "tj/paused", "--for=condition=Suspended", "--timeout=5s")).To(ContainSubstring("condition met"))

		patch(ctx, ns, "tj/paused", `{"spec":{"runPolicy":{"suspend":false}}}`)
		after := eventuallyJob(ctx, ns, "paused", And(inPhase(v1.PhaseRunning), allReady("3/3")))
		resumed := meta.FindStatusCondition(after.Status.Conditions, v1.SuspendedCondition)
		Expect(resumed).To(HaveField("Reason", v1.TrainingJobResumedReason))
		Expect(after.Status.StartTime.Time).To(BeTemporally("==", resumed.LastTransitionTime.Time), "the deadline counts from the resumption")
		for name, pod := range now(ctx, pods(ns, "paused")) {
			Expect(pod.UID).NotTo(Equal(old[name].UID), name)
		}
		Eventually(services(ns, "paused")).WithContext(ctx).Should(HaveLen(3))
	})

	It("makes nothing of a job that is suspended from the start", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "later", exits("0"), fixtures.Workers(1), fixtures.Suspended())
		eventuallyJob(ctx, ns, "later", inPhase(v1.PhaseSuspended))
		Expect(now(ctx, pods(ns, "later"))).To(BeEmpty())
		patch(ctx, ns, "tj/later", `{"spec":{"runPolicy":{"suspend":false}}}`)
		eventuallyJob(ctx, ns, "later", inPhase(v1.PhaseSucceeded))
	})

	It("fails a quiet job within seconds of its deadline", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "quiet", forever, fixtures.Deadline(4), fixtures.CleanPods(v1.CleanPodRunning))
		eventuallyJob(ctx, ns, "quiet", inPhase(v1.PhaseRunning))
		job := eventuallyJob(ctx, ns, "quiet", failedFor(v1.TrainingJobDeadlineExceededReason))
		took := job.Status.CompletionTime.Sub(job.Status.StartTime.Time)
		Expect(took).To(And(BeNumerically(">=", 4*time.Second), BeNumerically("<=", 7*time.Second)))
		Eventually(pods(ns, "quiet")).WithContext(ctx).Should(BeEmpty())
	})

	It("deletes a finished job when its time to live is over, with all that is its own", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "short", exits("0"), fixtures.TTL(1))
		Eventually(func(ctx context.Context) error {
			return k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "short"}, &v1.TrainingJob{})
		}).WithContext(ctx).Should(Satisfy(apierrors.IsNotFound))
		Eventually(pods(ns, "short")).WithContext(ctx).Should(BeEmpty())
		Eventually(services(ns, "short")).WithContext(ctx).Should(BeEmpty())
	})

	// The master ends the job while the worker still runs.
	DescribeTable("cleans up after a finished job by cleanPodPolicy", func(ctx context.Context, policy v1.CleanPodPolicy, left map[string]corev1.PodPhase) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "done", exits("0"), fixtures.Workers(1), fixtures.Master(), fixtures.CleanPods(policy), func(job *v1.TrainingJob) {
			for i := range job.Spec.Roles {
				seconds := "forever"
				if job.Spec.Roles[i].Name == v1.RoleMaster {
					seconds = "2"
				}
				job.Spec.Roles[i].Template.Annotations = map[string]string{cluster.SimulateRunSeconds: seconds}
			}
		})
		eventuallyJob(ctx, ns, "done", inPhase(v1.PhaseSucceeded))
		phases := func(g Gomega, ctx context.Context) map[string]corev1.PodPhase {
			all := map[string]corev1.PodPhase{}
			for name, pod := range pods(ns, "done")(g, ctx) {
				all[name] = pod.Status.Phase
			}
			return all
		}
		Eventually(phases).WithContext(ctx).Should(Equal(left))
		Consistently(phases).WithContext(ctx).WithTimeout(time.Second).Should(Equal(left))
		Eventually(services(ns, "done")).WithContext(ctx).Should(HaveLen(len(left)), "a service goes with its pod")
	},
		Entry("All leaves nothing", v1.CleanPodAll, map[string]corev1.PodPhase{}),
		Entry("Running leaves what has ended", v1.CleanPodRunning, map[string]corev1.PodPhase{"done-master-0": corev1.PodSucceeded}),
		Entry("None leaves everything", v1.CleanPodNone, map[string]corev1.PodPhase{"done-master-0": corev1.PodSucceeded, "done-worker-0": corev1.PodRunning}),
	)
})
