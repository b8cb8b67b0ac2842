package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

var _ = Describe("a cluster at rest", Serial, func() {
	const each = 200

	It("is not written to, with 200 running and 200 finished jobs", func(ctx context.Context) {
		manager.Stop()
		startManager(ctx, "--reconcile-period=2s")
		DeferCleanup(func(ctx context.Context) {
			manager.Stop()
			startManager(ctx)
		})
		ns := newNamespace(ctx, nil)
		// Other specs count what is stored.
		DeferCleanup(func(ctx context.Context) {
			mustKubectl(ctx, "", "delete", "trainingjobs.penstock.dev,pods", "--all", "-n", ns, "--wait=false", "--grace-period=0", "--force")
		})

		By("storing the jobs")
		policies := []v1.CleanPodPolicy{v1.CleanPodNone, v1.CleanPodRunning, v1.CleanPodAll}
		inParallel(ctx, 2*each, func(i int) {
			name := fmt.Sprintf("runs-%d", i)
			if i >= each {
				name = fmt.Sprintf("ends-%d", i)
			}
			job := fixtures.TrainingJob(name, fixtures.Workers(1), fixtures.CleanPods(policies[i%len(policies)]), fixtures.Deadline(86400))
			job.Namespace, job.UID, job.Generation, job.CreationTimestamp = ns, "", 0, metav1.Time{}
			Expect(k8s.Create(ctx, job)).To(Succeed())
		})
		By("running and ending their pods, as kubelets would")
		told := map[string]bool{}
		Eventually(func(g Gomega, ctx context.Context) {
			var pods corev1.PodList
			g.Expect(k8s.List(ctx, &pods, client.InNamespace(ns))).To(Succeed())
			pods.Items = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return told[pod.Name] })
			inParallel(ctx, len(pods.Items), func(i int) {
				pod := &pods.Items[i]
				state := fixtures.Running()
				if strings.HasPrefix(pod.Name, "ends-") {
					state = fixtures.Succeeded()
				}
				state(pod)
				Expect(k8s.Status().Update(ctx, pod)).To(Succeed())
			})
			for _, pod := range pods.Items {
				told[pod.Name] = true
			}
			g.Expect(told).To(HaveLen(2 * each))
		}).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
		By("waiting for their phases")
		Eventually(func(g Gomega, ctx context.Context) {
			phases := map[v1.Phase]int{}
			var jobs v1.TrainingJobList
			g.Expect(k8s.List(ctx, &jobs, client.InNamespace(ns))).To(Succeed())
			for _, job := range jobs.Items {
				phases[job.Status.Phase]++
			}
			g.Expect(phases).To(Equal(map[v1.Phase]int{v1.PhaseRunning: each, v1.PhaseSucceeded: each}))
		}).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())

		By("looking at them again and again")
		afterPasses := func(n int) map[string]float64 {
			wanted := passes(ctx) + float64(n*2*each)
			Eventually(passes).WithContext(ctx).WithTimeout(time.Minute).WithPolling(200 * time.Millisecond).Should(BeNumerically(">=", wanted))
			return writesByResource(ctx)
		}
		// What is under way comes to its end: the audit, of all that was stored, by all
		// policies.
		var before map[string]float64
		Eventually(func(g Gomega) {
			before = writesByResource(ctx)
			g.Expect(before).NotTo(BeEmpty())
			g.Expect(afterPasses(1)).To(Equal(before))
		}).WithTimeout(time.Minute).Should(Succeed())
		Expect(afterPasses(3)).To(Equal(before))
		Expect(before).To(HaveKey("POST pods"), "the count counts")
	})
})

// passes is how often the manager has looked at a training job.
func passes(ctx context.Context) float64 {
	GinkgoHelper()
	return sum(samples(managerMetrics(ctx), "controller_runtime_reconcile_total", `controller="trainingjob"`))
}

// inParallel does something n times, several at once.
func inParallel(ctx context.Context, n int, do func(int)) {
	workqueue.ParallelizeUntil(ctx, 8, n, func(i int) {
		defer GinkgoRecover()
		do(i)
	})
}
