package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/install"
)

// withoutWebhooks does something while the API server calls no admission
// webhooks, and waits until it does again.
func withoutWebhooks(ctx context.Context, ns string, do func()) {
	GinkgoHelper()
	refused := hubJob("probe", "gpu: 8", "gpu: 9")
	probe := func(ctx context.Context) error {
		_, err := kubectl(ctx, refused, "create", "-n", ns, "--dry-run=server", "-f", "-")
		return err
	}
	restore := func(ctx context.Context) {
		Expect(install.Apply(ctx, control.Config, webhooks)).To(Succeed())
		Eventually(probe).WithContext(ctx).Should(MatchError(ContainSubstring("policy gpu-ceiling")))
	}
	mustKubectl(ctx, "", "delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "penstock")
	done := false
	DeferCleanup(func(ctx context.Context) {
		if !done {
			restore(ctx)
		}
	})
	Eventually(probe).WithContext(ctx).Should(Succeed())
	do()
	restore(ctx)
	done = true
}

// everyJob reads what is said of each job of a namespace in a version.
func everyJob(version, ns string) func(Gomega, context.Context) map[string]any {
	return func(g Gomega, ctx context.Context) map[string]any {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: v1.GroupName, Version: version, Kind: v1.TrainingJobKind + "List"})
		g.Expect(k8s.List(ctx, list, client.InNamespace(ns))).To(Succeed())
		jobs := map[string]any{}
		for _, job := range list.Items {
			g.Expect(job.GetAPIVersion()).To(Equal(v1.GroupName + "/" + version))
			jobs[job.GetName()] = []any{job.GetUID(), job.GetLabels(), job.GetAnnotations(), job.Object["spec"], job.GetGeneration()}
		}
		return jobs
	}
}

func readOnce[T any](ctx context.Context, read func(Gomega, context.Context) T) T {
	GinkgoHelper()
	return read(NewGomega(func(message string, _ ...int) { Fail(message) }), ctx)
}

var _ = Describe("what is stored", Serial, func() {
	const jobs = 40

	// fill stores jobs in both versions, some of which v1alpha1 cannot say in full.
	fill := func(ctx context.Context) (ns string, hub, alpha map[string]any) {
		ns = newNamespace(ctx, nil)
		manifests := ""
		for i := range jobs / 2 {
			manifests += alphaJob(fmt.Sprintf("alpha-%d", i)) + "---\n" + hubJob(fmt.Sprintf("hub-%d", i)) + "---\n"
		}
		mustKubectl(ctx, manifests, "create", "-n", ns, "-f", "-")
		hub, alpha = readOnce(ctx, everyJob("v1", ns)), readOnce(ctx, everyJob("v1alpha1", ns))
		Expect(hub).To(HaveLen(jobs))
		Expect(alpha).To(HaveLen(jobs))
		return ns, hub, alpha
	}
	// revive starts the manager again if it has given up its lease.
	revive := func(ctx context.Context) {
		select {
		case <-manager.Ended():
			startManager(ctx)
		default:
		}
	}

	It("is all there after the API server was restarted", func(ctx context.Context) {
		ns, hub, alpha := fill(ctx)
		restartAPIServer(ctx)
		revive(ctx)
		Eventually(everyJob("v1alpha1", ns)).WithContext(ctx).WithTimeout(time.Minute).Should(Equal(alpha))
		Expect(readOnce(ctx, everyJob("v1", ns))).To(Equal(hub))
	})

	It("is all there after the API server was restarted while Penstock was away", func(ctx context.Context) {
		ns, hub, alpha := fill(ctx)
		manager.Stop()
		restartAPIServer(ctx)
		Eventually(everyJob("v1", ns)).WithContext(ctx).WithTimeout(time.Minute).Should(Equal(hub))
		startManager(ctx)
		Eventually(everyJob("v1alpha1", ns)).WithContext(ctx).WithTimeout(time.Minute).Should(Equal(alpha))
		Expect(readOnce(ctx, everyJob("v1", ns))).To(Equal(hub))
		mustKubectl(ctx, alphaJob("next"), "apply", "-n", ns, "-f", "-")
	})

	It("reads well in both versions with an annotation that conversion did not write", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		annotations := map[string]string{
			"no-json":       `{"set":`,
			"a-number":      `5`,
			"set-of-text":   `{"set":"all"}`,
			"ill-typed":     `{"set":{"/roles/Worker/topology":5,"/roles/Worker/replicas":"two","/gang":[1]}}`,
			"unknown":       `{"set":{"/roles/Boss/topology":{"required":"rack"},"/nowhere":{"a":1}},"more":true}`,
			"empty":         ``,
			"of-its-status": `{"set":{"/status/phase":"Failed"}}`,
		}
		withoutWebhooks(ctx, ns, func() {
			for name, annotation := range annotations {
				mustKubectl(ctx, withAnnotation(hubJob(name), annotation), "create", "-n", ns, "-f", "-")
			}
		})
		for name := range annotations {
			hub := get(ctx, "v1", v1.TrainingJobKind, ns, name)
			Expect(valueAt(hub, "spec", "framework")).To(Equal("PyTorch"), name)
			alpha := get(ctx, "v1alpha1", v1.TrainingJobKind, ns, name)
			Expect(valueAt(alpha, "spec", "pytorchReplicaSpecs", "Worker", "replicas")).To(Equal(int64(2)), name)
			Expect(valueAt(alpha, "spec", "elasticPolicy", "maxReplicas")).To(Equal(int64(4)), name)
			Expect(alpha.GetAnnotations()).To(HaveKeyWithValue(v1.RestoreAnnotation, ContainSubstring("topology.kubernetes.io/rack")), name)
			// And a write through v1alpha1 keeps what only v1 can say.
			mustKubectl(ctx, "", "patch", "-n", ns, "trainingjobs.v1alpha1.penstock.dev/"+name, "--type=merge", "-p", `{"metadata":{"labels":{"read":"yes"}}}`)
			roles := valueAt(get(ctx, "v1", v1.TrainingJobKind, ns, name), "spec", "roles").([]any)
			Expect(roles[0]).To(HaveKeyWithValue("topology", map[string]any{"required": "topology.kubernetes.io/rack"}), name)
		}
		Expect(readOnce(ctx, everyJob("v1alpha1", ns))).To(HaveLen(len(annotations)))
	})

	DescribeTable("as a policy that does not compile keeps nobody unready and answers by its failure policy",
		func(ctx context.Context, failurePolicy string, matches OmegaMatcher, accepted bool) {
			ns := newNamespace(ctx, map[string]string{"broken": "yes"})
			broken := `apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: broken}
spec:
  action: Deny
  failurePolicy: ` + failurePolicy + `
  match:
    resources: [{group: penstock.dev, kinds: [TrainingJob]}]
    namespaceSelector: {matchLabels: {broken: "yes"}}
  rego: |
    package broken
    violation contains {"msg": m} if {
      m := undefined_thing
    }
`
			DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "", "delete", "workloadpolicy", "broken") })
			out, err := kubectl(ctx, broken, "create", "-f", "-")
			Expect(err).To(HaveOccurred(), out)
			manager.Stop()
			mustKubectl(ctx, "", "delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "penstock")
			Eventually(func(ctx context.Context) (string, error) {
				return kubectl(ctx, broken, "apply", "-f", "-")
			}).WithContext(ctx).Should(ContainSubstring("created"))
			Expect(install.Apply(ctx, control.Config, webhooks)).To(Succeed())
			// It returns once the manager is ready.
			startManager(ctx)

			Eventually(func(g Gomega, ctx context.Context) {
				var policy v1.WorkloadPolicy
				g.Expect(k8s.Get(ctx, client.ObjectKey{Name: "broken"}, &policy)).To(Succeed())
				condition := meta.FindStatusCondition(policy.Status.Conditions, v1.WorkloadPolicyCompiledCondition)
				g.Expect(condition).To(HaveValue(And(
					HaveField("Status", BeEquivalentTo("False")),
					HaveField("Reason", v1.WorkloadPolicyCompileFailedReason),
					HaveField("Message", ContainSubstring("undefined_thing")),
				)))
			}).WithContext(ctx).Should(Succeed())
			var failure error
			Eventually(func(ctx context.Context) string {
				out, failure = kubectl(ctx, alphaJob("judged"), "apply", "-n", ns, "-f", "-")
				return out
			}).WithContext(ctx).Should(matches)
			Expect(failure == nil).To(Equal(accepted), out)
			mustKubectl(ctx, alphaJob("elsewhere"), "apply", "-n", newNamespace(ctx, nil), "-f", "-")
			nine, err := kubectl(ctx, alphaJob("nine", "gpu: 8", "gpu: 9"), "apply", "-n", ns, "-f", "-")
			Expect(err).To(HaveOccurred())
			Expect(nine).To(ContainSubstring("policy gpu-ceiling"), "the others still judge")
		},
		Entry("Fail", "Fail", And(ContainSubstring("is invalid"), ContainSubstring("policy broken")), false),
		Entry("Ignore", "Ignore", And(ContainSubstring("Warning: "), ContainSubstring("policy broken"), ContainSubstring("created")), true),
	)
})
