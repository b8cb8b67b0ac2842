package integration

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// kubeRay is a cluster with all that KubeRay's users write, at once.
const kubeRay = `
apiVersion: penstock.dev/v1alpha1
kind: RayCluster
metadata: {name: search}
spec:
  rayVersion: "2.52.0"
  suspend: true
  enableInTreeAutoscaling: true
  autoscalerOptions:
    version: v2
    upscalingMode: Conservative
    resources: {limits: {cpu: "0.5", memory: 512Mi}}
    env: []
    securityContext: {}
  headServiceAnnotations: {a: b}
  gcsFaultToleranceOptions:
    redisAddress: redis:6379
    redisPassword: {valueFrom: {secretKeyRef: {name: redis, key: password}}}
  authOptions: {mode: token}
  upgradeStrategy: {type: Recreate}
  headGroupSpec:
    serviceType: NodePort
    enableIngress: true
    ingressOptions: {host: ray.example, tls: [{hosts: [ray.example]}]}
    headService: {metadata: {name: head}, spec: {ports: [{name: dashboard, port: 8265}]}}
    rayStartParams: {}
    template:
      metadata: {labels: {}, creationTimestamp: null}
      spec:
        containers:
        - name: ray-head
          image: rayproject/ray:2.52.0
          ports: [{containerPort: 6379, name: gcs-server}]
          resources: {limits: {cpu: 1000m, memory: 8Gi}}
  workerGroupSpecs:
  - groupName: small-group
    replicas: 1
    minReplicas: 1
    maxReplicas: 10
    numOfHosts: 2
    scaleStrategy: {workersToDelete: [search-small-group-0]}
    rayStartParams: {num-cpus: "1"}
    template: &template
      spec:
        containers:
        - name: ray-worker
          image: rayproject/ray:2.52.0
          resources: {limits: {cpu: "1", memory: 1Gi}}
  - groupName: big
    maxReplicas: 2
    template: *template
`

var _ = Describe("a RayCluster", func() {
	It("is stored as roles, and reads as it was written", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		mustKubectl(ctx, kubeRay, "apply", "-n", ns, "-f", "-")
		stored := get(ctx, "v1", v1.RayClusterKind, ns, "search")
		Expect(stored.GetAnnotations()).NotTo(HaveKey(v1.RestoreAnnotation), "something of what was written is lost in v1")
		var cluster v1.RayCluster
		asYAML, err := yaml.Marshal(stored.Object)
		Expect(err).NotTo(HaveOccurred())
		Expect(yaml.Unmarshal(asYAML, &cluster)).To(Succeed())
		Expect(cluster.Spec.Roles).To(HaveLen(3))
		Expect(cluster.Spec.Roles[0].Name).To(Equal(v1.RoleHead))
		Expect(cluster.Spec.Roles[2].Replicas).To(HaveValue(BeZero()), "the smallest number")
		Expect(string(cluster.Spec.Roles[1].Template.Spec.RestartPolicy)).To(Equal("Never"), "for the second autoscaler")

		read := get(ctx, "v1alpha1", v1.RayClusterKind, ns, "search")
		Expect(read.GetAnnotations()).NotTo(HaveKey(v1.RestoreAnnotation), "something of what is stored is lost in v1alpha1")
		var before string
		Eventually(func(g Gomega, ctx context.Context) {
			settled := get(ctx, "v1alpha1", v1.RayClusterKind, ns, "search")
			g.Expect(settled.Object["status"]).To(And(HaveKeyWithValue("phase", "Suspended"), HaveKeyWithValue("head", HaveKey("serviceIP"))))
			before = settled.GetResourceVersion()
		}).WithContext(ctx).Should(Succeed())
		mustKubectl(ctx, kubeRay, "apply", "-n", ns, "-f", "-")
		Expect(get(ctx, "v1alpha1", v1.RayClusterKind, ns, "search").GetResourceVersion()).To(Equal(before))
	})

	DescribeTable("is refused at the field that was written",
		func(ctx context.Context, manifest string, want ...string) {
			ns := newNamespace(ctx, nil)
			out, err := kubectl(ctx, manifest, "apply", "-n", ns, "-f", "-")
			Expect(err).To(HaveOccurred(), out)
			for _, part := range want {
				Expect(out).To(ContainSubstring(part))
			}
			Expect(out).NotTo(Or(ContainSubstring("spec.roles"), ContainSubstring("Internal error")))
		},
		Entry("twin groups", replaced(kubeRay, "groupName: big", "groupName: small-group"),
			"spec.workerGroupSpecs[1].groupName: ", "stands twice, and both make pods of the same names: join the two, or rename one"),
		Entry("crossed bounds", replaced(kubeRay, "maxReplicas: 10", "maxReplicas: 0"), "spec.workerGroupSpecs[0].maxReplicas: ", "at least minReplicas, which is 1"),
		Entry("a misspelt field in a template", replaced(kubeRay, "image: rayproject/ray:2.52.0\n          ports", "imge: rayproject/ray:2.52.0\n          ports"),
			"spec.headGroupSpec.template.spec.containers[0].imge", `did you mean "image"?`),
		Entry("a password in plain text", replaced(kubeRay, "{valueFrom: {secretKeyRef: {name: redis, key: password}}}", "{value: secret}"),
			"spec.gcsFaultToleranceOptions.redisPassword.value: ", "put it into a Secret"),
		Entry("an old Ray with tokens", replaced(kubeRay, `rayVersion: "2.52.0"`, `rayVersion: "2.9.0"`), "spec.rayVersion: ", "tokens need Ray 2.52"),
		Entry("two sources of truth", replaced(kubeRay, `rayStartParams: {num-cpus: "1"}`, "rayStartParams: {num-cpus: \"1\"}\n    resources: {CPU: \"2\"}"),
			"spec.workerGroupSpecs[0].rayStartParams[num-cpus]: ", "keep one of the two"),
		Entry("a group suspended beside the autoscaler", replaced(kubeRay, "numOfHosts: 2", "suspend: true"), "spec.workerGroupSpecs[0].suspend: ", "disable the autoscaler"),
		Entry("no replicas of three hosts", replaced(kubeRay, "numOfHosts: 2", "numOfHosts: 0"), "spec.workerGroupSpecs[0].numOfHosts: "),
	)

	It("cannot be handed to another controller", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		mustKubectl(ctx, kubeRay, "apply", "-n", ns, "-f", "-")
		out, err := kubectl(ctx, replaced(kubeRay, "suspend: true", "suspend: true\n  managedBy: kueue.x-k8s.io/multikueue"), "apply", "-n", ns, "-f", "-")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("spec.managedBy: "))
		Expect(out).To(ContainSubstring("make a new cluster instead"))
	})
})

// replaced is text with one part replaced by another, which must be there.
func replaced(text, old, by string) string {
	if !strings.Contains(text, old) {
		panic("the manifest does not say " + old)
	}
	return strings.Replace(text, old, by, 1)
}
