package integration

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("what is refused", func() {
	DescribeTable("says field, reason and fix, in the paths of the version it was written in",
		func(ctx context.Context, manifest string, want ...string) {
			ns := newNamespace(ctx, nil)
			out, err := kubectl(ctx, manifest, "apply", "-n", ns, "-f", "-")
			Expect(err).To(HaveOccurred(), out)
			for _, part := range want {
				Expect(out).To(ContainSubstring(part))
			}
			Expect(out).NotTo(ContainSubstring("Internal error"))
		},
		Entry("9 GPUs in a pod", alphaJob("nine", "gpu: 8", "gpu: 9"),
			"spec.pytorchReplicaSpecs.Master.template.spec.containers[0].resources.limits[nvidia.com/gpu]",
			"spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].resources.limits[nvidia.com/gpu]",
			"at most 8", "policy gpu-ceiling"),
		Entry("9 GPUs in a pod, in v1", hubJob("nine", "gpu: 8", "gpu: 9"),
			"spec.roles[0].template.spec.containers[0].resources.limits[nvidia.com/gpu]", "policy gpu-ceiling"),
		Entry("a misspelt resource", alphaJob("typo", "nvidia.com/gpu:", "nvidia.com/gpus:"),
			"limits[nvidia.com/gpus]", "nvidia.com/gpu", "policy gpu-resource-names"),
		Entry("requests that differ from limits", alphaJob("differ", "                cpu: 1000m\n", "                cpu: 1000m\n", "            resources:\n", "            resources:\n              requests: {nvidia.com/gpu: 4}\n"),
			"requests[nvidia.com/gpu]", "policy gpu-requests"),
		Entry("two masters", alphaJob("two", "replicas: 1", "replicas: 2"),
			"spec.pytorchReplicaSpecs.Master.replicas", "must be 1"),
		Entry("a master that always restarts", alphaJob("always", "replicas: 1\n      restartPolicy: OnFailure", "replicas: 1\n      restartPolicy: Always"),
			"spec.pytorchReplicaSpecs.Master.restartPolicy", "policy restart-policy"),
		Entry("a name too long for its pods", alphaJob(strings.Repeat("n", 58)),
			"metadata.name", "63"),
		Entry("a misspelt field in a template", alphaJob("imge", "image:", "imge:"),
			"spec.pytorchReplicaSpecs.Master.template.spec.containers[0].imge", `did you mean "image"?`),
		Entry("a container twice", alphaJob("twice", "          containers:\n", "          containers:\n          - {name: pytorch, image: a}\n"),
			"spec.pytorchReplicaSpecs.Master.template.spec.containers[1]", "change or remove one of the two"),
		Entry("a container twice, in v1", hubJob("twice", "        containers:\n", "        containers:\n        - {name: pytorch, image: a}\n"),
			"spec.roles[0].template.spec.containers[1]", "change or remove one of the two"),
		Entry("several faults at once", alphaJob("many", "replicas: 1", "replicas: 2", "gpu: 8", "gpu: 9"),
			"must be 1", "policy gpu-ceiling"),
	)

	DescribeTable("by the schema of the request's own version comes first and alone",
		func(ctx context.Context, manifest string, want ...string) {
			ns := newNamespace(ctx, nil)
			out, err := kubectl(ctx, manifest, "apply", "-n", ns, "--validate=ignore", "-f", "-")
			Expect(err).To(HaveOccurred(), out)
			for _, part := range want {
				Expect(out).To(ContainSubstring(part))
			}
			Expect(out).NotTo(Or(ContainSubstring("policy"), ContainSubstring("Internal error"), ContainSubstring("webhook")))
		},
		Entry("a count in words", alphaJob("words", "replicas: 2", "replicas: two", "gpu: 8", "gpu: 9"),
			"spec.pytorchReplicaSpecs.Worker.replicas", `must be of type integer: "string"`),
		Entry("a role that is a word", alphaJob("word", "runPolicy:\n    backoffLimit: 3", "runPolicy: never"),
			"spec.runPolicy", "must be of type object"),
		Entry("two frameworks", alphaJob("frameworks", "  runPolicy:\n    backoffLimit: 3\n", "  jaxReplicaSpecs: {Worker: {replicas: 1}}\n"),
			"exactly one of pytorchReplicaSpecs"),
		Entry("an unknown restart policy", alphaJob("restart", "restartPolicy: OnFailure", "restartPolicy: Sometimes"),
			"Unsupported value", "Sometimes"),
	)

	It("holds a request made in v1alpha1 to v1's schema", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		out, err := kubectl(ctx, alphaJob("negative", "backoffLimit: 3", "backoffLimit: -3"), "apply", "-n", ns, "-f", "-")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("spec.runPolicy.backoffLimit"))
		Expect(out).To(ContainSubstring("must be at least 0: raise it"))
	})

	// Client-side kubectl apply drops what is null by itself.
	DescribeTable("says so of a role that is null", func(ctx context.Context, args ...string) {
		ns := newNamespace(ctx, nil)
		out, err := kubectl(ctx, `{apiVersion: penstock.dev/v1alpha1, kind: TrainingJob, metadata: {name: "null"}, spec: {pytorchReplicaSpecs: {
  Master: null, Worker: {template: {spec: {containers: [{name: pytorch, image: "images.example/train:1"}]}}}}}}`, append(args, "-n", ns, "-f", "-")...)
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(And(ContainSubstring("spec.pytorchReplicaSpecs.Master.template"), ContainSubstring("write what they are, or remove the role")))
	},
		Entry("created", "create"),
		Entry("applied server-side", "apply", "--server-side"),
	)

	It("judges kubectl scale by the same rules", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		mustKubectl(ctx, hubJob("scaled"), "apply", "-n", ns, "-f", "-")
		out, err := kubectl(ctx, "", "scale", "-n", ns, "tj/scaled", "--replicas=9")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("spec.elastic.replicas"))
		mustKubectl(ctx, "", "scale", "-n", ns, "tj/scaled", "--replicas=4")
		Expect(valueAt(get(ctx, "v1", "TrainingJob", ns, "scaled"), "spec", "elastic", "replicas")).To(Equal(int64(4)))
	})

	It("says of a scale to nothing what helps, once", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		mustKubectl(ctx, hubJob("emptied"), "apply", "-n", ns, "-f", "-")
		out, err := kubectl(ctx, "", "scale", "-n", ns, "tj/emptied", "--replicas=0")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(And(ContainSubstring("spec.elastic.replicas"), ContainSubstring("suspend it by runPolicy.suspend"), Not(ContainSubstring("Master"))))
	})

	It("does not make a job elastic by kubectl scale", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		mustKubectl(ctx, alphaJob("fixed"), "apply", "-n", ns, "-f", "-")
		out, err := kubectl(ctx, "", "scale", "-n", ns, "tj/fixed", "--replicas=3")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("spec.elastic: is not set, so there is no count to scale"))
		spec := get(ctx, "v1", "TrainingJob", ns, "fixed").Object["spec"]
		Expect(spec).NotTo(HaveKey("elastic"))
	})

	It("names the version that scales jobs of all frameworks", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		mustKubectl(ctx, `{"apiVersion":"penstock.dev/v1alpha1","kind":"TrainingJob","metadata":{"name":"hosts"},"spec":{"elasticPolicy":{"minReplicas":1,"maxReplicas":4},
  "mpiReplicaSpecs":{"Launcher":{"template":{"spec":{"containers":[{"name":"mpi","image":"images.example/train:1"}]}}},
  "Worker":{"template":{"spec":{"containers":[{"name":"mpi","image":"images.example/train:1"}]}}}}}}`, "apply", "-n", ns, "-f", "-")
		out, err := kubectl(ctx, "", "scale", "-n", ns, "trainingjobs.v1alpha1.penstock.dev/hosts", "--replicas=3")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("scale it in v1, as by kubectl scale trainingjobs.v1.penstock.dev"))
		mustKubectl(ctx, "", "scale", "-n", ns, "trainingjobs.v1.penstock.dev/hosts", "--replicas=3")
		Expect(valueAt(get(ctx, "v1alpha1", "TrainingJob", ns, "hosts"), "spec", "mpiReplicaSpecs", "Worker", "replicas")).To(Equal(int64(3)))
	})

	It("does not change what cannot change", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		mustKubectl(ctx, alphaJob("fixed"), "apply", "-n", ns, "-f", "-")
		out, err := kubectl(ctx, "", "patch", "-n", ns, "trainingjobs.v1alpha1.penstock.dev/fixed", "--type=merge", "-p", `{"spec":{"runPolicy":{"managedBy":"example.com/other"}}}`)
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("spec.runPolicy"))
		Expect(out).To(ContainSubstring("cannot change"))
	})
})
