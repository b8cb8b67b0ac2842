package integration

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

var _ = Describe("what is stored", func() {
	It("is v1 with every default spelled out, and reads back in both versions with nothing lost", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		manifest := alphaJob("whole")
		mustKubectl(ctx, manifest, "apply", "-n", ns, "-f", "-")

		hub := get(ctx, "v1", v1.TrainingJobKind, ns, "whole")
		Expect(valueAt(hub, "spec", "framework")).To(Equal("PyTorch"))
		Expect(valueAt(hub, "spec", "runPolicy", "cleanPodPolicy")).To(Equal("None"))
		Expect(valueAt(hub, "spec", "runPolicy", "suspend")).To(BeFalse())
		worker := valueAt(hub, "spec", "roles").([]any)[1].(map[string]any)
		Expect(worker).To(HaveKeyWithValue("name", "Worker"))
		container := worker["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		Expect(container["ports"]).To(ConsistOf(map[string]any{"name": "pytorchjob-port", "containerPort": int64(23456), "protocol": "TCP"}))
		Expect(container["resources"].(map[string]any)["requests"]).To(HaveKeyWithValue("nvidia.com/gpu", Or(Equal("8"), Equal(int64(8)))))
		Expect(container["resources"].(map[string]any)["limits"]).To(HaveKeyWithValue("cpu", "1000m"), "a quantity stays as it was written")
		Expect(hub.GetAnnotations()).NotTo(HaveKey(v1.RestoreAnnotation))

		alpha := get(ctx, "v1alpha1", v1.TrainingJobKind, ns, "whole")
		var written map[string]any
		Expect(yaml.Unmarshal([]byte(manifest), &written)).To(Succeed())
		expectContains(alpha.Object["spec"], written["spec"], "spec")
	})

	It("keeps what only v1 can say when it is edited through v1alpha1", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		mustKubectl(ctx, hubJob("edited"), "apply", "-n", ns, "-f", "-")
		mustKubectl(ctx, "", "patch", "-n", ns, "trainingjobs.v1alpha1.penstock.dev/edited", "--type=merge",
			"-p", `{"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":3}}}}`)
		hub := get(ctx, "v1", v1.TrainingJobKind, ns, "edited")
		Expect(valueAt(hub, "spec", "elastic", "replicas")).To(Equal(int64(3)))
		role := valueAt(hub, "spec", "roles").([]any)[0].(map[string]any)
		Expect(role["topology"]).To(Equal(map[string]any{"required": "topology.kubernetes.io/rack"}))
	})

	// Seen on the API server: only the version that a request is made in decides
	// whether its generation grows. So nothing may filter on generation alone.
	It("changes without a new generation when the annotation is edited through v1alpha1", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		// Only while it is suspended may its placing change.
		mustKubectl(ctx, hubJob("quiet")+"  runPolicy: {suspend: true}\n", "apply", "-n", ns, "-f", "-")
		before := get(ctx, "v1", v1.TrainingJobKind, ns, "quiet")
		Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
			alpha := get(ctx, "v1alpha1", v1.TrainingJobKind, ns, "quiet")
			kept := alpha.GetAnnotations()[v1.RestoreAnnotation]
			Expect(kept).To(ContainSubstring("topology.kubernetes.io/rack"))
			annotations := alpha.GetAnnotations()
			annotations[v1.RestoreAnnotation] = strings.ReplaceAll(kept, "topology.kubernetes.io/rack", "topology.kubernetes.io/zone")
			alpha.SetAnnotations(annotations)
			return k8s.Update(ctx, alpha)
		})).To(Succeed())
		after := get(ctx, "v1", v1.TrainingJobKind, ns, "quiet")
		role := valueAt(after, "spec", "roles").([]any)[0].(map[string]any)
		Expect(role["topology"]).To(Equal(map[string]any{"required": "topology.kubernetes.io/zone"}))
		Expect(after.GetGeneration()).To(Equal(before.GetGeneration()))
	})

	It("does not take from a forged annotation what v1 would refuse", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		for name, forged := range map[string]string{
			"an invalid topology":      `{"set":{"/roles/Worker/topology":{"required":"a","preferred":"b"}}}`,
			"a key outside the policy": `{"set":{"/roles/Worker/topology":{"required":"example.com/anything"}}}`,
			"another framework's part": `{"set":{"/mpi":{}}}`,
		} {
			out, err := kubectl(ctx, withAnnotation(alphaJob("forged"), forged), "apply", "-n", ns, "-f", "-")
			Expect(err).To(HaveOccurred(), "%s: %s", name, out)
			Expect(out).To(ContainSubstring("is invalid"), name)
		}
		for name, forged := range map[string]string{
			"status":      `{"set":{"/status/phase":"Succeeded"}}`,
			"wrong types": `{"set":{"/roles/Worker/topology":5}}`,
			"300 kB":      `{"set":{"/roles/Worker/topology":{"required":"` + strings.Repeat("x", 200<<10) + `"}}}`,
		} {
			mustKubectl(ctx, withAnnotation(alphaJob("forged"), forged), "create", "-n", ns, "-f", "-")
			hub := get(ctx, "v1", v1.TrainingJobKind, ns, "forged")
			Expect(valueAt(hub, "spec", "roles").([]any)[1]).NotTo(HaveKey("topology"), name)
			Expect(valueAt(hub, "status", "phase")).NotTo(Equal("Succeeded"), name)
			mustKubectl(ctx, "", "delete", "-n", ns, "tj", "forged")
		}
	})
})

func withAnnotation(manifest, value string) string {
	quoted, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return strings.Replace(manifest, "metadata:\n", "metadata:\n  annotations:\n    "+v1.RestoreAnnotation+": "+string(quoted)+"\n", 1)
}

// expectContains checks that all that was written is there, nulls apart.
func expectContains(got, want any, path string) {
	GinkgoHelper()
	switch want := want.(type) {
	case nil:
	case map[string]any:
		object, ok := got.(map[string]any)
		Expect(ok).To(BeTrue(), path)
		for name, value := range want {
			expectContains(object[name], value, path+"."+name)
		}
	case []any:
		list, ok := got.([]any)
		Expect(ok).To(BeTrue(), path)
		Expect(len(list)).To(BeNumerically(">=", len(want)), path)
		for i := range want {
			expectContains(list[i], want[i], path)
		}
	default:
		Expect(got).To(BeEquivalentTo(want), path)
	}
}
