package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

const teamPolicy = `apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata:
  name: team-label
spec:
  match:
    resources:
    - {group: penstock.dev, kinds: [TrainingJob]}
    namespaceSelector: {matchLabels: {judged: "yes"}}
  parameters: {label: team}
  rego: |
    package team_label
    violation contains {"msg": sprintf("has no label %s", [input.parameters.label]), "field": "metadata.labels", "fix": "add it"} if {
      not input.object.metadata.labels[input.parameters.label]
    }
`

var _ = Describe("a policy", Serial, func() {
	It("takes effect for the next request, whatever of it was edited", func(ctx context.Context) {
		DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "", "delete", "workloadpolicy", "team-label") })
		ns := newNamespace(ctx, map[string]string{"judged": "yes"})
		other := newNamespace(ctx, nil)
		apply := func(manifest, namespace string) (string, error) {
			return kubectl(ctx, manifest, "apply", "-n", namespace, "-f", "-")
		}
		mustKubectl(ctx, teamPolicy, "apply", "-f", "-")
		awaitEnforced(ctx, "team-label")
		out, err := apply(alphaJob("unlabelled"), ns)
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("metadata.labels: has no label team: add it (policy team-label)"))
		out, err = apply(alphaJob("unlabelled"), other)
		Expect(err).NotTo(HaveOccurred(), out)

		mustKubectl(ctx, "", "patch", "workloadpolicy", "team-label", "--type=merge", "-p", `{"spec":{"parameters":{"label":"owner"}}}`)
		awaitEnforced(ctx, "team-label")
		out, err = apply(alphaJob("unlabelled"), ns)
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("has no label owner"))

		mustKubectl(ctx, "", "patch", "workloadpolicy", "team-label", "--type=merge", "-p", `{"spec":{"action":"Warn"}}`)
		awaitEnforced(ctx, "team-label")
		out, err = apply(alphaJob("unlabelled"), ns)
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("Warning: metadata.labels: has no label owner"))
	})

	DescribeTable("that is wrong is refused with the reason", func(ctx context.Context, patch string, want ...string) {
		out, err := kubectl(ctx, "", "patch", "workloadpolicy", "gpu-requests", "--type=merge", "-p", patch)
		Expect(err).To(HaveOccurred(), out)
		for _, part := range want {
			Expect(out).To(ContainSubstring(part))
		}
	},
		Entry("Rego that does not compile", `{"spec":{"rego":"package p\n\nviolation contains {\"msg\": m} if {\n  m := undefined_thing\n}\n"}}`, "spec.rego", "4:", "undefined_thing"),
		Entry("Rego that does not parse", `{"spec":{"rego":"package p\n\nviolation contains {"}}`, "spec.rego", "3:", "rego_parse_error"),
		Entry("a builtin that is not allowed", `{"spec":{"rego":"package p\nviolation contains {\"msg\": m} if {\n  m := http.send({}).body\n}\n"}}`, "spec.rego", "http.send"),
		Entry("an unknown action", `{"spec":{"action":"Explode"}}`, "spec.action", "Unsupported value"),
		Entry("a date that does not parse", `{"spec":{"exceptions":[{"namespaces":["a"],"until":"tomorrow","reason":"r"}]}}`, "spec.exceptions[0].until"),
		Entry("names without namespaces", `{"spec":{"exceptions":[{"names":["a"],"until":"2030-01-01T00:00:00Z","reason":"r"}]}}`, "spec.exceptions[0].namespaces", "names alone are those of cluster-scoped objects"),
	)

	It("that loops is cut at its deadline and answered by its failure policy", func(ctx context.Context) {
		DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "", "delete", "workloadpolicy", "loop") })
		ns := newNamespace(ctx, map[string]string{"loop": "yes"})
		loop := func(failurePolicy string) string {
			return `apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: loop}
spec:
  failurePolicy: ` + failurePolicy + `
  match:
    resources: [{group: penstock.dev, kinds: [TrainingJob]}]
    namespaceSelector: {matchLabels: {loop: "yes"}}
  rego: |
    package loop
    violation contains {"msg": "endless"} if {
      count([1 | some i in numbers.range(1, 30000); some j in numbers.range(1, 30000); i == j]) == 0
    }
`
		}
		mustKubectl(ctx, loop("Fail"), "apply", "-f", "-")
		awaitEnforced(ctx, "loop")
		out, err := kubectl(ctx, alphaJob("slow"), "apply", "-n", ns, "-f", "-")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("policy loop could not be evaluated"))
		mustKubectl(ctx, loop("Ignore"), "apply", "-f", "-")
		awaitEnforced(ctx, "loop")
		out = mustKubectl(ctx, alphaJob("slow"), "apply", "-n", ns, "-f", "-")
		Expect(out).To(ContainSubstring("Warning: policy loop could not be evaluated"))
		out, err = kubectl(ctx, alphaJob("nine", "gpu: 8", "gpu: 9"), "apply", "-n", ns, "-f", "-")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("policy gpu-ceiling"), "the others still judge")
	})

	It("that became stricter tolerates what is stored until it is changed", func(ctx context.Context) {
		DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "", "delete", "workloadpolicy", "team-label") })
		ns := newNamespace(ctx, map[string]string{"judged": "yes"})
		mustKubectl(ctx, alphaJob("old"), "apply", "-n", ns, "-f", "-")
		mustKubectl(ctx, "", "patch", "-n", ns, "tj", "old", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`)
		mustKubectl(ctx, teamPolicy, "apply", "-f", "-")
		awaitEnforced(ctx, "team-label")
		mustKubectl(ctx, "", "patch", "-n", ns, "tj", "old", "--type=merge", "-p", `{"spec":{"runPolicy":{"backoffLimit":4}}}`)
		mustKubectl(ctx, "", "delete", "-n", ns, "tj", "old", "--wait=false")
		mustKubectl(ctx, "", "patch", "-n", ns, "tj", "old", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		Eventually(func() error {
			_, err := kubectl(ctx, "", "get", "-n", ns, "tj", "old")
			return err
		}).Should(HaveOccurred())
	})
})

func awaitEnforced(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var policy v1.WorkloadPolicy
		g.Expect(k8s.Get(ctx, client.ObjectKey{Name: name}, &policy)).To(Succeed())
		g.Expect(policy.Status.EnforcedGeneration).To(Equal(policy.Generation))
	}).WithContext(ctx).Should(Succeed())
}
