package integration

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/install"
)

// tierPolicy refuses jobs in a namespace unless an object of a kind has the name
// that a label of the job gives.
func tierPolicy(namespace, apiVersion, kind string) string {
	return fmt.Sprintf(`apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: tiers}
spec:
  match:
    resources: [{group: penstock.dev, kinds: [TrainingJob]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]q}}
  inventory: [{apiVersion: %[2]s, kind: %[3]s}]
  rego: |
    package tiers
    violation contains {"msg": sprintf("there is no %%s", [tier]), "field": "metadata.labels.tier"} if {
      tier := input.object.metadata.labels.tier
      not known(tier)
    }
    known(tier) if data.inventory.cluster["%[2]s"].%[3]s[tier]
    known(tier) if data.inventory.namespace[_]["%[2]s"].%[3]s[tier]
`, namespace, apiVersion, kind)
}

func inventoryOf(ctx context.Context, name string) *metav1.Condition {
	GinkgoHelper()
	var policy v1.WorkloadPolicy
	Expect(k8s.Get(ctx, client.ObjectKey{Name: name}, &policy)).To(Succeed())
	condition := apimeta.FindStatusCondition(policy.Status.Conditions, v1.WorkloadPolicyInventorySyncedCondition)
	if condition == nil || condition.ObservedGeneration != policy.Generation {
		return &metav1.Condition{}
	}
	return condition
}

var _ = Describe("the inventory of a policy", Serial, func() {
	AfterEach(func(ctx context.Context) {
		mustKubectl(ctx, "", "delete", "workloadpolicy", "tiers", "--ignore-not-found")
	})

	// dryRun asks what would be said of a job of a tier.
	dryRun := func(ctx context.Context, ns, tier string) string {
		out, _ := kubectl(ctx, alphaJob("tiered", "  name: tiered", "  name: tiered\n  labels: {tier: "+tier+"}"), "apply", "--dry-run=server", "-n", ns, "-f", "-")
		return out
	}
	awaitReason := func(ctx context.Context, reason string) {
		GinkgoHelper()
		Eventually(func() string { return inventoryOf(ctx, "tiers").Reason }).WithContext(ctx).Should(Equal(reason))
	}

	It("follows the cluster", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		other := newNamespace(ctx, nil)
		mustKubectl(ctx, tierPolicy(ns, "v1", "Namespace"), "apply", "-f", "-")
		awaitReason(ctx, v1.WorkloadPolicyInventorySyncedReason)
		Expect(dryRun(ctx, ns, other)).To(ContainSubstring("created"))
		Expect(dryRun(ctx, ns, "bronze")).To(ContainSubstring("there is no bronze"))
		mustKubectl(ctx, "", "create", "namespace", "bronze")
		Eventually(func() string { return dryRun(ctx, ns, "bronze") }).WithContext(ctx).Should(ContainSubstring("created"))

		By("reading more of what it has when the Rego changes")
		rego := strings.Replace(tierPolicy(ns, "v1", "Namespace"), "cluster[\"v1\"].Namespace[tier]\n", "cluster[\"v1\"].Namespace[tier].metadata.labels.open\n", 1)
		mustKubectl(ctx, rego, "apply", "-f", "-")
		Eventually(func() string { return dryRun(ctx, ns, "bronze") }).WithContext(ctx).Should(ContainSubstring("there is no bronze"))
		mustKubectl(ctx, "", "label", "namespace", "bronze", "open=yes")
		Eventually(func() string { return dryRun(ctx, ns, "bronze") }).WithContext(ctx).Should(ContainSubstring("created"))
		mustKubectl(ctx, "", "label", "namespace", "bronze", "open-")
		Eventually(func() string { return dryRun(ctx, ns, "bronze") }).WithContext(ctx).Should(ContainSubstring("there is no bronze"))
	})

	It("is seen by previews, of those kinds and fields that policies in force read", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		mustKubectl(ctx, alphaJob("tiered", "  name: tiered", "  name: tiered\n  labels: {tier: lead}"), "apply", "-n", ns, "-f", "-")
		policy := strings.Replace(tierPolicy(ns, "v1", "Namespace"), "spec:", "spec:\n  action: Audit", 1)
		policy = strings.Replace(policy, "known(tier) if data.inventory.namespace", "known(tier) if data.inventory.cluster.v1.Namespace[_].metadata.annotations.tier == tier\n    known(tier) if data.inventory.namespace", 1)
		// A preview has a second, which a busy machine may need for something else.
		preview := func(policy string) func(context.Context) string {
			return func(ctx context.Context) string {
				return mustKubectl(ctx, policy, "apply", "--dry-run=server", "-f", "-")
			}
		}
		Eventually(preview(policy)).WithContext(ctx).Should(MatchRegexp(
			`Warning: preview: could not be evaluated for \d+ of \d+ stored objects: the objects of kind Namespace \(v1\) that it reads are not synced yet`))
		mustKubectl(ctx, policy, "apply", "-f", "-")
		awaitReason(ctx, v1.WorkloadPolicyInventorySyncedReason)
		Eventually(preview(strings.Replace(policy, "action: Audit", "action: Deny", 1))).WithContext(ctx).Should(And(
			MatchRegexp(`Warning: preview: 1 of \d+ stored objects, by this change, would be refused`),
			ContainSubstring("TrainingJob "+ns+"/tiered: metadata.labels.tier: there is no lead")))
	})

	It("is read once its kind is served, and answers by the failure policy until then", func(ctx context.Context) {
		const definition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: tiers.example.com}, spec: {
  group: example.com, scope: Namespaced, names: {kind: Tier, plural: tiers}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`
		ns := newNamespace(ctx, nil)
		mustKubectl(ctx, tierPolicy(ns, "example.com/v1", "Tier"), "apply", "-f", "-")
		awaitReason(ctx, v1.WorkloadPolicyKindNotServedReason)
		Expect(dryRun(ctx, ns, "silver")).To(ContainSubstring("policy tiers could not be evaluated"))
		mustKubectl(ctx, "", "patch", "workloadpolicy", "tiers", "--type=merge", "-p", `{"spec":{"failurePolicy":"Ignore"}}`)
		Eventually(func() string { return dryRun(ctx, ns, "silver") }).WithContext(ctx).Should(And(ContainSubstring("created"), ContainSubstring("Warning: policy tiers could not be evaluated")))

		By("saying what Penstock lacks where it may not read it")
		mustKubectl(ctx, definition, "apply", "-f", "-")
		DeferCleanup(func(ctx context.Context) {
			mustKubectl(ctx, "", "delete", "crd", "tiers.example.com", "--ignore-not-found")
		})
		mustKubectl(ctx, "", "wait", "--for=condition=Established", "crd/tiers.example.com")
		since := logLength()
		awaitReason(ctx, v1.WorkloadPolicyInventoryForbiddenReason)
		Expect(inventoryOf(ctx, "tiers").Message).To(ContainSubstring("grant it by a ClusterRole labelled penstock.dev/aggregate-to-manager=true"))
		Expect(dryRun(ctx, ns, "silver")).To(ContainSubstring("Penstock may not list and watch it: grant it by a ClusterRole labelled"))
		// Who applies another is told at once, whatever is stored.
		other := strings.ReplaceAll(tierPolicy(ns, "example.com/v1", "Tier"), "metadata: {name: tiers}", "metadata: {name: others}")
		Expect(mustKubectl(ctx, other, "create", "--dry-run=server", "-f", "-")).To(ContainSubstring(
			"Warning: preview: the inventory has no Tier, and the failurePolicy answers where the rule reads it: Penstock may not list and watch it"))

		By("reading it once that is granted")
		grant(ctx, "tier-reader", rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"tiers"}, Verbs: []string{"list", "watch"}})
		mustKubectl(ctx, "{apiVersion: example.com/v1, kind: Tier, metadata: {name: silver, namespace: "+ns+"}}", "apply", "-f", "-")
		awaitReason(ctx, v1.WorkloadPolicyInventorySyncedReason)
		upheavals = append(upheavals, [2]int{since, logLength()})
		Expect(dryRun(ctx, ns, "silver")).To(And(ContainSubstring("created"), Not(ContainSubstring("could not be evaluated"))))
		Expect(dryRun(ctx, ns, "gold")).To(ContainSubstring("there is no gold"))
		Expect(managerMetrics(ctx)).To(ContainSubstring(`penstock_inventory_objects{group="example.com",kind="Tier",version="v1"} 1`))

		By("forgetting it with the last policy")
		mustKubectl(ctx, "", "delete", "workloadpolicy", "tiers")
		Eventually(func() string { return managerMetrics(ctx) }).WithContext(ctx).ShouldNot(Or(ContainSubstring(`kind="Tier"`), ContainSubstring(`policy="tiers"`)))
	})
})

// grant lets the manager do more, as an administrator would by a ClusterRole
// that is aggregated; the controller that aggregates does not run here.
func grant(ctx context.Context, name string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: install.ServiceAccount, Namespace: install.Namespace}},
	}
	Expect(k8s.Create(ctx, role)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, role)).To(Succeed()) })
	Expect(k8s.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, binding)).To(Succeed()) })
}
