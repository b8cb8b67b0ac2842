package integration

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podPolicy matches pods and reads nodes.
const podPolicy = `apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: authored}
spec:
  description: for the specs of authors
  match:
    resources: [{group: "", kinds: [Pod]}]
    namespaceSelector: {matchLabels: {authored: "yes"}}
  failurePolicy: Ignore
  inventory: [{apiVersion: v1, kind: Node}]
  rego: |
    package authored
    violation contains {"msg": "never"} if { count(data.inventory.cluster["v1"].Node) < 0 }
`

// userWith makes a user of the cluster who may edit policies and what rules
// say, and returns the arguments by which kubectl is run by it.
func userWith(ctx context.Context, name string, rules ...rbacv1.PolicyRule) []string {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: append(rules, rbacv1.PolicyRule{
		APIGroups: []string{"penstock.dev"}, Resources: []string{"workloadpolicies", "workloadpolicies/status"}, Verbs: []string{"*"},
	})}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	Expect(k8s.Create(ctx, role)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, role)).To(Succeed()) })
	Expect(k8s.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, binding)).To(Succeed()) })
	kubeconfig, err := control.UserKubeconfig(name)
	Expect(err).NotTo(HaveOccurred())
	as := []string{"--kubeconfig=" + kubeconfig}
	// The authorizer follows the roles a moment later.
	Eventually(func() error {
		_, err := kubectl(ctx, "", append([]string{"get", "workloadpolicies"}, as...)...)
		return err
	}).WithContext(ctx).Should(Succeed())
	return as
}

func lists(group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"list"}}
}

var _ = Describe("the author of a policy", Serial, func() {
	AfterEach(func(ctx context.Context) {
		mustKubectl(ctx, "", "delete", "workloadpolicy", "authored", "--ignore-not-found")
	})

	It("who may not list what it sees is refused, a cause for each kind", func(ctx context.Context) {
		as := userWith(ctx, "no-lister")
		for _, flags := range [][]string{nil, {"--dry-run=server"}} {
			out, err := kubectl(ctx, podPolicy, append(append([]string{"apply", "-f", "-"}, as...), flags...)...)
			Expect(err).To(HaveOccurred(), out)
			Expect(out).To(And(
				ContainSubstring(`The WorkloadPolicy "authored" is invalid`),
				ContainSubstring(`spec.match.resources[0].kinds[0]: Forbidden: a policy sees what it matches and reads, and "no-lister" may not list pods in all namespaces: ask for list on pods`),
				ContainSubstring(`spec.inventory[0]: Forbidden: a policy sees what it matches and reads, and "no-lister" may not list nodes`),
			))
		}
	})

	It("who may list it in one namespace only is refused too", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		as := userWith(ctx, "one-lister", lists("", "nodes"))
		mustKubectl(ctx, "", "create", "role", "lister", "-n", ns, "--verb=list", "--resource=pods")
		mustKubectl(ctx, "", "create", "rolebinding", "lister", "-n", ns, "--role=lister", "--user=one-lister")
		out, err := kubectl(ctx, podPolicy, append([]string{"apply", "-f", "-"}, as...)...)
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("list on pods"))
		Expect(out).NotTo(ContainSubstring("list on nodes"))
	})

	It("who may list it may write the policy, and nobody needs more to relax it", func(ctx context.Context) {
		lister := userWith(ctx, "lister", lists("", "pods"), lists("", "nodes"))
		mustKubectl(ctx, podPolicy, append([]string{"apply", "-f", "-", "--dry-run=server"}, lister...)...)
		mustKubectl(ctx, podPolicy, append([]string{"apply", "-f", "-"}, lister...)...)
		relaxer := userWith(ctx, "relaxer")
		patch := func(as []string, patch string) (string, error) {
			return kubectl(ctx, "", append([]string{"patch", "workloadpolicy", "authored", "--type=merge", "-p", patch}, as...)...)
		}
		for _, relaxed := range []string{`{"spec":{"action":"Warn"}}`, `{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"description":"relaxed"}}`} {
			out, err := patch(relaxer, relaxed)
			Expect(err).NotTo(HaveOccurred(), out)
		}
		rego, err := json.Marshal("package authored\nviolation contains {\"msg\": sprintf(\"%v\", [data.inventory])} if true\n")
		Expect(err).NotTo(HaveOccurred())
		for _, widened := range []string{`{"spec":{"rego":` + string(rego) + `}}`, `{"spec":{"inventory":[{"apiVersion":"v1","kind":"Node"},{"apiVersion":"v1","kind":"Service"}]}}`} {
			out, err := patch(relaxer, widened)
			Expect(err).To(HaveOccurred(), out)
			Expect(out).To(ContainSubstring(`"relaxer" may not list pods`))
		}
		out, err := patch(lister, `{"spec":{"rego":`+string(rego)+`}}`)
		Expect(err).NotTo(HaveOccurred(), out)
	})

	It("is the user who is impersonated", func(ctx context.Context) {
		userWith(ctx, "posed")
		out, err := kubectl(ctx, podPolicy, "apply", "-f", "-", "--as=posed")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring(`"posed" may not list pods`))
	})

	It("of a policy on a kind that is not served needs all of its group", func(ctx context.Context) {
		policy := strings.ReplaceAll(podPolicy, `{group: "", kinds: [Pod]}`, `{group: gone.example.com, kinds: [Thing]}`)
		as := userWith(ctx, "early", lists("", "nodes"), lists("gone.example.com", "things"))
		out, err := kubectl(ctx, policy, append([]string{"apply", "-f", "-"}, as...)...)
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("install the kind first, or ask for list on *.gone.example.com"))
		early := userWith(ctx, "early-enough", lists("", "nodes"), lists("gone.example.com", "*"))
		mustKubectl(ctx, policy, append([]string{"apply", "-f", "-"}, early...)...)
	})
})
