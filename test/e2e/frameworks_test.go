package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// sampleJob is a sample whose pods run so many seconds, by role in the v1alpha1
// shape or in v1's; the other roles run for ever.
func sampleJob(name string, seconds map[string]string) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(root, "config/samples", name))
	Expect(err).NotTo(HaveOccurred())
	var object map[string]any
	Expect(yaml.Unmarshal(content, &object)).To(Succeed())
	behave := func(role string, spec any) {
		run, ends := seconds[role]
		if !ends {
			run = "forever"
		}
		template := spec.(map[string]any)["template"].(map[string]any)
		template["metadata"] = map[string]any{"annotations": map[string]any{cluster.SimulateRunSeconds: run}}
	}
	for field, value := range object["spec"].(map[string]any) {
		if roles, isMap := value.(map[string]any); isMap && strings.HasSuffix(field, "ReplicaSpecs") {
			for role, spec := range roles {
				behave(role, spec)
			}
		}
		if roles, isList := value.([]any); isList && field == "roles" {
			for _, role := range roles {
				behave(role.(map[string]any)["name"].(string), role)
			}
		}
	}
	text, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// ends makes the pods of one role run so many seconds, and all others for ever.
func ends(role v1.RoleName, seconds string) fixtures.JobMod {
	return fixtures.EachRole(func(r *v1.Role) {
		run := "forever"
		if r.Name == role {
			run = seconds
		}
		r.Template.Annotations = map[string]string{cluster.SimulateRunSeconds: run}
	})
}

var _ = Describe("a job of each framework", func() {
	DescribeTable("runs to its end", func(ctx context.Context, sample, name string, seconds map[string]string, left ...string) {
		ns := newNamespace(ctx)
		mustKubectl(ctx, sampleJob(sample, seconds), "apply", "-n", ns, "-f", "-")
		job := eventuallyJob(ctx, ns, name, inPhase(v1.PhaseSucceeded))
		Expect(job.Status.CompletionTime).NotTo(BeNil())
		Expect(job.Status.Restarts).To(HaveValue(BeZero()))
		Eventually(pods(ns, name)).WithContext(ctx).Should(And(HaveLen(len(left)), WithTransform(func(pods map[string]corev1.Pod) []string {
			var names []string
			for name := range pods {
				names = append(names, name)
			}
			return names
		}, ConsistOf(left))))
	},
		Entry("PyTorch, when its master is done", "pytorch.v1alpha1.yaml", "resnet", map[string]string{"Master": "2"}, "resnet-master-0"),
		Entry("elastic PyTorch, when all workers are done", "elastic.v1alpha1.yaml", "llama", map[string]string{"Worker": "1"}, "llama-worker-0", "llama-worker-1"),
		Entry("TensorFlow, when its chief is done", "tensorflow.v1alpha1.yaml", "recommender", map[string]string{"Chief": "2"}, "recommender-chief-0"),
		Entry("MPI, when its launcher is done", "mpi.v1alpha1.yaml", "ring", map[string]string{"Launcher": "2"}, "ring-launcher-0"),
		Entry("PaddlePaddle, when all workers are done", "paddle.v1alpha1.yaml", "ocr", map[string]string{"Worker": "1"}, "ocr-worker-0", "ocr-worker-1"),
		Entry("XGBoost, when its master is done", "xgboost.v1alpha1.yaml", "churn", map[string]string{"Master": "2"}, "churn-master-0"),
		Entry("JAX, when all workers are done", "jax.v1.yaml", "diffusion", map[string]string{"Worker": "1"}, "diffusion-worker-0", "diffusion-worker-1"),
	)

	It("makes an MPI launcher after its workers, and takes the keys away with the last pod that runs", func(ctx context.Context) {
		ns := newNamespace(ctx)
		mustKubectl(ctx, sampleJob("mpi.v1alpha1.yaml", map[string]string{"Launcher": "2"}), "apply", "-n", ns, "-f", "-")
		Eventually(pods(ns, "ring")).WithContext(ctx).Should(HaveKey("ring-launcher-0"))
		all := now(ctx, pods(ns, "ring"))
		for _, worker := range []string{"ring-worker-0", "ring-worker-1"} {
			pod := all[worker]
			Expect(pod.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))))
			Expect(pod.Status.StartTime.Time).NotTo(BeTemporally(">", all["ring-launcher-0"].CreationTimestamp.Time))
		}
		eventuallyJob(ctx, ns, "ring", inPhase(v1.PhaseSucceeded))
		Eventually(func(g Gomega, ctx context.Context) {
			var secrets corev1.SecretList
			g.Expect(k8s.List(ctx, &secrets, client.InNamespace(ns))).To(Succeed())
			g.Expect(secrets.Items).To(BeEmpty())
		}).WithContext(ctx).Should(Succeed())
	})

	It("lets an MPI launcher exec into its workers while there are any, over transport Exec", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "exec", fixtures.Role(v1.RoleLauncher, 1), fixtures.Workers(2), fixtures.Framework(v1.FrameworkMPI),
			fixtures.CleanPods(v1.CleanPodRunning), ends(v1.RoleLauncher, "4"),
			func(job *v1.TrainingJob) { job.Spec.MPI = &v1.MPI{Transport: v1.MPIExec} })
		eventuallyJob(ctx, ns, "exec", allReady("3/3"))
		may := func(pod string) string {
			out, _ := kubectl(ctx, "", "auth", "can-i", "create", "pods/"+pod, "--subresource=exec", "-n", ns,
				"--as=system:serviceaccount:"+ns+":exec-launcher")
			return strings.TrimSpace(out)
		}
		Expect(may("exec-worker-1")).To(HavePrefix("yes"))
		Expect(may("exec-launcher-0")).To(HavePrefix("no"))
		launcher := now(ctx, pods(ns, "exec"))["exec-launcher-0"]
		Expect(launcher.Spec.ServiceAccountName).To(Equal("exec-launcher"))
		eventuallyJob(ctx, ns, "exec", inPhase(v1.PhaseSucceeded))
		Eventually(func(g Gomega, ctx context.Context) {
			for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
				g.Expect(k8s.List(ctx, list, client.InNamespace(ns))).To(Succeed())
				g.Expect(meta.LenList(list)).To(BeZero())
			}
		}).WithContext(ctx).Should(Succeed())
		Eventually(pods(ns, "exec")).WithContext(ctx).Should(And(HaveLen(1), HaveKey("exec-launcher-0")))
	})

	It("lets the workers of TensorFlow come and go where they are dynamic", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "dynamic", fixtures.Role(v1.RolePS, 1), fixtures.Workers(2), fixtures.Framework(v1.FrameworkTensorFlow),
			fixtures.Elastic(1, 3), fixtures.Scaled(2), forever, func(job *v1.TrainingJob) {
				job.Spec.TensorFlow = &v1.TensorFlow{Workers: v1.WorkersDynamic, SuccessPolicy: v1.SuccessAllWorkers}
			})
		eventuallyJob(ctx, ns, "dynamic", allReady("3/3"))
		before := now(ctx, pods(ns, "dynamic"))
		mustKubectl(ctx, "", "scale", "-n", ns, "tj/dynamic", "--replicas=3")
		eventuallyJob(ctx, ns, "dynamic", allReady("4/4"))
		after := now(ctx, pods(ns, "dynamic"))
		for name := range before {
			Expect(after[name].UID).To(Equal(before[name].UID), name)
		}
		mustKubectl(ctx, "", "scale", "-n", ns, "tj/dynamic", "--replicas=1")
		Eventually(pods(ns, "dynamic")).WithContext(ctx).Should(And(HaveLen(2), HaveKey("dynamic-worker-0"), HaveKey("dynamic-ps-0")))
	})

	It("replaces the whole gang when one pod fails, once all old ones are gone", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "gang", fixtures.Framework(v1.FrameworkJAX), fixtures.GangRestart(), fixtures.Restart(v1.RestartOnFailure),
			fixtures.BackoffLimit(1), exits("1"))
		job := eventuallyJob(ctx, ns, "gang", failedFor(v1.TrainingJobBackoffLimitExceededReason, ContainSubstring("after 1 restart of")))
		Expect(job).To(restarted(1))
		Expect(job.Status.Attempt).To(HaveValue(BeEquivalentTo(1)))
		for name, pod := range now(ctx, pods(ns, "gang")) {
			Expect(pod.Labels).To(HaveKeyWithValue(v1.AttemptLabel, "1"), name)
		}
		Eventually(eventsOf(ns, "gang")).WithContext(ctx).Should(ContainElement(HavePrefix("GangRestarted: ")))
	})
})
