package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/install"
)

// anyPolicy is a policy on some resources that refuses what has a label
// refuse, in the words of the operation.
func anyPolicy(name, resources string, more ...string) string {
	return fmt.Sprintf(`apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: %s}
spec:
  match:
    resources: %s
%s
  rego: |
    package p
    violation contains {"msg": sprintf("%%s is not wanted", [input.operation]), "field": "metadata.labels.refuse", "fix": "take the label away"} if {
      input.object.metadata.labels.refuse
    }
`, name, resources, strings.Join(more, "\n"))
}

const onlyLabelled = `  matchConditions: [{name: labelled, expression: "has(object.metadata.labels) && 'refuse' in object.metadata.labels"}]`

func plainPod(name string, labels string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {%s}}, spec: {securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [{name: a, image: images.example/a:1,
  resources: {requests: {cpu: 100m}}, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}`, name, labels)
}

// enforcedCondition is the Enforced condition of a policy; for Eventually.
func enforcedCondition(name string) func(Gomega, context.Context) string {
	return func(g Gomega, ctx context.Context) string {
		var policy v1.WorkloadPolicy
		g.Expect(k8s.Get(ctx, client.ObjectKey{Name: name}, &policy)).To(Succeed())
		condition := meta.FindStatusCondition(policy.Status.Conditions, v1.WorkloadPolicyEnforcedCondition)
		if condition == nil || condition.ObservedGeneration != policy.Generation {
			return "none yet"
		}
		return string(condition.Status) + " " + condition.Reason + ": " + condition.Message
	}
}

func applyPolicy(ctx context.Context, manifest, name, condition string) {
	GinkgoHelper()
	mustKubectl(ctx, manifest, "apply", "-f", "-")
	DeferCleanup(func(ctx context.Context) {
		mustKubectl(ctx, "", "delete", "workloadpolicy", name, "--ignore-not-found")
	})
	awaitEnforced(ctx, name)
	Eventually(enforcedCondition(name)).WithContext(ctx).Should(HavePrefix(condition))
}

func policyWebhooks(ctx context.Context) ([]admissionregistrationv1.ValidatingWebhook, error) {
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	err := k8s.Get(ctx, client.ObjectKey{Name: "penstock-policies"}, &configuration)
	return configuration.Webhooks, client.IgnoreNotFound(err)
}

var _ = Describe("a policy on any kind", Serial, func() {
	It("judges what its webhook is asked about, once a probe came through", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		applyPolicy(ctx, anyPolicy("no-pods", "[{kinds: [Pod], subresources: ['', ephemeralcontainers, resize]}]", onlyLabelled), "no-pods", "True Enforced")
		out, err := kubectl(ctx, plainPod("bad", "refuse: 'yes'"), "create", "-n", ns, "-f", "-")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("metadata.labels.refuse: CREATE is not wanted: take the label away (policy no-pods)"))
		mustKubectl(ctx, plainPod("good", "keep: 'yes'"), "create", "-n", ns, "-f", "-")
		out, err = kubectl(ctx, "", "label", "pod", "good", "-n", ns, "refuse=yes")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("UPDATE is not wanted"))

		By("leaving the system's namespaces alone")
		mustKubectl(ctx, plainPod("bad", "refuse: 'yes'"), "create", "-n", "kube-system", "-f", "-")
		mustKubectl(ctx, plainPod("bad", "refuse: 'yes'"), "create", "-n", install.Namespace, "-f", "-")
		var policy v1.WorkloadPolicy
		Expect(k8s.Get(ctx, client.ObjectKey{Name: "no-pods"}, &policy)).To(Succeed())
		Expect(policy.Status.Exclusions).To(ContainElement(HaveField("Subject", "namespace kube-system")))

		By("judging what goes by subresources")
		const more = `    violation contains {"msg": "is resized", "field": "spec.containers[0].resources"} if { input.object.spec.containers[0].resources.requests.cpu == "200m" }
    violation contains {"msg": "is debugged", "field": "spec.ephemeralContainers"} if { input.object.spec.ephemeralContainers[0] }
`
		mustKubectl(ctx, anyPolicy("no-pods", "[{kinds: [Pod], subresources: [ephemeralcontainers, resize]}]")+more, "apply", "-f", "-")
		awaitEnforced(ctx, "no-pods")
		Eventually(enforcedCondition("no-pods")).WithContext(ctx).Should(HavePrefix("True Enforced"))
		mustKubectl(ctx, plainPod("subject", "refuse: 'yes'"), "create", "-n", ns, "-f", "-")
		out, err = kubectl(ctx, "", "patch", "pod", "subject", "-n", ns, "--subresource=resize", "--type=merge", "-p",
			`{"spec":{"containers":[{"name":"a","image":"images.example/a:1","resources":{"requests":{"cpu":"200m"}}}]}}`)
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("is resized"))
		out, err = kubectl(ctx, "", "patch", "pod", "subject", "-n", ns, "--subresource=ephemeralcontainers", "--type=merge", "-p",
			`{"spec":{"ephemeralContainers":[{"name":"debug","image":"images.example/b:1"}]}}`)
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("is debugged"))
	})

	It("comes into force however policies name what others name as well", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		const quiet = "  failurePolicy: Ignore\n  action: Audit"
		for name, resources := range map[string]string{
			"wild":        `[{group: "*", kinds: ["*"], subresources: ["", "*", scale]}]`,
			"wild-kinds":  `[{group: apps, kinds: ["*"], subresources: ["", scale]}, {group: apps, kinds: [Deployment], subresources: ["", "*", scale]}]`,
			"scaled":      `[{group: apps, kinds: [Deployment], subresources: ["", scale]}]`,
			"odd-in-name": `[{group: apps, kinds: [StatefulSet], subresources: ["", "*/*"]}]`,
		} {
			applyPolicy(ctx, anyPolicy(name, resources, quiet), name, "True Enforced")
		}
		applyPolicy(ctx, anyPolicy("no-maps", "[{kinds: [ConfigMap]}]", "  failurePolicy: Ignore"), "no-maps", "True Enforced")
		out, err := kubectl(ctx, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {refuse: 'yes'}}}", "create", "-n", ns, "-f", "-")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("(policy no-maps)"))
	})

	It("judges a scale on what is scaled, and a deletion on what is deleted", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		const growth = `    violation contains {"msg": "is too large", "field": "spec.replicas"} if { input.object.spec.replicas > 2 }
`
		applyPolicy(ctx, anyPolicy("no-growth", "[{group: apps, kinds: [Deployment], subresources: ['', scale]}]", "    operations: [UPDATE, DELETE]")+growth, "no-growth", "True Enforced")
		mustKubectl(ctx, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, labels: {refuse: 'yes'}}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: images.example/a:1}]}}}}`,
			"create", "-n", ns, "-f", "-")
		out, err := kubectl(ctx, "", "scale", "deployment", "d", "-n", ns, "--replicas=3")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("spec.replicas: is too large"))
		out, err = kubectl(ctx, "", "delete", "deployment", "d", "-n", ns)
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("DELETE is not wanted"))
	})

	It("evaluates match conditions on what is scaled or deleted", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		conditions := "    operations: [CREATE, UPDATE, DELETE]\n  matchConditions: [{name: strict, expression: \"'strict' in object.metadata.?labels.orValue({}) && object.spec.template.spec.containers.exists(c, c.name == 'a')\"}]"
		const rules = `    violation contains {"msg": "is too large", "field": "spec.replicas"} if { input.object.spec.replicas > 2 }
    violation contains {"msg": "stays", "field": "metadata.name"} if { input.operation == "DELETE" }
`
		applyPolicy(ctx, anyPolicy("strict", "[{group: apps, kinds: [Deployment], subresources: ['', scale]}]", conditions)+rules, "strict", "True Enforced")
		for _, name := range []string{"strict", "loose"} {
			mustKubectl(ctx, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: `+name+`, labels: {`+name+`: 'yes'}}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: images.example/a:1}]}}}}`,
				"create", "-n", ns, "-f", "-")
		}
		out, err := kubectl(ctx, "", "scale", "deployment", "strict", "-n", ns, "--replicas=3")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("spec.replicas: is too large"))
		out, err = kubectl(ctx, "", "delete", "deployment", "strict", "-n", ns)
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("metadata.name: stays"))
		mustKubectl(ctx, "", "scale", "deployment", "loose", "-n", ns, "--replicas=3")
		mustKubectl(ctx, "", "delete", "deployment", "loose", "-n", ns)
	})

	It("asks what users may do where a condition does and the API server does not evaluate it", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		verbs := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
			return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
		}
		deletes, scales := verbs(v1.GroupName, "trainingjobs", "get", "delete"), verbs("apps", "deployments/scale", "get", "update", "patch")
		gets := verbs("apps", "deployments", "get")
		bound := userWith(ctx, "bound", deletes, scales, gets)
		free := userWith(ctx, "free", deletes, scales, gets, verbs(v1.GroupName, "trainingjobs", "bypass"))
		conditions := "    operations: [UPDATE, DELETE]\n  matchConditions:\n  - {name: labelled, expression: \"object.metadata.?labels.keep.orValue('') == 'yes'\"}\n" +
			"  - {name: not-free, expression: \"!authorizer.group('penstock.dev').resource('trainingjobs').check('bypass').allowed()\"}"
		const kept = `    violation contains "is kept" if input.operation == "DELETE"
    violation contains {"msg": "is kept", "field": "spec.replicas"} if input.object.spec.replicas > 0
`
		applyPolicy(ctx, anyPolicy("kept", "[{group: penstock.dev, kinds: [TrainingJob]}, {group: apps, kinds: [Deployment], subresources: [scale]}]", conditions)+kept, "kept", "True Enforced")
		mustKubectl(ctx, alphaJob("kept", "name: kept", "name: kept\n  labels: {keep: 'yes'}"), "create", "-n", ns, "-f", "-")
		mustKubectl(ctx, alphaJob("other"), "create", "-n", ns, "-f", "-")
		mustKubectl(ctx, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: kept, labels: {keep: 'yes'}}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: images.example/a:1}]}}}}`,
			"create", "-n", ns, "-f", "-")
		as := func(who []string, args ...string) (string, error) {
			return kubectl(ctx, "", append(append(args, "-n", ns), who...)...)
		}
		for _, args := range [][]string{{"delete", "trainingjob", "kept"}, {"scale", "deployment", "kept", "--replicas=1"}} {
			out, err := as(bound, args...)
			Expect(err).To(HaveOccurred(), out)
			Expect(out).To(ContainSubstring(": is kept (policy kept)"))
		}
		for _, args := range [][]string{{"delete", "trainingjob", "kept"}, {"scale", "deployment", "kept", "--replicas=1"}} {
			out, err := as(free, args...)
			Expect(err).NotTo(HaveOccurred(), out)
		}
		out, err := as(bound, "delete", "trainingjob", "other")
		Expect(err).NotTo(HaveOccurred(), out)
	})

	It("has its webhooks back when somebody takes or changes them, and loses them with the last policy", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		applyPolicy(ctx, anyPolicy("no-maps", "[{kinds: [ConfigMap]}]"), "no-maps", "True Enforced")
		refuses := func(g Gomega, ctx context.Context) {
			out, err := kubectl(ctx, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {refuse: 'yes'}}}", "create", "-n", ns, "--dry-run=server", "-f", "-")
			g.Expect(err).To(HaveOccurred(), out)
			g.Expect(out).To(ContainSubstring("is not wanted"))
		}
		Eventually(refuses).WithContext(ctx).Should(Succeed())
		mustKubectl(ctx, "", "delete", "validatingwebhookconfiguration", "penstock-policies")
		Eventually(refuses).WithContext(ctx).Should(Succeed())
		webhooks, err := policyWebhooks(ctx)
		Expect(err).NotTo(HaveOccurred())
		asked := slices.IndexFunc(webhooks, func(webhook admissionregistrationv1.ValidatingWebhook) bool {
			return slices.ContainsFunc(webhook.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
				return slices.Contains(rule.Resources, "configmaps")
			})
		})
		Expect(asked).To(BeNumerically(">=", 0), "a webhook asks about config maps")
		mustKubectl(ctx, "", "patch", "validatingwebhookconfiguration", "penstock-policies", "--type=json", "-p",
			fmt.Sprintf(`[{"op":"replace","path":"/webhooks/%d/rules/0/resources","value":["secrets"]}]`, asked))
		Eventually(refuses).WithContext(ctx).Should(Succeed())
		mustKubectl(ctx, "", "delete", "workloadpolicy", "no-maps")
		Eventually(func(g Gomega, ctx context.Context) {
			out, err := kubectl(ctx, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {refuse: 'yes'}}}", "create", "-n", ns, "--dry-run=server", "-f", "-")
			g.Expect(err).NotTo(HaveOccurred(), out)
		}).WithContext(ctx).Should(Succeed())
	})

	It("hands conditions on our own kinds to the API server too", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		applyPolicy(ctx, anyPolicy("no-jobs", "[{group: penstock.dev, kinds: [TrainingJob]}]", onlyLabelled), "no-jobs", "True Enforced")
		mustKubectl(ctx, alphaJob("good"), "apply", "-n", ns, "-f", "-")
		out, err := kubectl(ctx, alphaJob("bad", "name: bad", "name: bad\n  labels: {refuse: 'yes'}"), "apply", "-n", ns, "-f", "-")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("CREATE is not wanted"))
	})

	It("comes into force when its kinds are installed, upstream kinds among them", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		applyPolicy(ctx, anyPolicy("upstream", "[{group: kubeflow.org, kinds: [PyTorchJob]}]"), "upstream", "False KindsNotServed: The API server serves none of the kinds: PyTorchJob.kubeflow.org")
		mustKubectl(ctx, upstreamDefinition, "create", "-f", "-")
		DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "", "delete", "crd", "pytorchjobs.kubeflow.org") })
		Eventually(enforcedCondition("upstream")).WithContext(ctx).WithTimeout(servedWithin).Should(HavePrefix("True Enforced"))
		job := strings.NewReplacer("penstock.dev/v1alpha1", "kubeflow.org/v1", "TrainingJob", "PyTorchJob")
		Eventually(func(g Gomega, ctx context.Context) {
			out, err := kubectl(ctx, job.Replace(alphaJob("bad", "name: bad", "name: bad\n  labels: {refuse: 'yes'}")), "create", "-n", ns, "--dry-run=server", "-f", "-")
			g.Expect(err).To(HaveOccurred(), out)
			g.Expect(out).To(ContainSubstring("CREATE is not wanted"))
		}).WithContext(ctx).Should(Succeed())

		By("judging them by the rules for ours, in their own paths")
		mustKubectl(ctx, "", "patch", "workloadpolicy", "gpu-ceiling", "--type=merge", "-p", `{"spec":{"upstreamKinds":"Judge"}}`)
		awaitEnforced(ctx, "gpu-ceiling")
		Eventually(func(g Gomega, ctx context.Context) {
			out, err := kubectl(ctx, job.Replace(alphaJob("nine", "gpu: 8", "gpu: 9")), "create", "-n", ns, "--dry-run=server", "-f", "-")
			g.Expect(err).To(HaveOccurred(), out)
			g.Expect(out).To(ContainSubstring("spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].resources.limits[nvidia.com/gpu]: asks for 9 GPUs"))
		}).WithContext(ctx).Should(Succeed())
	})

	It("says so when its kinds are removed, and comes into force again with them", func(ctx context.Context) {
		const sprockets = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: sprockets.gone.example}, spec: {
  group: gone.example, scope: Namespaced, names: {kind: Sprocket, plural: sprockets}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`
		mustKubectl(ctx, sprockets, "create", "-f", "-")
		mustKubectl(ctx, "", "wait", "--for=condition=Established", "crd/sprockets.gone.example")
		applyPolicy(ctx, anyPolicy("gone", "[{group: gone.example, kinds: [Sprocket]}]"), "gone", "True Enforced")
		mustKubectl(ctx, "", "delete", "crd", "sprockets.gone.example")
		Eventually(enforcedCondition("gone")).WithContext(ctx).WithTimeout(servedWithin).Should(
			HavePrefix("False KindsNotServed: The API server serves none of the kinds: Sprocket.gone.example"))
		mustKubectl(ctx, sprockets, "create", "-f", "-")
		DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "", "delete", "crd", "sprockets.gone.example") })
		Eventually(enforcedCondition("gone")).WithContext(ctx).WithTimeout(servedWithin).Should(HavePrefix("True Enforced"))
	})

	It("judges upstream kinds that are installed later, whatever else happens", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		mustKubectl(ctx, upstreamDefinition, "create", "-f", "-")
		DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "", "delete", "crd", "pytorchjobs.kubeflow.org") })
		job := strings.NewReplacer("penstock.dev/v1alpha1", "kubeflow.org/v1", "TrainingJob", "PyTorchJob", "gpu: 8", "gpu: 9")
		Eventually(func(g Gomega, ctx context.Context) {
			out, err := kubectl(ctx, job.Replace(alphaJob("nine")), "create", "-n", ns, "--dry-run=server", "-f", "-")
			g.Expect(err).To(HaveOccurred(), out)
			g.Expect(out).To(ContainSubstring("asks for 9 GPUs"))
		}).WithContext(ctx).WithTimeout(servedWithin).Should(Succeed())
	})

	It("takes kinds as they are spelt, and says what they are called", func(ctx context.Context) {
		out := mustKubectl(ctx, anyPolicy("misspelt", "[{group: apps, kinds: [deployment]}]"), "apply", "-f", "-")
		DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "", "delete", "workloadpolicy", "misspelt") })
		Expect(out).To(ContainSubstring("Warning: spec.match.resources[0].kinds[0]: deployment.apps is not served, and names are taken as they are spelt: write Deployment"))
		awaitEnforced(ctx, "misspelt")
		Eventually(enforcedCondition("misspelt")).WithContext(ctx).Should(HavePrefix("False KindsNotServed: The API server serves none of the kinds: deployment.apps (spelt Deployment)"))
		for kind, want := range map[string]string{
			"apps, kinds: [Deploymnet]":             "kinds[0]: Deploymnet.apps is not served, and names are taken as they are spelt: write Deployment",
			"apps, kinds: [deployments]":            "kinds[0]: deployments.apps is not served, and names are taken as they are spelt: write Deployment",
			"apps, kinds: [DeploymentList]":         "kinds[0]: DeploymentList.apps is not served, and names are taken as they are spelt: write Deployment",
			"'', kinds: [Deployment]":               "kinds[0]: Deployment of the core group is not served; Deployment is in group apps",
			"example.org, kinds: [Sprocket]":        "kinds[0]: Sprocket.example.org is not served: nothing is judged of it until it is installed",
			"'', kinds: [Pod], subresources: [rsz]": "subresources[0]: Pod has no subresource rsz",
		} {
			out := mustKubectl(ctx, anyPolicy("other", "[{group: "+kind+"}]", onlyLabelled), "create", "--dry-run=server", "-f", "-")
			Expect(out).To(ContainSubstring("Warning: spec.match.resources[0]."+want), kind)
		}
		out = mustKubectl(ctx, "", "apply", "--dry-run=server", "-k", filepath.Join("..", "..", "config", "policies"))
		Expect(out).NotTo(ContainSubstring("Warning: spec."), "the library is written right")
	})

	It("does not keep the cluster from starting while nobody answers", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		// A condition that holds for every pod is refused; this one holds for all here.
		applyPolicy(ctx, anyPolicy("closed", "[{group: '*', kinds: ['*']}]",
			`  matchConditions: [{name: all, expression: "object == null || !has(object.metadata.labels) || !('k8s-app' in object.metadata.labels)"}]`), "closed", "True Enforced")
		manager.Stop()
		DeferCleanup(func(ctx context.Context) { startManager(ctx) })
		out, err := kubectl(ctx, plainPod("a", "a: b"), "create", "-n", ns, "-f", "-")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("failed calling webhook"))
		for _, namespace := range []string{"kube-system", install.Namespace} {
			mustKubectl(ctx, plainPod("start", "a: b"), "create", "-n", namespace, "-f", "-")
			mustKubectl(ctx, "", "delete", "pod", "start", "-n", namespace, "--force", "--grace-period=0")
		}
		mustKubectl(ctx, "{apiVersion: v1, kind: Node, metadata: {name: joining}}", "create", "-f", "-")
		mustKubectl(ctx, "", "delete", "node", "joining")
		mustKubectl(ctx, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: beat}, spec: {}}", "create", "-n", ns, "-f", "-")
		mustKubectl(ctx, "", "auth", "can-i", "create", "pods")
		mustKubectl(ctx, "", "delete", "workloadpolicy", "closed")
	})

	It("does not wait in namespaces that a policy which fails closed does not select", func(ctx context.Context) {
		selected, other := newNamespace(ctx, map[string]string{"gpus": "yes"}), newNamespace(ctx, nil)
		applyPolicy(ctx, anyPolicy("selects", "[{kinds: [Pod]}]\n    namespaceSelector: {matchLabels: {gpus: 'yes'}}"), "selects", "True Enforced")
		bad := plainPod("a", "refuse: 'yes'")
		out, err := kubectl(ctx, bad, "create", "-n", selected, "--dry-run=server", "-f", "-")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("CREATE is not wanted"))
		mustKubectl(ctx, bad, "create", "-n", other, "--dry-run=server", "-f", "-")
		manager.Stop()
		DeferCleanup(func(ctx context.Context) { startManager(ctx) })
		out, err = kubectl(ctx, plainPod("a", "a: b"), "create", "-n", selected, "-f", "-")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("failed calling webhook"))
		mustKubectl(ctx, plainPod("a", "a: b"), "create", "-n", other, "-f", "-")
		mustKubectl(ctx, "", "delete", "workloadpolicy", "selects")
	})

	DescribeTable("that would bar the cluster's start is refused", func(ctx context.Context, resources, more string, want string) {
		out, err := kubectl(ctx, anyPolicy("bars", resources, more), "apply", "--dry-run=server", "-f", "-")
		if want == "" {
			Expect(err).NotTo(HaveOccurred(), out)
			return
		}
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring(want))
	},
		Entry("all pods", "[{kinds: [Pod]}]", "", "spec.matchConditions"),
		Entry("everything", "[{group: '*', kinds: ['*']}]", "", "--system-namespaces"),
		Entry("with a condition that holds for every pod", "[{kinds: [Pod]}]", `  matchConditions: [{name: all, expression: "has(object.spec.containers)"}]`, "plugin-x7k2p in namespace cni-system with one container"),
		Entry("not if it fails open", "[{kinds: [Pod]}]", "  failurePolicy: Ignore", ""),
		Entry("not with a condition", "[{kinds: [Pod]}]", onlyLabelled, ""),
		Entry("not where a label must be", "[{kinds: [Pod]}]\n    namespaceSelector: {matchLabels: {gpus: 'yes'}}", "", ""),
		Entry("not with namespaces left out by name", "[{kinds: [Pod]}]\n    namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [cni]}]}", "", ""),
		Entry("where a label may be missing", "[{kinds: [Pod]}]\n    namespaceSelector: {matchExpressions: [{key: exempt, operator: DoesNotExist}]}", "", "match.namespaceSelector"),
		Entry("not for a subresource", "[{kinds: [Pod], subresources: [exec]}]", "", ""),
		Entry("a condition that does not compile", "[{kinds: [Pod]}]", `  matchConditions: [{name: a, expression: "object.("}]`, "spec.matchConditions[0].expression"),
	)
})

// servedWithin is how long it may take to see that a kind was installed.
const servedWithin = 40 * time.Second

const upstreamDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pytorchjobs.kubeflow.org}
spec:
  group: kubeflow.org
  scope: Namespaced
  names: {plural: pytorchjobs, singular: pytorchjob, kind: PyTorchJob, listKind: PyTorchJobList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
