package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// failedFor matches a job that has failed for a reason, with a message.
func failedFor(reason string, message ...OmegaMatcher) OmegaMatcher {
	return And(inPhase(v1.PhaseFailed), WithTransform(func(job *v1.TrainingJob) string {
		condition := meta.FindStatusCondition(job.Status.Conditions, v1.TrainingJobFailedCondition)
		if condition == nil {
			return ""
		}
		return condition.Reason + ": " + condition.Message
	}, And(append([]OmegaMatcher{HavePrefix(reason + ": ")}, message...)...)))
}

// restarted matches a job that counts so many restarts.
func restarted(times int32) OmegaMatcher {
	return And(
		HaveField("Status.Restarts", HaveValue(Equal(times))),
		HaveField("Status.Roles", ContainElement(HaveField("Restarts", HaveValue(Equal(times))))),
	)
}

var _ = Describe("a job whose pods cannot start", func() {
	It("says what is in their way", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "nowhere", fixtures.Workers(2), in("no-such-pool"))
		eventuallyJob(ctx, ns, "nowhere", And(inPhase(v1.PhaseCreating), WithTransform(func(job *v1.TrainingJob) string {
			return meta.FindStatusCondition(job.Status.Conditions, v1.TrainingJobRunningCondition).Message
		}, Equal("the pods do not run yet: no node takes pod nowhere-worker-1: kubectl describe pod nowhere-worker-1 says why"))))
	})
})

var _ = Describe("a job whose pods fail", func() {
	It("fails at once under restartPolicy Never", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "once", exits("1"), fixtures.Restart(v1.RestartNever))
		job := eventuallyJob(ctx, ns, "once", failedFor(v1.TrainingJobPodFailedReason,
			ContainSubstring("once-worker-"), ContainSubstring("ended with exit code 1"), ContainSubstring("restartPolicy Never")))
		Expect(job).To(restarted(0))
		Expect(job.Status.CompletionTime).NotTo(BeNil())
		Eventually(eventsOf(ns, "once")).WithContext(ctx).Should(ContainElement(HavePrefix("JobFailed: PodFailed")))
	})

	It("is given new pods for exit code 137 under ExitCode, until the backoff limit", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "oom", exits("137"), fixtures.Workers(1), fixtures.Restart(v1.RestartExitCode), fixtures.BackoffLimit(3))
		job := eventuallyJob(ctx, ns, "oom", failedFor(v1.TrainingJobBackoffLimitExceededReason,
			ContainSubstring("137"), ContainSubstring("after 3 restarts"), ContainSubstring("backoffLimit is 3")))
		Expect(job).To(restarted(3))
		Eventually(eventsOf(ns, "oom")).WithContext(ctx).Should(ContainElement(ContainSubstring("PodReplaced")))
		Expect(mustKubectl(ctx, "", "get", "-n", ns, "tj", "oom", "--no-headers")).To(MatchRegexp(`oom\s+PyTorch\s+Failed\s+0/1\s+3\s`))
	})

	It("fails for exit code 1 under ExitCode", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "bug", exits("1"), fixtures.Workers(1), fixtures.Restart(v1.RestartExitCode), fixtures.BackoffLimit(3))
		Expect(eventuallyJob(ctx, ns, "bug", failedFor(v1.TrainingJobPodFailedReason, ContainSubstring("exit code 1")))).To(restarted(0))
	})

	It("is counted right when the manager is restarted in the middle", Serial, func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "oom", exits("137"), fixtures.Workers(1), fixtures.Restart(v1.RestartExitCode), fixtures.BackoffLimit(3))
		eventuallyJob(ctx, ns, "oom", HaveField("Status.Restarts", HaveValue(BeNumerically(">=", 1))))
		manager.Stop()
		// A pod fails while nobody looks.
		Eventually(pods(ns, "oom")).WithContext(ctx).Should(Or(BeEmpty(), HaveKeyWithValue("oom-worker-0", HaveField("Status.Phase", corev1.PodFailed))))
		manager = startManager(ctx, webhooks)
		Expect(eventuallyJob(ctx, ns, "oom", failedFor(v1.TrainingJobBackoffLimitExceededReason,
			ContainSubstring("137"), ContainSubstring("after 3 restarts")))).To(restarted(3))
	})

	It("counts what the kubelet restarts in place under OnFailure", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "flaky", fixtures.Workers(1), fixtures.Restart(v1.RestartOnFailure), fixtures.BackoffLimit(3), simulate(map[string]string{
			cluster.SimulateRunSeconds: "1", cluster.SimulateExitCode: "1", cluster.SimulateFailures: "2",
		}))
		var first map[string]corev1.Pod
		Eventually(pods(ns, "flaky")).WithContext(ctx).Should(HaveLen(1))
		first = now(ctx, pods(ns, "flaky"))
		Expect(eventuallyJob(ctx, ns, "flaky", inPhase(v1.PhaseSucceeded))).To(restarted(2))
		Expect(now(ctx, pods(ns, "flaky"))["flaky-worker-0"].UID).To(Equal(first["flaky-worker-0"].UID), "the pod stayed")
	})

	It("fails when restarts in place reach the backoff limit", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "loop", fixtures.Workers(1), exits("1"), fixtures.Restart(v1.RestartOnFailure), fixtures.BackoffLimit(1))
		eventuallyJob(ctx, ns, "loop", failedFor(v1.TrainingJobBackoffLimitExceededReason, ContainSubstring("exit code 1")))
	})
})
