package integration

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// ownerPolicy records config maps of a namespace without the label owner.
func ownerPolicy(namespace string, edit ...string) string {
	return strings.NewReplacer(edit...).Replace(fmt.Sprintf(`apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: owned}
spec:
  action: Audit
  failurePolicy: Ignore
  match:
    resources: [{group: "", kinds: [ConfigMap]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %q}}
  parameters: {label: owner}
  rego: |
    package owned
    violation contains {"msg": sprintf("has no label %%s", [input.parameters.label]), "field": "metadata.labels", "fix": "add it"} if {
      not input.object.metadata.labels[input.parameters.label]
    }
`, namespace))
}

func configMap(name, labels string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {%s}}}\n---\n", name, labels)
}

// audited gives the results of a policy in short, for Eventually: what it judged
// and found, and the names in its sample.
func audited(name string) func(Gomega, context.Context) string {
	return func(g Gomega, ctx context.Context) string {
		var policy v1.WorkloadPolicy
		g.Expect(k8s.Get(ctx, client.ObjectKey{Name: name}, &policy)).To(Succeed())
		audit := policy.Status.Audit
		if audit.ObservedGeneration != policy.Generation {
			return "none yet"
		}
		var names []string
		for _, one := range audit.Samples {
			names = append(names, one.Name)
		}
		return fmt.Sprintf("judged %d: %d denied, %d warned, %d audited, %d excepted, %d failed, %d not evaluated: %s",
			ptr.Deref(audit.Judged, -1), ptr.Deref(audit.Violations.Deny, -1), ptr.Deref(audit.Violations.Warn, -1), ptr.Deref(audit.Violations.Audit, -1),
			ptr.Deref(audit.Excepted, -1), ptr.Deref(audit.Errors, -1), ptr.Deref(audit.NotEvaluated, -1), strings.Join(names, " "))
	}
}

// mapLists is how often anybody has listed config maps.
func mapLists(ctx context.Context) float64 {
	GinkgoHelper()
	return sum(samples(apiServerMetrics(ctx), "apiserver_request_total", `verb="LIST"`, `resource="configmaps"`))
}

var _ = Describe("the audit", Serial, func() {
	var ns string
	BeforeEach(func(ctx context.Context) {
		ns = newNamespace(ctx, map[string]string{"tier": "research"})
		// The API server alone publishes no config map of its own here.
		mustKubectl(ctx, configMap("bare", "")+configMap("owned", "owner: a"), "create", "-n", ns, "-f", "-")
	})
	AfterEach(func(ctx context.Context) {
		mustKubectl(ctx, "", "delete", "workloadpolicy", "owned", "--ignore-not-found")
		mustKubectl(ctx, "", "delete", "configmaps", "--all", "-n", ns)
	})

	It("judges what changes, and lists and writes nothing else", func(ctx context.Context) {
		mustKubectl(ctx, ownerPolicy(ns), "apply", "-f", "-")
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 2: 0 denied, 0 warned, 1 audited, 0 excepted, 0 failed, 0 not evaluated: bare"))
		var policy v1.WorkloadPolicy
		Expect(k8s.Get(ctx, client.ObjectKey{Name: "owned"}, &policy)).To(Succeed())
		Expect(policy.Status.Audit.Samples).To(HaveExactElements(v1.PolicyAuditSample{
			Action: v1.ActionAudit, Kind: "ConfigMap", Namespace: ns, Name: "bare", Field: "metadata.labels", Message: "has no label owner",
		}))
		Expect(mustKubectl(ctx, "", "get", "workloadpolicies", "owned")).To(MatchRegexp(`(?s)VIOLATIONS.*\b1\b`))
		listed := mapLists(ctx)

		By("an object that is created, changed, deleted")
		mustKubectl(ctx, configMap("another", ""), "create", "-n", ns, "-f", "-")
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 3: 0 denied, 0 warned, 2 audited, 0 excepted, 0 failed, 0 not evaluated: another bare"))
		mustKubectl(ctx, "", "label", "configmap", "bare", "-n", ns, "owner=b")
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 3: 0 denied, 0 warned, 1 audited, 0 excepted, 0 failed, 0 not evaluated: another"))
		mustKubectl(ctx, "", "delete", "configmap", "another", "owned", "-n", ns)
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 1: 0 denied, 0 warned, 0 audited, 0 excepted, 0 failed, 0 not evaluated: "))
		// kubectl may have listed what it was to wait for.
		since := mapLists(ctx)
		Expect(since-listed).To(BeNumerically("<=", 2), "lists for three changes")

		By("nothing that happens")
		before := writesByResource(ctx)
		Consistently(func(ctx context.Context) map[string]float64 { return writesByResource(ctx) }).WithContext(ctx).
			WithTimeout(17 * time.Second).WithPolling(time.Second).Should(Equal(before))
		Expect(mapLists(ctx)).To(Equal(since), "what is listed on a timer")
		Expect(managerMetrics(ctx)).To(And(
			ContainSubstring(`penstock_policy_audit_objects{outcome="Judged",policy="owned"} 1`),
			ContainSubstring(`penstock_policy_audit_violations{action="Audit",policy="owned"} 0`),
		))

		By("a policy that changes: one list, by that policy")
		mustKubectl(ctx, ownerPolicy(ns, "label: owner", "label: cost", "action: Audit", "action: Warn"), "apply", "-f", "-")
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 1: 0 denied, 1 warned, 0 audited, 0 excepted, 0 failed, 0 not evaluated: bare"))
		// The preview reads them as well.
		Expect(mapLists(ctx)-since).To(BeNumerically("<=", 2), "lists for the change of a policy")
		mustKubectl(ctx, ownerPolicy(ns, "action: Audit", "action: Warn\n  description: no other verdict", "label: owner", "label: cost"), "apply", "-f", "-")
		Eventually(audited("owned")).WithContext(ctx).Should(HavePrefix("judged 1:"))

		By("a policy that reads what stored objects do not tell, and one that is gone")
		mustKubectl(ctx, ownerPolicy(ns, "not input.object.metadata.labels[input.parameters.label]", `input.user.username != "root"`), "apply", "-f", "-")
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 0: 0 denied, 0 warned, 0 audited, 0 excepted, 0 failed, 1 not evaluated: "))
		Expect(k8s.Get(ctx, client.ObjectKey{Name: "owned"}, &policy)).To(Succeed())
		Expect(policy.Status.Audit.Message).To(ContainSubstring("the rule reads who makes a request"))
		Expect(mustKubectl(ctx, "", "get", "workloadpolicies", "owned")).To(ContainSubstring("0 (1 not judged)"))
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(k8s.Get(ctx, client.ObjectKey{Name: "owned"}, &policy)).To(Succeed())
			condition := apimeta.FindStatusCondition(policy.Status.Conditions, v1.WorkloadPolicyAuditedCondition)
			g.Expect(condition).NotTo(BeNil())
			g.Expect(condition.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(condition.Message).To(ContainSubstring("1 of 1 stored objects are not judged"))
		}).WithContext(ctx).Should(Succeed())

		By("a rule that spares updates, as many for Gatekeeper do")
		mustKubectl(ctx, ownerPolicy(ns, "violation contains", "is_update(review) if review.operation == \"UPDATE\"\n    violation contains",
			"not input.object", "not is_update(input.review); not input.review.object", "label: owner", "label: cost"), "apply", "-f", "-")
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 1: 0 denied, 0 warned, 1 audited, 0 excepted, 0 failed, 0 not evaluated: bare"))
		mustKubectl(ctx, "", "delete", "workloadpolicy", "owned")
		Eventually(managerMetrics).WithContext(ctx).ShouldNot(ContainSubstring(`policy="owned"`))
	})

	It("judges again when an exception ends", func(ctx context.Context) {
		until := time.Now().Add(8 * time.Second).UTC().Truncate(time.Second)
		exception := fmt.Sprintf("  exceptions: [{namespaces: [%s], until: %q, reason: r}]\n  parameters:", ns, until.Format(time.RFC3339))
		mustKubectl(ctx, ownerPolicy(ns, "  parameters:", exception), "apply", "-f", "-")
		Eventually(audited("owned")).WithContext(ctx).WithTimeout(time.Until(until)).Should(Equal("judged 2: 0 denied, 0 warned, 0 audited, 1 excepted, 0 failed, 0 not evaluated: "))
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 2: 0 denied, 0 warned, 1 audited, 0 excepted, 0 failed, 0 not evaluated: bare"))
		Expect(time.Now()).To(BeTemporally("~", until, 6*time.Second))
	})

	It("judges a namespace again when its labels change", func(ctx context.Context) {
		override := "  overrides: [{namespaceSelector: {matchLabels: {tier: production}}, action: Warn}]\n  parameters:"
		mustKubectl(ctx, ownerPolicy(ns, "  parameters:", override), "apply", "-f", "-")
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 2: 0 denied, 0 warned, 1 audited, 0 excepted, 0 failed, 0 not evaluated: bare"))
		mustKubectl(ctx, "", "label", "namespace", ns, "tier=production", "--overwrite")
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 2: 0 denied, 1 warned, 0 audited, 0 excepted, 0 failed, 0 not evaluated: bare"))
	})

	It("judges again when the inventory that a rule reads changes", func(ctx context.Context) {
		inventory := ownerPolicy(ns, "not input.object.metadata.labels[input.parameters.label]", `data.inventory.cluster["v1"].Namespace[_].metadata.labels.forbids == input.object.metadata.name`,
			"  parameters:", "  inventory: [{apiVersion: v1, kind: Namespace}]\n  parameters:")
		mustKubectl(ctx, inventory, "apply", "-f", "-")
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 2: 0 denied, 0 warned, 0 audited, 0 excepted, 0 failed, 0 not evaluated: "))
		other := newNamespace(ctx, map[string]string{"forbids": "bare"})
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 2: 0 denied, 0 warned, 1 audited, 0 excepted, 0 failed, 0 not evaluated: bare"))
		mustKubectl(ctx, "", "label", "namespace", other, "forbids-")
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 2: 0 denied, 0 warned, 0 audited, 0 excepted, 0 failed, 0 not evaluated: "))
	})

	It("sees finalizers, whose writes are not judged, and what rules find without who writes", func(ctx context.Context) {
		mustKubectl(ctx, ownerPolicy(ns,
			"not input.object.metadata.labels[input.parameters.label]", `some name in input.object.metadata.finalizers
      name == "example.com/kept"
    }
    violation contains {"msg": "only root may do this"} if {
      input.operation == "UPDATE"
      input.user.username != "root"`), "apply", "-f", "-")
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 2: 0 denied, 0 warned, 0 audited, 0 excepted, 0 failed, 0 not evaluated: "))
		mustKubectl(ctx, "", "patch", "configmap", "bare", "-n", ns, "-p", `{"metadata":{"finalizers":["example.com/kept"]}}`)
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 2: 0 denied, 0 warned, 1 audited, 0 excepted, 0 failed, 0 not evaluated: bare"))
		mustKubectl(ctx, "", "patch", "configmap", "bare", "-n", ns, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		Eventually(audited("owned")).WithContext(ctx).Should(Equal("judged 2: 0 denied, 0 warned, 0 audited, 0 excepted, 0 failed, 0 not evaluated: "))
	})

	It("says which kinds it does not look at, and looks at those that are served later", func(ctx context.Context) {
		several := ownerPolicy(ns, "kinds: [ConfigMap]}", `kinds: [ConfigMap]}, {group: "networking.k8s.io", kinds: [NetworkPolicy]}, {group: apps, kinds: ["*"]}, {group: example.com, kinds: [Widget]}`)
		mustKubectl(ctx, several, "apply", "-f", "-")
		Eventually(audited("owned")).WithContext(ctx).Should(HavePrefix("judged 2:"))
		unseen := func(g Gomega, ctx context.Context) []v1.PolicyExclusion {
			var policy v1.WorkloadPolicy
			g.Expect(k8s.Get(ctx, client.ObjectKey{Name: "owned"}, &policy)).To(Succeed())
			return policy.Status.Audit.Unseen
		}
		Eventually(unseen).WithContext(ctx).Should(HaveExactElements(
			v1.PolicyExclusion{Subject: "*.apps", Reason: "only kinds that are named are looked at"},
			v1.PolicyExclusion{Subject: "NetworkPolicy.networking.k8s.io", Reason: "grant Penstock list and watch on networkpolicies.networking.k8s.io, by a ClusterRole labelled penstock.dev/aggregate-to-manager=true"},
		))

		By("a kind that is installed, and one that is granted")
		grant(ctx, "networkpolicy-and-widget-reader",
			rbacv1.PolicyRule{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"networkpolicies"}, Verbs: []string{"list", "watch"}},
			rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"widgets"}, Verbs: []string{"list", "watch"}})
		mustKubectl(ctx, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, spec: {
  group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`, "create", "-f", "-")
		DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "", "delete", "crd", "widgets.example.com") })
		mustKubectl(ctx, "", "wait", "--for=condition=Established", "crd/widgets.example.com")
		mustKubectl(ctx, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: widget}}", "create", "-n", ns, "-f", "-")
		Eventually(audited("owned")).WithContext(ctx).WithTimeout(servedWithin).Should(Equal("judged 3: 0 denied, 0 warned, 2 audited, 0 excepted, 0 failed, 0 not evaluated: bare widget"))
		Eventually(unseen).WithContext(ctx).WithTimeout(servedWithin).Should(HaveExactElements(HaveField("Subject", "*.apps")))
	})
})

// definitionsOf gives kinds as a manifest.
func definitionsOf(definitions []*apiextensionsv1.CustomResourceDefinition) string {
	GinkgoHelper()
	manifest := ""
	for _, definition := range definitions {
		text, err := yaml.Marshal(definition)
		Expect(err).NotTo(HaveOccurred())
		manifest += "---\n" + string(text)
	}
	return manifest
}

// reportResults gives the reports of Penstock in a namespace in short, by the name of
// their object, for Eventually.
func reportResults(version, kind, namespace string) func(Gomega, context.Context) map[string]string {
	return func(g Gomega, ctx context.Context) map[string]string {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind+"List"))
		g.Expect(k8s.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/managed-by": "penstock"})).To(Succeed())
		found := map[string]string{}
		for _, report := range list.Items {
			name, _, _ := unstructured.NestedString(report.Object, "scope", "name")
			results, _, _ := unstructured.NestedSlice(report.Object, "results")
			for _, one := range results {
				result := one.(map[string]any)
				found[name] += fmt.Sprintf("%s: %s: %s ", result["policy"], result["result"], result["message"])
			}
		}
		return found
	}
}

var _ = Describe("the reports of the audit", Serial, func() {
	const open, older = "openreports.io/v1alpha1", "wgpolicyk8s.io/v1alpha2"

	It("are in step with the objects, in the API that is there", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		mustKubectl(ctx, configMap("bare", "")+configMap("owned", "owner: a"), "create", "-n", ns, "-f", "-")
		mustKubectl(ctx, ownerPolicy(ns), "apply", "-f", "-")
		DeferCleanup(func(ctx context.Context) {
			mustKubectl(ctx, "", "delete", "workloadpolicy", "owned", "--ignore-not-found")
			mustKubectl(ctx, "", "delete", "crd", "reports.openreports.io", "clusterreports.openreports.io", "policyreports.wgpolicyk8s.io", "clusterpolicyreports.wgpolicyk8s.io", "--ignore-not-found")
		})
		Eventually(audited("owned")).WithContext(ctx).Should(HavePrefix("judged 2:"))

		By("the older API, installed later")
		mustKubectl(ctx, definitionsOf(fixtures.OlderReportDefinitions(GinkgoTB())), "create", "-f", "-")
		bare := map[string]string{"bare": "owned: fail: has no label owner "}
		Eventually(reportResults(older, "PolicyReport", ns)).WithContext(ctx).WithTimeout(servedWithin).Should(Equal(bare))

		By("OpenReports, which take their place")
		mustKubectl(ctx, definitionsOf(fixtures.ReportDefinitions(GinkgoTB())), "create", "-f", "-")
		Eventually(reportResults(open, "Report", ns)).WithContext(ctx).WithTimeout(servedWithin).Should(Equal(bare))
		Eventually(reportResults(older, "PolicyReport", "")).WithContext(ctx).Should(BeEmpty())

		By("an object that breaks, and one that is mended")
		mustKubectl(ctx, "", "label", "configmap", "owned", "-n", ns, "owner-")
		both := map[string]string{"bare": bare["bare"], "owned": bare["bare"]}
		Eventually(reportResults(open, "Report", ns)).WithContext(ctx).Should(Equal(both))
		mustKubectl(ctx, "", "label", "configmap", "bare", "-n", ns, "owner=b")
		Eventually(reportResults(open, "Report", ns)).WithContext(ctx).Should(Equal(map[string]string{"owned": bare["bare"]}))

		By("a policy that says it in other words")
		mustKubectl(ctx, ownerPolicy(ns, "has no label", "wants a label", "action: Audit", "action: Warn"), "apply", "-f", "-")
		Eventually(reportResults(open, "Report", ns)).WithContext(ctx).Should(Equal(map[string]string{"owned": "owned: warn: wants a label owner "}))

		By("another leader, which finds reports as they should be, and one that should not be there")
		Eventually(audited("owned")).WithContext(ctx).Should(HavePrefix("judged 2: 0 denied, 1 warned"))
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(open, "ReportList"))
		Expect(k8s.List(ctx, list, client.InNamespace(ns))).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
		before := list.Items[0].DeepCopy().Object
		manager.Stop()
		left := list.Items[0].DeepCopy()
		left.SetName("penstock-0f0e0d0c-0000-4000-8000-000000000000")
		left.SetResourceVersion("")
		left.SetOwnerReferences(nil)
		Expect(unstructured.SetNestedField(left.Object, "left", "scope", "name")).To(Succeed())
		Expect(k8s.Create(ctx, left)).To(Succeed())
		var policy v1.WorkloadPolicy
		Expect(k8s.Get(ctx, client.ObjectKey{Name: "owned"}, &policy)).To(Succeed())
		startManager(ctx)
		Eventually(reportResults(open, "Report", ns)).WithContext(ctx).WithTimeout(time.Minute).Should(Equal(map[string]string{"owned": "owned: warn: wants a label owner "}))
		Expect(k8s.List(ctx, list, client.InNamespace(ns))).To(Succeed())
		Expect(list.Items[0].Object).To(Equal(before), "what was right is not written again")
		var since v1.WorkloadPolicy
		Expect(k8s.Get(ctx, client.ObjectKey{Name: "owned"}, &since)).To(Succeed())
		Expect(since.Status.Audit).To(Equal(policy.Status.Audit))

		By("a policy that is gone")
		mustKubectl(ctx, "", "delete", "workloadpolicy", "owned")
		Eventually(reportResults(open, "Report", ns)).WithContext(ctx).Should(BeEmpty())
	})
})
