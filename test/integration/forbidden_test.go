package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/reading"
)

var _ = Describe("a job whose pods are forbidden", func() {
	It("says so, keeps its deadline, and goes on once they are allowed", func(ctx context.Context) {
		ns := newNamespace(ctx, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
		mustKubectl(ctx, alphaJob("barred"), "apply", "-n", ns, "-f", "-")
		mustKubectl(ctx, alphaJob("bounded", "backoffLimit: 3", "activeDeadlineSeconds: 3"), "apply", "-n", ns, "-f", "-")
		Eventually(reading.Job(k8s, ns, "barred")).WithContext(ctx).Should(And(
			HaveField("Status.Phase", v1.PhaseCreating),
			HaveField("Status.Conditions", ContainElement(And(
				HaveField("Type", v1.InvalidCondition), HaveField("Status", HaveValue(BeEquivalentTo("True"))),
				HaveField("Reason", v1.ChildForbiddenReason), HaveField("Message", ContainSubstring("PodSecurity"))))),
		))
		Eventually(reading.Job(k8s, ns, "bounded")).WithContext(ctx).Should(HaveField("Status.Phase", v1.PhaseFailed))
		mustKubectl(ctx, "", "label", "namespace", ns, "pod-security.kubernetes.io/enforce-")
		Eventually(reading.Job(k8s, ns, "barred")).WithContext(ctx).Should(HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", v1.InvalidCondition), HaveField("Status", HaveValue(BeEquivalentTo("False")))))))
		var pods corev1.PodList
		Expect(k8s.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{v1.JobNameLabel: "barred"})).To(Succeed())
		Expect(pods.Items).To(HaveLen(3))
	})
})
