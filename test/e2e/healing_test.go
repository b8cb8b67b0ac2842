package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
	"github.com/penstock-dev/penstock/test/install"
)

// anotherUID matches an object that is not the one with this UID.
func anotherUID(uid types.UID) OmegaMatcher { return HaveField("UID", Not(Equal(uid))) }

var _ = Describe("what a job owns", func() {
	It("comes back when a pod or a service is deleted by hand, free of charge", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "heal", forever, fixtures.Restart(v1.RestartNever), fixtures.BackoffLimit(0))
		eventuallyJob(ctx, ns, "heal", allReady("2/2"))
		pod := now(ctx, pods(ns, "heal"))["heal-worker-1"]
		mustKubectl(ctx, "", "delete", "-n", ns, "pod", pod.Name, "--wait=false")
		Eventually(pods(ns, "heal")).WithContext(ctx).Should(HaveKeyWithValue(pod.Name, anotherUID(pod.UID)))
		job := eventuallyJob(ctx, ns, "heal", And(inPhase(v1.PhaseRunning), allReady("2/2")))
		Expect(job).To(restarted(0))

		service := now(ctx, services(ns, "heal"))["heal-worker-0"]
		mustKubectl(ctx, "", "delete", "-n", ns, "service", service.Name)
		Eventually(services(ns, "heal")).WithContext(ctx).Should(HaveKeyWithValue(service.Name, anotherUID(service.UID)))
	})

	It("is put right again when a service is changed by hand", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "drift", forever)
		eventuallyJob(ctx, ns, "drift", inPhase(v1.PhaseRunning))
		before := now(ctx, services(ns, "drift"))["drift-worker-0"]
		patch(ctx, ns, "service/drift-worker-0", `{"spec":{"selector":{"penstock.dev/index":"1"}}}`)
		Eventually(services(ns, "drift")).WithContext(ctx).Should(
			HaveKeyWithValue(before.Name, HaveField("Spec.Selector", Equal(before.Spec.Selector))))
	})

	It("is collected after kubectl delete", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "gone", forever, fixtures.Master())
		eventuallyJob(ctx, ns, "gone", allReady("3/3"))
		mustKubectl(ctx, "", "delete", "-n", ns, "tj", "gone")
		Eventually(pods(ns, "gone")).WithContext(ctx).Should(BeEmpty())
		Eventually(services(ns, "gone")).WithContext(ctx).Should(BeEmpty())
	})

	It("follows a job that is deleted and applied again under the same name", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "again", forever)
		eventuallyJob(ctx, ns, "again", allReady("2/2"))
		old := now(ctx, pods(ns, "again"))
		mustKubectl(ctx, "", "delete", "-n", ns, "tj", "again")
		submit(ctx, ns, "again", forever)
		eventuallyJob(ctx, ns, "again", And(inPhase(v1.PhaseRunning), allReady("2/2")))
		for name, pod := range now(ctx, pods(ns, "again")) {
			Expect(pod.UID).NotTo(Equal(old[name].UID), name)
		}
	})

	It("is nothing where another controller manages the job, and an event says so", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "theirs", forever, fixtures.ManagedBy("kueue.example.com/multikueue"))
		Eventually(eventsOf(ns, "theirs")).WithContext(ctx).Should(ConsistOf(And(HavePrefix("HandedOver"), ContainSubstring("kueue.example.com/multikueue"))))
		Consistently(func(g Gomega, ctx context.Context) {
			g.Expect(pods(ns, "theirs")(g, ctx)).To(BeEmpty())
			g.Expect(services(ns, "theirs")(g, ctx)).To(BeEmpty())
			g.Expect(job(ns, "theirs")(g, ctx).Status).To(Equal(v1.TrainingJobStatus{}))
		}).WithContext(ctx).WithTimeout(time.Second).Should(Succeed())
	})
})

var _ = Describe("an invalid job that is stored all the same", Serial, func() {
	It("says so, is given no pods, and runs once it is mended", func(ctx context.Context) {
		ns := newNamespace(ctx)
		two := manifest(fixtures.TrainingJob("bad", forever, fixtures.Master(), fixtures.EachRole(func(r *v1.Role) { r.Replicas = new(int32(2)) })))
		judged := func(ctx context.Context) error {
			_, err := kubectl(ctx, two, "create", "-n", ns, "--dry-run=server", "-f", "-")
			return err
		}
		refused := MatchError(ContainSubstring("must be 1"))
		Expect(judged(ctx)).To(refused)

		mustKubectl(ctx, "", "delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "penstock")
		DeferCleanup(func(ctx context.Context) {
			Expect(install.Apply(ctx, control.Config, webhooks)).To(Succeed())
		})
		Eventually(judged).WithContext(ctx).Should(Succeed())
		mustKubectl(ctx, two, "create", "-n", ns, "-f", "-")

		invalid := eventuallyJob(ctx, ns, "bad", inPhase(v1.PhasePending))
		condition := meta.FindStatusCondition(invalid.Status.Conditions, v1.InvalidCondition)
		Expect(condition).To(HaveField("Reason", v1.InvalidSpecReason))
		Expect(condition.Message).To(And(ContainSubstring("spec.roles"), ContainSubstring("must be 1")))
		Consistently(pods(ns, "bad")).WithContext(ctx).WithTimeout(time.Second).Should(BeEmpty())
		Expect(now(ctx, services(ns, "bad"))).To(BeEmpty())

		Expect(install.Apply(ctx, control.Config, webhooks)).To(Succeed())
		// It exists, which is said only once it has passed admission.
		Eventually(judged).WithContext(ctx).Should(refused)
		mended := manifest(fixtures.TrainingJob("bad", forever, fixtures.Master()))
		mustKubectl(ctx, mended, "replace", "-n", ns, "-f", "-")
		eventuallyJob(ctx, ns, "bad", And(inPhase(v1.PhaseRunning), allReady("3/3"), HaveField("Status.Conditions",
			ContainElement(And(HaveField("Type", v1.InvalidCondition), HaveField("Reason", v1.ValidReason))))))
		Expect(now(ctx, pods(ns, "bad"))).To(HaveEach(HaveField("Status.Phase", corev1.PodRunning)))
	})
})
