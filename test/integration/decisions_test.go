package integration

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// decisionsOn gives the events of the decision log on objects of a namespace.
func decisionsOn(namespace string) []map[string]any {
	GinkgoHelper()
	written, err := os.ReadFile(decisionLog)
	Expect(err).NotTo(HaveOccurred())
	var found []map[string]any
	for line := range strings.Lines(string(written)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var event map[string]any
		Expect(json.Unmarshal([]byte(line), &event)).To(Succeed(), line)
		if event["input"].(map[string]any)["namespace"] == namespace {
			found = append(found, event)
		}
	}
	return found
}

var _ = Describe("The decision log", func() {
	It("has what policies said to requests, and nothing that is secret", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		applyPolicy(ctx, anyPolicy("on-secrets", "[{group: '', kinds: [Secret, Pod]}]", onlyLabelled), "on-secrets", "True Enforced")
		secret := func(label string) string {
			return `{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {` + label + `}}, stringData: {password: hunter2-hunter2}}`
		}
		refused := func(manifest string) {
			GinkgoHelper()
			out, err := kubectl(ctx, manifest, "apply", "-n", ns, "-f", "-")
			Expect(err).To(HaveOccurred())
			Expect(out).To(ContainSubstring("policy on-secrets"), "it is not refused for want of an answer")
		}
		pod := strings.Replace(plainPod("a", "refuse: a"), "{name: a, image", "{name: a, env: [{name: TOKEN, value: hunter2-hunter2}], image", 1)
		decided := func(kind string) map[string]any {
			for _, event := range decisionsOn(ns) {
				if event["input"].(map[string]any)["object"].(map[string]any)["kind"] == kind {
					return event
				}
			}
			return nil
		}
		// Decisions on large objects of other specs may be waiting to be written, so
		// many that what comes now is dropped.
		Eventually(func(g Gomega) {
			refused(secret("refuse: a"))
			refused(pod)
			g.Expect(decided("Secret")).NotTo(BeNil())
			g.Expect(decided("Pod")).NotTo(BeNil())
		}).WithTimeout(4 * time.Minute).WithPolling(2 * time.Second).Should(Succeed())
		for kind, masked := range map[string]string{"Secret": "/input/object/data/password", "Pod": "/input/object/spec/containers/0/env/0/value"} {
			event := decided(kind)
			Expect(event["masked"]).To(ContainElement(masked))
			Expect(event["erased"]).To(ContainElement("/input/object/metadata/managedFields"))
			Expect(event["result"]).To(And(HaveKeyWithValue("allowed", false), HaveKeyWithValue("judged", ConsistOf("on-secrets"))))
			Expect(event["bundles"]).To(HaveKeyWithValue("policies", HaveKeyWithValue("revision", Not(BeEmpty()))))
			Expect(event["input"]).To(HaveKeyWithValue("user", HaveKeyWithValue("username", Not(BeEmpty()))))
		}
		written, err := os.ReadFile(decisionLog)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(written)).NotTo(Or(ContainSubstring("hunter2"), ContainSubstring("aHVudGVyMi")))
		Expect(sum(samples(managerMetrics(ctx), "penstock_decision_log_events_total", `outcome="written"`))).To(BeNumerically(">=", 2))
	})
})
