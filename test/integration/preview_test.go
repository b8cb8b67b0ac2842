package integration

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// costPolicy wants a label of the jobs and pods of a namespace.
func costPolicy(namespace string, edit ...string) string {
	return strings.NewReplacer(edit...).Replace(fmt.Sprintf(`apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: cost}
spec:
  action: Deny
  failurePolicy: Ignore
  match:
    resources:
    - {group: penstock.dev, kinds: [TrainingJob]}
    - {group: "", kinds: [Pod]}
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %q}}
  parameters: {label: cost}
  rego: |
    package cost
    violation contains {"msg": sprintf("has no label %%s", [input.parameters.label]), "field": "metadata.labels", "fix": "add it"} if {
      not input.object.metadata.labels[input.parameters.label]
    }
`, namespace))
}

func labelledPod(name string, labels string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {%s}}, spec: {containers: [{name: a, image: a}]}}", name, labels)
}

var _ = Describe("the preview of a policy", Serial, func() {
	var ns string
	BeforeEach(func(ctx context.Context) {
		// A preview looks at all that is stored, within a second: what other
		// specs left must not use that up.
		mustKubectl(ctx, "", "delete", "pods,trainingjobs.penstock.dev", "--all", "-A", "--force", "--grace-period=0")
		ns = newNamespace(ctx, nil)
		// The API server alone makes no service accounts.
		mustKubectl(ctx, "", "create", "serviceaccount", "default", "-n", ns)
		mustKubectl(ctx, alphaJob("unlabelled", "backoffLimit: 3", "backoffLimit: 3\n    suspend: true"), "apply", "-n", ns, "-f", "-")
		mustKubectl(ctx, labelledPod("bare", ""), "apply", "-n", ns, "-f", "-")
		mustKubectl(ctx, labelledPod("labelled", "cost: a"), "apply", "-n", ns, "-f", "-")
	})
	AfterEach(func(ctx context.Context) {
		mustKubectl(ctx, "", "delete", "workloadpolicy", "cost", "--ignore-not-found")
		mustKubectl(ctx, "", "delete", "pods,trainingjobs.penstock.dev", "--all", "-n", ns, "--force", "--grace-period=0")
	})

	It("says at a dry run and at apply what it would refuse, and stores nothing for a dry run", func(ctx context.Context) {
		out := mustKubectl(ctx, costPolicy(ns), "apply", "--dry-run=server", "-f", "-")
		Expect(out).To(And(
			MatchRegexp(`Warning: preview: 2 of 3 stored objects would be refused if written now`),
			ContainSubstring("Warning: preview: TrainingJob "+ns+"/unlabelled: metadata.labels: has no label cost: add it"),
			ContainSubstring("Warning: preview: Pod "+ns+"/bare: metadata.labels: has no label cost: add it"),
			Not(ContainSubstring("/labelled")),
		))
		_, err := kubectl(ctx, "", "get", "workloadpolicy", "cost")
		Expect(err).To(HaveOccurred())
		out = mustKubectl(ctx, costPolicy(ns), "apply", "-f", "-")
		Expect(out).To(MatchRegexp(`Warning: preview: 2 of 3 stored objects would be refused if written now`))

		By("saying of an edit what comes off worse")
		out = mustKubectl(ctx, costPolicy(ns), "apply", "-f", "-")
		Expect(out).NotTo(ContainSubstring("preview"))
		// A preview ends in time whatever it has seen: on a busy machine that may be
		// less than all.
		edited := func(edit ...string) func(Gomega, context.Context) string {
			return func(g Gomega, ctx context.Context) string {
				out, err := kubectl(ctx, costPolicy(ns, edit...), "apply", "--dry-run=server", "-f", "-")
				g.Expect(err).NotTo(HaveOccurred(), out)
				return out
			}
		}
		Eventually(edited("label: cost", "label: owner")).WithContext(ctx).Should(And(
			MatchRegexp(`Warning: preview: 1 of 3 stored objects, by this change, would be refused`),
			ContainSubstring("Pod "+ns+"/labelled: metadata.labels: has no label owner")))

		By("saying of an edit what it lets pass")
		Eventually(edited("not input.object.metadata.labels[input.parameters.label]", "input.object.spec.never")).WithContext(ctx).Should(
			ContainSubstring("preview: would now refuse 0 of 3 stored objects; the policy in force refuses 2"))
		Eventually(edited("[Pod]", "[Secret]")).WithContext(ctx).Should(
			ContainSubstring("preview: would now refuse 1 of 1 stored objects; the policy in force refuses 2 of 3"))
		out = mustKubectl(ctx, costPolicy(ns, "Deny", "Audit"), "apply", "-f", "-")
		Expect(out).To(And(ContainSubstring("preview: would now refuse 0 of 3 stored objects; the policy in force refuses 2"), Not(ContainSubstring("by this change"))))
		out = mustKubectl(ctx, costPolicy(ns, "Deny", "Warn"), "apply", "--dry-run=server", "-f", "-")
		Expect(out).To(MatchRegexp(`preview: 2 of 3 stored objects, by this change, would be warned about`))
	})

	It("heeds selectors, overrides and exceptions", func(ctx context.Context) {
		out := mustKubectl(ctx, costPolicy("no"), "apply", "--dry-run=server", "-f", "-")
		Expect(out).To(MatchRegexp(`preview: is asked about none of the \d+ stored objects of its kinds`))
		Expect(strings.Count(out, "preview")).To(Equal(1), out)
		out = mustKubectl(ctx, costPolicy(ns, "  parameters:", "  overrides: [{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: Exists}]}, action: Audit}]\n  parameters:"), "apply", "--dry-run=server", "-f", "-")
		Expect(out).To(And(MatchRegexp(`preview: 2 of 3 stored objects break this policy, which only records it`), Not(ContainSubstring("refused"))))
		exception := "  exceptions: [{namespaces: [" + ns + "], names: [bare], until: \"2099-01-01T00:00:00Z\", reason: r}]\n  parameters:"
		out = mustKubectl(ctx, costPolicy(ns, "  parameters:", exception), "apply", "--dry-run=server", "-f", "-")
		Expect(out).To(And(MatchRegexp(`preview: 1 of 2 stored objects would be refused`), Not(ContainSubstring("/bare"))))
	})

	It("does not guess what stored objects do not tell", func(ctx context.Context) {
		out := mustKubectl(ctx, costPolicy(ns, "not input.object.metadata.labels[input.parameters.label]", `input.user.username != "root"`), "apply", "--dry-run=server", "-f", "-")
		Expect(out).To(And(ContainSubstring("the rule reads who makes a request, which a stored object does not tell"), Not(ContainSubstring("refused"))))
		out = mustKubectl(ctx, costPolicy(ns, "[TrainingJob]", `["*"]`, `group: ""`, `group: apps`, "[Pod]", `["*"]`), "apply", "--dry-run=server", "-f", "-")
		Expect(out).To(And(ContainSubstring("stored objects of *.apps are not looked at: only kinds that are named are looked at"), MatchRegexp(`preview: 1 of \d+ stored`)))
	})

	It("names to an author only what he may list", func(ctx context.Context) {
		mustKubectl(ctx, costPolicy("no"), "apply", "-f", "-")
		relaxer := userWith(ctx, "narrower")
		// Only its action changes: nothing more is read.
		mustKubectl(ctx, costPolicy(ns, "Deny", "Audit"), "apply", "-f", "-")
		out := mustKubectl(ctx, "", append([]string{"patch", "workloadpolicy", "cost", "--type=merge", "-p", `{"spec":{"action":"Deny"}}`, "--dry-run=server"}, relaxer...)...)
		Expect(out).To(And(
			MatchRegexp(`preview: 2 of 3 stored objects, by this change, would be refused`),
			ContainSubstring("objects that you may not list are counted and not named"),
			Not(ContainSubstring(ns)),
		))
		mustKubectl(ctx, "", "create", "role", "lister", "-n", ns, "--verb=list", "--resource=pods")
		mustKubectl(ctx, "", "create", "rolebinding", "lister", "-n", ns, "--role=lister", "--user=narrower")
		Eventually(func() string {
			return mustKubectl(ctx, "", append([]string{"patch", "workloadpolicy", "cost", "--type=merge", "-p", `{"spec":{"action":"Deny"}}`, "--dry-run=server"}, relaxer...)...)
		}).WithContext(ctx).Should(And(ContainSubstring("Pod "+ns+"/bare: "), Not(ContainSubstring("TrainingJob "+ns))))
	})

	It("ends with its budget, and says how far it came", func(ctx context.Context) {
		slow := costPolicy(ns, "not input.object.metadata.labels[input.parameters.label]",
			`not input.object.metadata.labels.never; count([1 | some i in numbers.range(1, 110); some j in numbers.range(1, 110); i < j]) > 0`)
		for i := range 24 {
			mustKubectl(ctx, labelledPod(fmt.Sprintf("many-%d", i), ""), "apply", "-n", ns, "-f", "-")
		}
		out := mustKubectl(ctx, slow, "apply", "--dry-run=server", "-f", "-")
		Expect(out).To(MatchRegexp(`preview: \d+ of the \d+ judged in time of up to \d+ stored objects`))
	})
})
