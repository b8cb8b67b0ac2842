package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

const trainingJobs = "trainingjobs.penstock.dev"

func definition(ctx context.Context) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	var found apiextensionsv1.CustomResourceDefinition
	Expect(json.Unmarshal([]byte(mustKubectl(ctx, "", "get", "crd", trainingJobs, "-o", "json")), &found)).To(Succeed())
	return &found
}

// storeIn has training jobs stored in a version from now on.
func storeIn(ctx context.Context, version string) {
	GinkgoHelper()
	var changes []map[string]any
	for i, one := range definition(ctx).Spec.Versions {
		changes = append(changes, map[string]any{"op": "replace", "path": fmt.Sprintf("/spec/versions/%d/storage", i), "value": one.Name == version})
	}
	patch, err := json.Marshal(changes)
	Expect(err).NotTo(HaveOccurred())
	mustKubectl(ctx, "", "patch", "crd", trainingJobs, "--type=json", "-p", string(patch))
}

// storedVersion gives the version that a job is in etcd in.
func storedVersion(ns, name string) func(Gomega, context.Context) string {
	return func(g Gomega, ctx context.Context) string {
		raw, err := control.Stored(ctx, v1.GroupName, "trainingjobs", ns, name)
		g.Expect(err).NotTo(HaveOccurred())
		var object struct {
			APIVersion string `json:"apiVersion"`
		}
		g.Expect(json.Unmarshal(raw, &object)).To(Succeed())
		return object.APIVersion
	}
}

// migrates runs penstock migrate and gives what it says and its exit code.
func migrates(ctx context.Context) (string, int) {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, binary, "migrate", "--kubeconfig="+control.Kubeconfig, "--timeout=3m").CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return string(out), exit.ExitCode()
	default:
		Expect(err).NotTo(HaveOccurred())
		return string(out), 0
	}
}

const refusal = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refuse-migration}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [penstock.dev], apiVersions: ["*"], operations: [UPDATE], resources: [trainingjobs]}]
  validations: [{expression: "object.metadata.name != 'old'", message: nothing may touch this one}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refuse-migration}
spec: {policyName: refuse-migration, validationActions: [Deny]}
`

var _ = Describe("penstock migrate", Serial, func() {
	It("has everything stored in v1, and does not say so before it is", func(ctx context.Context) {
		ns := newNamespace(ctx)
		DeferCleanup(func(ctx context.Context) { storeIn(ctx, "v1") })
		storeIn(ctx, "v1alpha1")
		// The API server takes a moment to store in another version.
		probes := 0
		Eventually(func(g Gomega, ctx context.Context) {
			probes++
			name := fmt.Sprintf("probe-%d", probes)
			submit(ctx, ns, name, fixtures.Workers(1), fixtures.Suspended())
			g.Expect(storedVersion(ns, name)(g, ctx)).To(Equal("penstock.dev/v1alpha1"))
		}).WithContext(ctx).Should(Succeed())
		mustKubectl(ctx, `{"apiVersion":"penstock.dev/v1alpha1","kind":"TrainingJob","metadata":{"name":"old"},"spec":{"runPolicy":{"suspend":true},
			"jaxReplicaSpecs":{"Worker":{"replicas":2,"template":{"spec":{"containers":[{"name":"jax","image":"images.example/a"}]}}}}}}`, "apply", "-n", ns, "-f", "-")
		submit(ctx, ns, "gang", fixtures.Workers(2), fixtures.Suspended(), fixtures.GangRestart())
		// What the reconciler writes after the version changed would be stored in v1.
		eventuallyJob(ctx, ns, "old", inPhase(v1.PhaseSuspended))
		eventuallyJob(ctx, ns, "gang", inPhase(v1.PhaseSuspended))
		before := now(ctx, job(ns, "gang")).Spec
		storeIn(ctx, "v1")
		Expect(definition(ctx).Status.StoredVersions).To(ConsistOf("v1", "v1alpha1"))

		By("keeping v1alpha1 in storedVersions while an object cannot be rewritten, and naming that")
		mustKubectl(ctx, refusal, "apply", "-f", "-")
		Eventually(func(ctx context.Context) error {
			_, err := kubectl(ctx, "", "label", "-n", ns, "tj", "old", "a=b", "--dry-run=server")
			return err
		}).WithContext(ctx).Should(HaveOccurred())
		said, code := migrates(ctx)
		Expect(code).To(Equal(2), said)
		Expect(said).To(And(ContainSubstring("failed"), ContainSubstring(`"old"`), ContainSubstring("nothing may touch this one")))
		Expect(definition(ctx).Status.StoredVersions).To(ConsistOf("v1", "v1alpha1"))
		Expect(now(ctx, storedVersion(ns, "old"))).To(Equal("penstock.dev/v1alpha1"))

		By("rewriting all of it once it can be, and telling who writes v1alpha1")
		mustKubectl(ctx, refusal, "delete", "-f", "-")
		Eventually(func(ctx context.Context) error {
			_, err := kubectl(ctx, "", "label", "-n", ns, "tj", "old", "a=b", "--dry-run=server")
			return err
		}).WithContext(ctx).Should(Succeed())
		said, code = migrates(ctx)
		Expect(code).To(Equal(1), said)
		Expect(said).To(And(ContainSubstring("everything is stored in v1"), ContainSubstring("kubectl-client-side-apply writes 1 in v1alpha1")))
		Expect(definition(ctx).Status.StoredVersions).To(Equal([]string{"v1"}))
		Expect(now(ctx, storedVersion(ns, "old"))).To(Equal("penstock.dev/v1"))
		Expect(now(ctx, storedVersion(ns, "gang"))).To(Equal("penstock.dev/v1"))
		Expect(now(ctx, job(ns, "gang")).Spec).To(Equal(before), "what v1alpha1 cannot say is back")

		By("having nothing left to do")
		mustKubectl(ctx, "", "delete", "-n", ns, "tj", "old")
		said, code = migrates(ctx)
		Expect(code).To(Equal(0), said)
		Expect(said).To(ContainSubstring("no object was written in another version"))
		Expect(mustKubectl(ctx, "", "get", "storageversionmigrations", "-o", "name")).To(BeEmpty(), "migrations that have ended")
	})
})
