package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

var _ = Describe("an elastic job", func() {
	DescribeTable("grows and shrinks by kubectl scale", func(ctx context.Context, resource, field string) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "elastic", forever, fixtures.Elastic(1, 4))
		eventuallyJob(ctx, ns, "elastic", allReady("2/2"))
		first := now(ctx, pods(ns, "elastic"))["elastic-worker-0"]

		mustKubectl(ctx, "", "scale", "-n", ns, resource+"/elastic", "--replicas=4")
		grown := eventuallyJob(ctx, ns, "elastic", And(allReady("4/4"), inPhase(v1.PhaseRunning)))
		Expect(grown.Spec.Elastic.Replicas).To(HaveValue(Equal(int32(4))))
		Expect(grown.Status.Elastic).To(And(HaveField("Replicas", HaveValue(Equal(int32(4)))), HaveField("Selector", Not(BeEmpty()))))
		Expect(now(ctx, pods(ns, "elastic"))).To(HaveLen(4))

		mustKubectl(ctx, "", "scale", "-n", ns, resource+"/elastic", "--current-replicas=4", "--replicas=1")
		eventuallyJob(ctx, ns, "elastic", allReady("1/1"))
		Eventually(pods(ns, "elastic")).WithContext(ctx).Should(And(HaveLen(1), HaveKeyWithValue(first.Name, HaveField("UID", first.UID))))
		Eventually(services(ns, "elastic")).WithContext(ctx).Should(HaveLen(1))

		out, err := kubectl(ctx, "", "scale", "-n", ns, resource+"/elastic", "--replicas=5")
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(And(ContainSubstring(field), ContainSubstring("must be at most maxReplicas, which is 4")))
		Expect(now(ctx, job(ns, "elastic")).Spec.Elastic.Replicas).To(HaveValue(Equal(int32(1))))
	},
		Entry("in v1", "trainingjobs.v1.penstock.dev", "spec.elastic.replicas"),
		Entry("in v1alpha1", "trainingjobs.v1alpha1.penstock.dev", "spec.pytorchReplicaSpecs.Worker.replicas"),
	)
})
