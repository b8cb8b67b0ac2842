package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// labelPolicy wants a label of the jobs of a namespace, unless an override says
// otherwise.
func labelPolicy(namespace, override string) string {
	return fmt.Sprintf(`apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: labels-wanted}
spec:
  match:
    resources:
    - {group: penstock.dev, kinds: [TrainingJob]}
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %q}}
  parameters: {label: cost, other: {b: c}}
  overrides:
  - namespaceSelector: {}
    %s
  rego: |
    package labels_wanted
    violation contains {"msg": sprintf("has no label %%s", [input.parameters.label]), "field": "metadata.labels", "fix": "add it"} if {
      not input.object.metadata.labels[input.parameters.label]
    }
    violation contains {"msg": input.parameters.other.b} if false
`, namespace, override)
}

// kubectl drops what is null when it applies over what is stored: the policy must
// not become another than its file says.
var _ = Describe("a parameter of a policy", Serial, func() {
	const (
		null  = "parameters: {label: null}"
		unset = "unset: [label]"
	)
	var ns string
	BeforeEach(func(ctx context.Context) {
		ns = newNamespace(ctx, nil)
		DeferCleanup(func(ctx context.Context) {
			mustKubectl(ctx, "", "delete", "workloadpolicy", "labels-wanted", "--ignore-not-found")
		})
	})

	It("is removed by unset, whichever way the policy is written", func(ctx context.Context) {
		for _, way := range [][]string{{"apply"}, {"apply", "--server-side", "--force-conflicts"}, {"replace"}} {
			// A replacement names the version that it replaces, and the status may be
			// written in between.
			write := func(policy string) {
				Eventually(func() (string, error) { return kubectl(ctx, policy, append(way, "-f", "-")...) }).WithContext(ctx).ShouldNot(BeEmpty())
			}
			write(labelPolicy(ns, "parameters: {label: team}"))
			awaitEnforced(ctx, "labels-wanted")
			out, err := kubectl(ctx, alphaJob("bare"), "create", "-n", ns, "--dry-run=server", "-f", "-")
			Expect(err).To(HaveOccurred(), out)
			Expect(out).To(ContainSubstring("has no label team"))
			write(labelPolicy(ns, unset))
			awaitEnforced(ctx, "labels-wanted")
			Expect(mustKubectl(ctx, "", "get", "workloadpolicy", "labels-wanted", "-o", "jsonpath={.spec.overrides[0].unset}")).To(Equal(`["label"]`))
			mustKubectl(ctx, alphaJob("bare"), "create", "-n", ns, "--dry-run=server", "-f", "-")
		}
		mustKubectl(ctx, "", "get", "workloadpolicy", "labels-wanted")
	})

	It("cannot be null, nor be dropped as null", func(ctx context.Context) {
		fix := `write overrides[0].unset: ["label"]`
		for _, way := range [][]string{{"create"}, {"apply"}, {"apply", "--server-side"}} {
			out, err := kubectl(ctx, labelPolicy(ns, null), append(way, "-f", "-")...)
			Expect(err).To(HaveOccurred(), out)
			Expect(out).To(And(ContainSubstring("spec.overrides[0].parameters.label"), ContainSubstring(fix)), "%v", way)
		}
		By("applying it over what is stored, where kubectl drops it")
		mustKubectl(ctx, labelPolicy(ns, "parameters: {label: team}"), "apply", "-f", "-")
		out, err := kubectl(ctx, labelPolicy(ns, null), "apply", "-f", "-")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(And(ContainSubstring("spec.overrides[0].parameters.label"), ContainSubstring(fix)))
		out, err = kubectl(ctx, strings.Replace(labelPolicy(ns, unset), "other: {b: c}", "other: {b: null}", 1), "apply", "-f", "-")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(And(ContainSubstring("spec.parameters.other.b"), ContainSubstring("leave it out, or give it a value")))

		By("naming a parameter that is not there")
		out, err = kubectl(ctx, labelPolicy(ns, "unset: [lable]"), "apply", "-f", "-")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("spec.overrides[0].unset[0]: Invalid value: \"lable\": is a parameter of neither the policy nor an override before: write label"))
	})

	It("can be unset in an editor", func(ctx context.Context) {
		mustKubectl(ctx, labelPolicy(ns, "parameters: {label: team}"), "apply", "-f", "-")
		editor := filepath.Join(GinkgoT().TempDir(), "editor")
		script := "#!/bin/sh\nsed -i 's/^  - namespaceSelector: {}$/&\\n    unset: [label]/; /^ *label: team$/d; /^    parameters:$/d' \"$1\"\n"
		Expect(os.WriteFile(editor, []byte(script), 0o755)).To(Succeed())
		GinkgoT().Setenv("KUBE_EDITOR", editor)
		mustKubectl(ctx, "", "edit", "workloadpolicy", "labels-wanted")
		Expect(mustKubectl(ctx, "", "get", "workloadpolicy", "labels-wanted", "-o", "jsonpath={.spec.overrides[0].unset}{.spec.overrides[0].parameters}")).To(Equal(`["label"]`))
	})
})

var _ = Describe("a policy with a fault that shows in stored objects", Serial, func() {
	const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: old}, spec: {replicas: 0, selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: "elsewhere/a:1"}]}}}}`
	imagePolicy := func(namespace, field, conditions string) string {
		return fmt.Sprintf(`apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: images}
spec:
  match:
    resources:
    - {group: apps, kinds: [Deployment]}
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %q}}
  %s
  rego: |
    package images
    violation contains {"msg": "comes from elsewhere", "field": %q} if {
      some container in input.object.spec.template.spec.containers
      startswith(container.image, "elsewhere/")
    }
`, namespace, conditions, field)
	}
	var ns string
	BeforeEach(func(ctx context.Context) {
		ns = newNamespace(ctx, nil)
		mustKubectl(ctx, deployment, "apply", "-n", ns, "-f", "-")
		DeferCleanup(func(ctx context.Context) {
			mustKubectl(ctx, "", "delete", "workloadpolicy", "images", "--ignore-not-found")
		})
	})

	It("judges updates by the spec where the field does not exist, and says so", func(ctx context.Context) {
		Eventually(func(g Gomega, ctx context.Context) {
			out, err := kubectl(ctx, imagePolicy(ns, "spec.containers", ""), "apply", "--dry-run=server", "-f", "-")
			g.Expect(err).NotTo(HaveOccurred(), out)
			g.Expect(out).To(ContainSubstring("for 1 of these the rule names the field spec.containers, and objects of the kind have no such field"))
		}).WithContext(ctx).Should(Succeed())
		applyPolicy(ctx, imagePolicy(ns, "spec.containers", ""), "images", "True Enforced")
		out, err := kubectl(ctx, "", "set", "image", "deployment/old", "a=elsewhere/a:2", "-n", ns)
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("comes from elsewhere"))
		mustKubectl(ctx, "", "label", "deployment", "old", "c=d", "-n", ns)

		By("naming the field")
		applyPolicy(ctx, imagePolicy(ns, "spec.template.spec.containers", ""), "images", "True Enforced")
		mustKubectl(ctx, "", "scale", "deployment", "old", "--replicas=1", "-n", ns)
		mustKubectl(ctx, "", "patch", "deployment", "old", "-n", ns, "--type=merge", "-p", `{"spec":{"minReadySeconds":3}}`)
		out, err = kubectl(ctx, "", "set", "image", "deployment/old", "a=elsewhere/a:2", "-n", ns)
		Expect(err).To(HaveOccurred(), out)
	})

	It("is said to keep objects from being written by a match condition that fails", func(ctx context.Context) {
		failing := imagePolicy(ns, "spec.template.spec.containers", `matchConditions: [{name: placed, expression: "object.spec.template.spec.nodeName == 'a'"}]`)
		Eventually(func(g Gomega, ctx context.Context) {
			out, err := kubectl(ctx, failing, "apply", "--dry-run=server", "-f", "-")
			g.Expect(err).NotTo(HaveOccurred(), out)
			g.Expect(out).To(ContainSubstring("could not be evaluated for 1 of 1 stored objects: match condition placed fails (no such key: nodeName), and the API server refuses every write of it: guard it by has(object.spec.template.spec.nodeName)"))
		}).WithContext(ctx).Should(Succeed())
		applyPolicy(ctx, failing, "images", "True Enforced")
		out, err := kubectl(ctx, "", "label", "deployment", "old", "c=d", "-n", ns)
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("no such key: nodeName"))

		out, err = kubectl(ctx, imagePolicy(ns, "spec", `matchConditions: [{name: labelled, expression: "namespaceObject.metadata.labels.a == 'b'"}]`), "apply", "-f", "-")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("select by match.namespaceSelector"))
	})
})
