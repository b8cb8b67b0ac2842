package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/cluster"
)

const alphaResource = "trainingjobs.v1alpha1.penstock.dev"

// upstreamJob is the PyTorchJob that the samples hold, as a TrainingJob of
// v1alpha1: all that changes is the kind. Its pods run for some seconds.
func upstreamJob(seconds string, edit ...string) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(root, "config/samples/upstream/pytorchjob.yaml"))
	Expect(err).NotTo(HaveOccurred())
	edit = append(edit,
		"kubeflow.org/v1\n", "penstock.dev/v1alpha1\n",
		"kind: PyTorchJob", "kind: TrainingJob",
		"  namespace: vision\n", "",
		"      template:\n", "      template:\n        metadata:\n          annotations:\n            "+cluster.SimulateRunSeconds+": \""+seconds+"\"\n",
	)
	return strings.NewReplacer(edit...).Replace(string(content))
}

var _ = Describe("a newcomer", func() {
	It("has a Kubeflow PyTorchJob accepted, stored as v1, read in both versions, scheduled, run and succeeded", func(ctx context.Context) {
		ns := newNamespace(ctx)
		written := upstreamJob("3")
		Expect(mustKubectl(ctx, written, "apply", "-n", ns, "-f", "-")).To(ContainSubstring("trainingjob.penstock.dev/segmentation created"))

		stored := job(ns, "segmentation")
		eventuallyJob(ctx, ns, "segmentation", And(inPhase(v1.PhaseRunning), allReady("4/4")))
		nodes := map[string]int{}
		for name, pod := range now(ctx, pods(ns, "segmentation")) {
			Expect(pod.Status.Phase).To(Equal(corev1.PodRunning), name)
			nodes[pod.Spec.NodeName]++
		}
		Expect(nodes).To(And(HaveLen(4), HaveEach(1)), "8 GPUs each, so one to a node")
		Expect(now(ctx, services(ns, "segmentation"))).To(HaveLen(4))

		hub := now(ctx, stored)
		Expect(hub.Spec.Framework).To(Equal(v1.FrameworkPyTorch))
		Expect(hub.Spec.RunPolicy.Suspend).To(HaveValue(BeFalse()))
		Expect(hub.Spec.RunPolicy.CleanPodPolicy).To(Equal(v1.CleanPodNone))
		Expect(hub.Spec.Roles).To(HaveExactElements(
			And(HaveField("Name", v1.RoleMaster), HaveField("Replicas", HaveValue(Equal(int32(1))))),
			And(HaveField("Name", v1.RoleWorker), HaveField("Replicas", HaveValue(Equal(int32(3)))), HaveField("RestartPolicy", v1.RestartOnFailure)),
		))
		container := hub.Spec.Roles[0].Template.Spec.Containers[0]
		Expect(container.Ports).To(ConsistOf(And(HaveField("Name", "pytorchjob-port"), HaveField("ContainerPort", int32(23456)))))
		Expect(container.Resources.Requests).To(HaveKey(corev1.ResourceName("nvidia.com/gpu")), "requests are filled from limits")

		var before, after map[string]any
		Expect(yaml.Unmarshal([]byte(written), &before)).To(Succeed())
		Expect(yaml.Unmarshal([]byte(mustKubectl(ctx, "", "get", "-n", ns, alphaResource, "segmentation", "-o", "yaml")), &after)).To(Succeed())
		Expect(after["apiVersion"]).To(Equal("penstock.dev/v1alpha1"))
		expectHolds(after["spec"], before["spec"], "spec")
		Expect(after["status"]).To(HaveKeyWithValue("phase", "Running"))
		Expect(mustKubectl(ctx, "", "get", "-n", ns, "tj", "segmentation", "-o", "yaml")).To(HavePrefix("apiVersion: penstock.dev/v1\n"))

		mustKubectl(ctx, "", "wait", "-n", ns, "tj/segmentation", "--for=condition=Succeeded", "--timeout=30s")
		Expect(now(ctx, stored)).To(And(inPhase(v1.PhaseSucceeded), allReady("4/4"), restarted(0), HaveField("Status.CompletionTime", Not(BeNil()))))
		Eventually(eventsOf(ns, "segmentation")).WithContext(ctx).Should(ContainElements(HavePrefix("PodsCreated"), HavePrefix("JobSucceeded")))
	})

	It("is told every fault of a job at once, in the paths that were written", func(ctx context.Context) {
		ns := newNamespace(ctx)
		out, err := kubectl(ctx, "", "apply", "-n", ns, "-f", filepath.Join(root, "config/samples/refused-job.yaml"))
		Expect(err).To(HaveOccurred())
		Expect(out).To(And(
			ContainSubstring(`The TrainingJob "refused" is invalid`),
			MatchRegexp(`(?m)^\* spec\.pytorchReplicaSpecs\.Master\.restartPolicy: .*policy restart-policy`),
			MatchRegexp(`(?m)^\* spec\.pytorchReplicaSpecs\.Master\.template\.spec\.containers\[0\]\.resources\.limits\[nvidia\.com/gpus\]: .*policy gpu-resource-names`),
			MatchRegexp(`(?m)^\* spec\.pytorchReplicaSpecs\.Worker\.template\.spec\.containers\[0\]\.resources\.requests\[nvidia\.com/gpu\]: .*policy gpu-requests`),
			MatchRegexp(`(?m)^\* spec\.pytorchReplicaSpecs\.Worker\.template\.spec\.containers\[0\]\.resources\.limits\[nvidia\.com/gpu\]: .*policy gpu-ceiling`),
		))
		Expect(mustKubectl(ctx, "", "get", "-n", ns, "tj")).To(ContainSubstring("No resources found"))
	})

	DescribeTable("changes nothing by applying a running job again", func(ctx context.Context, sample string, args ...string) {
		ns := newNamespace(ctx)
		written := upstreamJob("forever", "nvidia.com/gpu: 8", "nvidia.com/gpu: 1")
		if sample != "" {
			content, err := os.ReadFile(filepath.Join(root, "config/samples", sample))
			Expect(err).NotTo(HaveOccurred())
			written = strings.ReplaceAll(string(content), "    template:\n", "    template:\n      metadata: {annotations: {"+cluster.SimulateRunSeconds+": forever}}\n")
		}
		apply := append([]string{"apply", "-n", ns, "-f", "-"}, args...)
		mustKubectl(ctx, written, apply...)
		version := func(g Gomega, ctx context.Context) string {
			out, err := kubectl(ctx, "", "get", "-n", ns, "tj", "-o", `jsonpath={range .items[*]}{.status.phase} {.status.rolesReady} {.metadata.resourceVersion}{end}`)
			g.Expect(err).NotTo(HaveOccurred(), out)
			return out
		}
		Eventually(version).WithContext(ctx).Should(MatchRegexp("^Running 4/4 "))
		// Counts are written a second after they change.
		running := now(ctx, version)
		Consistently(version).WithContext(ctx).WithTimeout(1500 * time.Millisecond).WithPolling(500 * time.Millisecond).Should(Equal(running))
		mustKubectl(ctx, written, apply...)
		mustKubectl(ctx, written, apply...)
		Expect(now(ctx, version)).To(Equal(running))
	},
		Entry("in v1alpha1, client-side", ""),
		Entry("in v1alpha1, server-side", "", "--server-side"),
		Entry("in v1, client-side", "pytorch.v1.yaml"),
		Entry("in v1, server-side", "pytorch.v1.yaml", "--server-side"),
	)

	It("edits a policy, and the next request is judged by it", func(ctx context.Context) {
		ns := newNamespace(ctx)
		small := upstreamJob("1", "nvidia.com/gpu: 8", "nvidia.com/gpu: 3")
		dryRun := func(ctx context.Context) (string, error) {
			return kubectl(ctx, small, "apply", "-n", ns, "--dry-run=server", "-f", "-")
		}
		out, err := dryRun(ctx)
		Expect(err).NotTo(HaveOccurred(), out)
		DeferCleanup(func(ctx context.Context) {
			patch(ctx, "", "workloadpolicy/gpu-ceiling", `{"spec":{"parameters":{"maxPerPod":8}}}`)
			Eventually(func(ctx context.Context) error {
				_, err := dryRun(ctx)
				return err
			}).WithContext(ctx).Should(Succeed())
		})
		patch(ctx, "", "workloadpolicy/gpu-ceiling", `{"spec":{"parameters":{"maxPerPod":2}}}`)
		Eventually(func(ctx context.Context) string {
			out, _ := dryRun(ctx)
			return out
		}).WithContext(ctx).Should(And(ContainSubstring("at most 2 are allowed"), ContainSubstring("policy gpu-ceiling")))
		Expect(mustKubectl(ctx, "", "get", "workloadpolicy", "gpu-ceiling")).To(MatchRegexp(`gpu-ceiling\s+Deny\s+True`))
	})

	It("reads what the fields mean, and how jobs are doing, with kubectl alone", func(ctx context.Context) {
		ns := newNamespace(ctx)
		Expect(mustKubectl(ctx, "", "explain", "trainingjob.spec.roles")).To(And(
			ContainSubstring("KIND:       TrainingJob"), ContainSubstring("VERSION:    v1\n"),
			ContainSubstring("FIELD: roles <[]Object>"),
			ContainSubstring("roles are the groups of pods of the job"),
			ContainSubstring("name of the role, unique within the workload"),
			ContainSubstring("ended: Always, OnFailure, Never or ExitCode"),
			ContainSubstring("-required-"),
		))
		Expect(mustKubectl(ctx, "", "explain", "trainingjob.spec", "--api-version=penstock.dev/v1alpha1")).To(ContainSubstring("pytorchReplicaSpecs"))

		submit(ctx, ns, "shown", forever)
		eventuallyJob(ctx, ns, "shown", allReady("2/2"))
		columns := `^NAME +FRAMEWORK +PHASE +READY +RESTARTS +AGE\n\S*shown +PyTorch +Running +2/2 +0 +\d+s\n`
		Expect(mustKubectl(ctx, "", "get", "-n", ns, "tj")).To(MatchRegexp(columns))
		Expect(mustKubectl(ctx, "", "get", "-n", ns, "penstock")).To(MatchRegexp(columns))
		// There the framework is the name of a field.
		columns = strings.NewReplacer(" +FRAMEWORK", "", " +PyTorch", "").Replace(columns)
		Expect(mustKubectl(ctx, "", "get", "-n", ns, alphaResource)).To(MatchRegexp(columns))
	})

	It("applies every CRD client-side", func(ctx context.Context) {
		files, err := filepath.Glob(filepath.Join(root, "config/crd/*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		applied := 0
		for _, file := range files {
			content, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			if !strings.Contains(file, "penstock.dev_") {
				continue
			}
			applied++
			name := strings.TrimSuffix(filepath.Base(file), ".yaml")
			group, plural, _ := strings.Cut(name, "_")
			// Of another group, so that what the manager serves is left alone; as a
			// dry run, which the annotation's limit holds for as well.
			renamed := strings.NewReplacer(plural+"."+group, plural+".copy.example.com", "  group: "+group, "  group: copy.example.com").Replace(string(content))
			out := mustKubectl(ctx, renamed, "apply", "--dry-run=server", "-f", "-")
			Expect(out).To(ContainSubstring("customresourcedefinition.apiextensions.k8s.io/"+plural), file)
			Expect(out).NotTo(ContainSubstring("Warning"), file)
		}
		Expect(applied).To(BeNumerically(">=", 2))
	})
})

// expectHolds checks that all that was written is there.
func expectHolds(got, want any, path string) {
	GinkgoHelper()
	switch want := want.(type) {
	case map[string]any:
		Expect(got).To(BeAssignableToTypeOf(want), path)
		for name, value := range want {
			expectHolds(got.(map[string]any)[name], value, path+"."+name)
		}
	case []any:
		Expect(got).To(And(BeAssignableToTypeOf(want), HaveLen(len(want))), path)
		for i := range want {
			expectHolds(got.([]any)[i], want[i], path)
		}
	default:
		Expect(got).To(BeEquivalentTo(want), path)
	}
}
