package integration

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
)

const ingotDefinition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ingots.parents.example}, spec: {
  group: parents.example, scope: Namespaced, names: {kind: Ingot, plural: ingots}, versions: [{name: v1, served: true, storage: true,
  subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}},
  schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {spec: {type: object, properties: {replicas: {type: integer}}}}}}}]}}`

// selectingPolicy is a policy on some resources of objects labelled strict.
func selectingPolicy(name, resources, operations, condition string) string {
	return fmt.Sprintf(`apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: %s}
spec:
  match:
    resources: %s
    operations: %s
    objectSelector: {matchLabels: {strict: "1"}}
  rego: |
    package p
    violation contains {"msg": sprintf("%%s is not wanted", [input.operation])} if { %s }
`, name, resources, operations, condition)
}

var _ = Describe("the objectSelector of a policy on subresources", Serial, func() {
	It("looks at what is scaled, and says what it lacks for that", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		mustKubectl(ctx, ingotDefinition, "create", "-f", "-")
		DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "", "delete", "crd", "ingots.parents.example") })
		mustKubectl(ctx, "", "wait", "--for=condition=Established", "crd/ingots.parents.example")
		for name, labels := range map[string]string{"strict": "strict: '1'", "other": "strict: '2'"} {
			mustKubectl(ctx, fmt.Sprintf("{apiVersion: parents.example/v1, kind: Ingot, metadata: {name: %s, labels: {%s}}, spec: {replicas: 1}}", name, labels), "create", "-n", ns, "-f", "-")
		}
		scale := func(name string) (string, error) {
			return kubectl(ctx, "", "scale", "ingot", name, "-n", ns, "--replicas=4")
		}
		applyPolicy(ctx, selectingPolicy("ingots", "[{group: parents.example, kinds: [Ingot], subresources: ['', scale]}]", "[CREATE, UPDATE]", "input.object.spec.replicas > 3"), "ingots", "True Enforced")
		out, err := scale("strict")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("its objectSelector looks at the labels of Ingot strict, which are not known: " +
			"grant Penstock get on ingots.parents.example, by a ClusterRole labelled penstock.dev/aggregate-to-manager=true"))

		grant(ctx, "ingot-reader", rbacv1.PolicyRule{APIGroups: []string{"parents.example"}, Resources: []string{"ingots"}, Verbs: []string{"get", "list", "watch"}})
		Eventually(func() (string, error) { return scale("other") }).WithContext(ctx).Should(ContainSubstring("scaled"))
		out, err = scale("strict")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("UPDATE is not wanted (policy ingots)"))
	})

	It("looks at the pod that is connected to or evicted", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		for name, labels := range map[string]string{"strict": "strict: '1'", "other": "strict: '2'"} {
			mustKubectl(ctx, plainPod(name, labels), "create", "-n", ns, "-f", "-")
		}
		applyPolicy(ctx, selectingPolicy("talks", "[{kinds: [Pod], subresources: [exec, eviction]}]", "[CONNECT, CREATE]", "true"), "talks", "True Enforced")
		evict := func(name string) (string, error) {
			return kubectl(ctx, fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`, name, ns),
				"create", "--raw", "/api/v1/namespaces/"+ns+"/pods/"+name+"/eviction", "-f", "-")
		}
		out, err := kubectl(ctx, "", "exec", "-n", ns, "strict", "--", "true")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("CONNECT is not wanted (policy talks)"))
		// No kubelet runs it, which is told of what is admitted.
		out, err = kubectl(ctx, "", "exec", "-n", ns, "other", "--", "true")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("does not have a host assigned"))
		out, err = evict("strict")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("CREATE is not wanted (policy talks)"))
		out, err = evict("other")
		Expect(err).NotTo(HaveOccurred(), out)
	})
})
