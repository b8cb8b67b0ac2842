package node

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// failed matches a job that has failed for a reason, with a text in its message.
func failed(reason, text string) OmegaMatcher {
	return WithTransform(func(job *v1.TrainingJob) string {
		condition := meta.FindStatusCondition(job.Status.Conditions, v1.TrainingJobFailedCondition)
		if condition == nil {
			return ""
		}
		return condition.Reason + ": " + condition.Message
	}, And(HavePrefix(reason+": "), ContainSubstring(text)))
}

// restarts are what a job counts in all, and by role.
func restarts(job *v1.TrainingJob) map[string]int32 {
	counts := map[string]int32{"": 0}
	if job.Status.Restarts != nil {
		counts[""] = *job.Status.Restarts
	}
	for _, role := range job.Status.Roles {
		counts[string(role.Name)] = 0
		if role.Restarts != nil {
			counts[string(role.Name)] = *role.Restarts
		}
	}
	return counts
}

// incarnations are the pods that were scheduled under a name; for Eventually.
func incarnations(ns, pod string) func(Gomega, context.Context) sets.Set[types.UID] {
	return func(g Gomega, ctx context.Context) sets.Set[types.UID] {
		var events corev1.EventList
		g.Expect(k8s.List(ctx, &events, client.InNamespace(ns))).To(Succeed())
		found := sets.New[types.UID]()
		for _, event := range events.Items {
			if event.Reason == "Scheduled" && event.InvolvedObject.Name == pod {
				found.Insert(event.InvolvedObject.UID)
			}
		}
		return found
	}
}

var _ = Describe("real exit codes", func() {
	It("restart in place under OnFailure, and every restart is counted", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "flaky", fixtures.BackoffLimit(4), trains("-exit=1", "-failures=2"),
			fixtures.EachRole(withState(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})))
		job := succeeds(ctx, ns, "flaky")
		Expect(restarts(job)).To(Equal(map[string]int32{"": 4, "Worker": 4}), "two of each worker")
		// The process group met three times.
		Eventually(said(ns, "flaky")).WithContext(ctx).Should(HaveLen(2))
		for _, name := range []string{"flaky-worker-0", "flaky-worker-1"} {
			Expect(now(ctx, pods(ns, "flaky"))[name].Status.ContainerStatuses).To(HaveExactElements(HaveField("RestartCount", int32(2))))
			Eventually(incarnations(ns, name)).WithContext(ctx).Should(HaveLen(1))
		}
	})

	It("add up, the kubelet's restarts and new pods", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "both", fixtures.Master(), fixtures.Workers(1), fixtures.BackoffLimit(2),
			roleTrains(v1.RoleMaster, "-exit=137", "-failures=1"), roleTrains(v1.RoleWorker, "-exit=1", "-failures=1"),
			fixtures.EachRole(func(role *v1.Role) {
				source := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
				if role.Name == v1.RoleMaster {
					// A new pod gets a new emptyDir.
					role.RestartPolicy = v1.RestartExitCode
					source = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
						Path: "/run/state-" + ns, Type: new(corev1.HostPathDirectoryOrCreate),
					}}
				}
				withState(source)(role)
			}))
		job := succeeds(ctx, ns, "both")
		Expect(restarts(job)).To(Equal(map[string]int32{"": 2, "Master": 1, "Worker": 1}))
		Eventually(said(ns, "both")).WithContext(ctx).Should(Equal(meeting("pytorch", "both-master-0", "both-worker-0")))
		Eventually(incarnations(ns, "both-master-0")).WithContext(ctx).Should(HaveLen(2))
		Eventually(incarnations(ns, "both-worker-0")).WithContext(ctx).Should(HaveLen(1))
	})

	It("of 128 and more are given new pods under ExitCode, exactly until the backoff limit", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "killed", fixtures.Workers(1), fixtures.Restart(v1.RestartExitCode), fixtures.BackoffLimit(2), trains("-exit=137"))
		job := reaches(ctx, ns, "killed", v1.PhaseFailed)
		Expect(job).To(failed(v1.TrainingJobBackoffLimitExceededReason, "exit code 137"))
		Expect(restarts(job)).To(Equal(map[string]int32{"": 2, "Worker": 2}))
		Eventually(incarnations(ns, "killed-worker-0")).WithContext(ctx).Should(HaveLen(3))
		Consistently(incarnations(ns, "killed-worker-0"), "2s").WithContext(ctx).Should(HaveLen(3))
	})

	It("below 128 end the job under ExitCode", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "bug", fixtures.Workers(1), fixtures.Restart(v1.RestartExitCode), fixtures.BackoffLimit(2), trains("-exit=3"))
		job := reaches(ctx, ns, "bug", v1.PhaseFailed)
		Expect(job).To(failed(v1.TrainingJobPodFailedReason, "exit code 3"))
		Expect(restarts(job)).To(Equal(map[string]int32{"": 0, "Worker": 0}))
	})

	It("come of the kernel, which kills what uses too much memory", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "oom", fixtures.Workers(1), fixtures.Restart(v1.RestartExitCode), fixtures.BackoffLimit(1), trains("-eat"),
			fixtures.Template(func(template *corev1.PodTemplateSpec) {
				amount := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
				template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: amount, Requests: amount}
			}))
		job := reaches(ctx, ns, "oom", v1.PhaseFailed)
		Expect(job).To(failed(v1.TrainingJobBackoffLimitExceededReason, "exit code 137"))
		Expect(restarts(job)).To(Equal(map[string]int32{"": 1, "Worker": 1}))
		last := now(ctx, pods(ns, "oom"))["oom-worker-0"]
		Expect(last.Status.ContainerStatuses).To(HaveExactElements(
			HaveField("State.Terminated", And(HaveField("Reason", "OOMKilled"), HaveField("ExitCode", int32(137))))))
	})
})

var _ = Describe("real containers", func() {
	It("are killed by cleanPodPolicy Running when the master is done", func(ctx context.Context) {
		const busy = "-run=1h0m1s"
		ns := newNamespace(ctx)
		submit(ctx, ns, "clean", fixtures.Master(), fixtures.CleanPods(v1.CleanPodRunning),
			roleTrains(v1.RoleMaster, "-run=2s"), roleTrains(v1.RoleWorker, busy))
		Eventually(func() []string { return processes(busy) }).WithContext(ctx).Should(HaveLen(2))
		succeeds(ctx, ns, "clean")
		Eventually(func() []string { return processes(busy) }).WithContext(ctx).Should(BeEmpty())
		Eventually(pods(ns, "clean")).WithContext(ctx).Should(And(HaveLen(1), HaveKey("clean-master-0")))
	})

	It("go on under cleanPodPolicy None", func(ctx context.Context) {
		const busy = "-run=1h0m2s"
		ns := newNamespace(ctx)
		submit(ctx, ns, "kept", fixtures.Master(), fixtures.CleanPods(v1.CleanPodNone), roleTrains(v1.RoleWorker, busy))
		succeeds(ctx, ns, "kept")
		Consistently(func() []string { return processes(busy) }, "2s").WithContext(ctx).Should(HaveLen(2))
	})

	It("are killed by suspend, and the resumed job meets anew", func(ctx context.Context) {
		const busy = "-run=1h0m3s"
		ns := newNamespace(ctx)
		submit(ctx, ns, "paused", fixtures.Master(), trains(busy))
		Eventually(func() []string { return processes(busy) }).WithContext(ctx).Should(HaveLen(3))
		change(ctx, ns, "paused", fixtures.Suspended())
		reaches(ctx, ns, "paused", v1.PhaseSuspended)
		Eventually(func() []string { return processes(busy) }).WithContext(ctx).Should(BeEmpty())
		Eventually(pods(ns, "paused")).WithContext(ctx).Should(BeEmpty())

		change(ctx, ns, "paused", trains(), fixtures.RunPolicy(func(p *v1.RunPolicy) { p.Suspend = new(false) }))
		succeeds(ctx, ns, "paused")
		Eventually(said(ns, "paused")).WithContext(ctx).Should(Equal(
			meeting("pytorch", "paused-master-0", "paused-worker-0", "paused-worker-1")))
	})
})

// change edits a job, again where another was faster.
func change(ctx context.Context, ns, name string, mods ...fixtures.JobMod) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		job := job(ns, name)(g, ctx)
		for _, mod := range mods {
			mod(job)
		}
		g.Expect(k8s.Update(ctx, job)).To(Succeed())
	}).WithContext(ctx).Should(Succeed())
}
