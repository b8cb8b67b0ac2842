package integration

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/install"
)

const trainingJobs = "trainingjobs.penstock.dev"

// convertBy has the API server ask another server for conversions of jobs.
func convertBy(ctx context.Context, server *httptest.Server) {
	GinkgoHelper()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	patch, err := json.Marshal([]map[string]any{{
		"op": "replace", "path": "/spec/conversion/webhook/clientConfig", "value": map[string]any{"url": server.URL, "caBundle": bundle},
	}})
	Expect(err).NotTo(HaveOccurred())
	mustKubectl(ctx, "", "patch", "crd", trainingJobs, "--type=json", "-p", string(patch))
}

// answering answers every review by what a function makes of its uid and its
// first object.
func answering(answer func(uid string, object map[string]any) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID     string
				Objects []map[string]any
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || len(review.Request.Objects) == 0 {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer(review.Request.UID, review.Request.Objects[0]))
	}
}

func conversionAnswer(uid, objects string) string {
	return fmt.Sprintf(`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":%q,"convertedObjects":[%s],"result":{"status":"Success"}}}`, uid, objects)
}

// converter is a server that converts in its own way.
type converter struct {
	handler http.HandlerFunc
	// want is in the message of the API server.
	want string
}

var badConverters = map[string]converter{
	"is not there": {nil, "connect"},
	"does not end": {func(_ http.ResponseWriter, r *http.Request) {
		// The server sees that its client is gone once it has read all.
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}, "deadline exceeded"},
	"answers 500": {func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusInternalServerError)
	}, "out of order"},
	"answers with garbage": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "\x00garbage") },
		"conversion webhook for penstock.dev/v1, Kind=TrainingJob"},
	"answers something else": {answering(func(uid string, _ map[string]any) string { return conversionAnswer("not-"+uid, "{}") }), "uid"},
	"loses the object":       {answering(func(uid string, _ map[string]any) string { return conversionAnswer(uid, "") }), "0 objects"},
	"renames the object": {answering(func(uid string, object map[string]any) string {
		object["apiVersion"] = "penstock.dev/v1alpha1"
		object["metadata"].(map[string]any)["name"] = "another"
		text, _ := json.Marshal(object)
		return conversionAnswer(uid, string(text))
	}), "name"},
	"refuses": {answering(func(uid string, _ map[string]any) string {
		return fmt.Sprintf(`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":%q,"convertedObjects":[],"result":{"status":"Failure","message":"not today"}}}`, uid)
	}), "not today"},
}

var _ = Describe("conversion that fails", Serial, Ordered, func() {
	var ns string
	var hub, alpha map[string]any

	BeforeAll(func(ctx context.Context) {
		ns = newNamespace(ctx, nil)
		mustKubectl(ctx, alphaJob("written-in-v1alpha1")+"---\n"+hubJob("written-in-v1"), "apply", "-n", ns, "-f", "-")
		hub, alpha = readOnce(ctx, everyJob("v1", ns)), readOnce(ctx, everyJob("v1alpha1", ns))
		// It would put its own bundle where that of the test's server is.
		manager.Stop()
		DeferCleanup(func(ctx context.Context) {
			startManager(ctx)
			Expect(install.Apply(ctx, control.Config, webhooks)).To(Succeed())
			Eventually(everyJob("v1alpha1", ns)).WithContext(ctx).Should(Equal(alpha), "all is there when Penstock converts again")
			Expect(readOnce(ctx, everyJob("v1", ns))).To(Equal(hub))
		})
	})

	for name, bad := range badConverters {
		It("because the webhook "+name+" says so, and keeps nobody from v1", func(ctx context.Context) {
			server := httptest.NewUnstartedServer(bad.handler)
			server.StartTLS()
			DeferCleanup(func() {
				server.CloseClientConnections()
				server.Close()
			})
			convertBy(ctx, server)
			if bad.handler == nil {
				server.Close()
			}
			Eventually(func(g Gomega, ctx context.Context) {
				out, err := kubectl(ctx, "", "get", "-n", ns, "trainingjobs.v1alpha1.penstock.dev", "written-in-v1", "--request-timeout=3s")
				g.Expect(err).To(HaveOccurred(), out)
				g.Expect(strings.ToLower(out)).To(ContainSubstring(strings.ToLower(bad.want)))
			}).WithContext(ctx).Should(Succeed())
			Expect(readOnce(ctx, everyJob("v1", ns))).To(Equal(hub))
			out, err := kubectl(ctx, "", "patch", "-n", ns, "trainingjobs.v1alpha1.penstock.dev/written-in-v1", "--type=merge",
				"-p", `{"metadata":{"labels":{"a":"b"}}}`, "--request-timeout=3s")
			Expect(err).To(HaveOccurred(), out)
			for _, job := range []string{"written-in-v1", "written-in-v1alpha1"} {
				stored, err := control.Stored(ctx, v1.GroupName, "trainingjobs", ns, job)
				Expect(err).NotTo(HaveOccurred())
				Expect(string(stored)).To(And(ContainSubstring(`"apiVersion":"penstock.dev/v1"`), Not(ContainSubstring(`"a":"b"`))))
			}
		})
	}
})

// store puts a job into etcd as another release may have stored it.
func store(ctx context.Context, ns, name, manifest string) {
	GinkgoHelper()
	var object map[string]any
	Expect(yaml.Unmarshal([]byte(manifest), &object)).To(Succeed())
	metadata := object["metadata"].(map[string]any)
	metadata["namespace"], metadata["uid"], metadata["generation"] = ns, "0c6f5b2e-8f0a-4f0e-9d9f-"+fmt.Sprintf("%012x", len(name)), 1
	metadata["creationTimestamp"] = "2026-01-31T12:00:00Z"
	text, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	Expect(control.Store(ctx, v1.GroupName, "trainingjobs", ns, name, text)).To(Succeed())
}

var _ = Describe("what another release stored", func() {
	It("reads in both versions and can be written, whatever of it is not there", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		for name, manifest := range map[string]string{
			"in-v1alpha1": alphaJob("in-v1alpha1"),
			// Before there were defaults, elastic, gang or status.
			"bare":  "apiVersion: penstock.dev/v1\nkind: TrainingJob\nmetadata: {name: bare}\nspec: {framework: JAX, roles: [{name: Worker, template: {spec: {containers: [{name: jax, image: images.example/a}]}}}]}",
			"later": hubJob("later") + "  gang: {queueDepth: 3}\n  nextBigThing: {a: 1}\n",
			"spun":  "apiVersion: penstock.dev/v1\nkind: TrainingJob\nmetadata: {name: spun}\nspec: null",
			"empty": "apiVersion: penstock.dev/v1\nkind: TrainingJob\nmetadata: {name: empty}",
		} {
			store(ctx, ns, name, manifest)
		}
		Eventually(everyJob("v1", ns)).WithContext(ctx).Should(HaveLen(5))
		Expect(readOnce(ctx, everyJob("v1alpha1", ns))).To(HaveLen(5))
		Expect(valueAt(get(ctx, "v1", v1.TrainingJobKind, ns, "in-v1alpha1"), "spec", "framework")).To(Equal("PyTorch"))
		Expect(valueAt(get(ctx, "v1alpha1", v1.TrainingJobKind, ns, "bare"), "spec", "jaxReplicaSpecs")).To(HaveKey("Worker"))
		Expect(valueAt(get(ctx, "v1alpha1", v1.TrainingJobKind, ns, "later"), "spec")).NotTo(HaveKey("nextBigThing"))
		for _, name := range []string{"in-v1alpha1", "bare", "later"} {
			mustKubectl(ctx, "", "label", "-n", ns, "trainingjobs.v1alpha1.penstock.dev/"+name, "seen=yes")
			Expect(get(ctx, "v1", v1.TrainingJobKind, ns, name).GetLabels()).To(HaveKeyWithValue("seen", "yes"))
		}
	})

	It("with fields that were managed in a version which is gone", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		store(ctx, ns, "gone", strings.Replace(hubJob("gone"), "metadata:\n", `metadata:
  managedFields:
  - {manager: old, operation: Apply, apiVersion: penstock.dev/v1beta1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:framework": {}}}}
`, 1))
		Eventually(everyJob("v1alpha1", ns)).WithContext(ctx).Should(HaveLen(1))
		hub := get(ctx, "v1", v1.TrainingJobKind, ns, "gone")
		Expect(valueAt(hub, "spec", "elastic")).To(HaveKeyWithValue("minReplicas", BeEquivalentTo(1)))
		// That the API server cannot merge what it manages in a version that it
		// does not know is its own fault, and docs/operations.md says the way out.
		changed := "apiVersion: penstock.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: gone, labels: {seen: \"yes\"}}"
		apply := []string{"apply", "--server-side", "--field-manager=new", "-n", ns, "-f", "-"}
		out, err := kubectl(ctx, changed, apply...)
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("penstock.dev/v1beta1"))
		mustKubectl(ctx, "", "patch", "-n", ns, "trainingjobs.v1.penstock.dev/gone", "--type=merge", "-p", `{"metadata":{"managedFields":[{}]}}`)
		mustKubectl(ctx, changed, apply...)
		after := get(ctx, "v1", v1.TrainingJobKind, ns, "gone")
		Expect(after.GetLabels()).To(HaveKeyWithValue("seen", "yes"))
		Expect(after.Object["spec"]).To(HaveKeyWithValue("framework", "PyTorch"))
	})

	DescribeTable("however large it is", func(ctx context.Context, size int, args ...string) {
		ns := newNamespace(ctx, nil)
		bulk := strings.Repeat("x", size)
		large := func(manifest string) string {
			return strings.Replace(manifest, "image: images.example/train:1", "image: images.example/train:1\n            env: [{name: BULK, value: "+bulk+"}]", 1)
		}
		manifest := large(alphaJob("large"))
		mustKubectl(ctx, manifest, append([]string{"create", "-n", ns, "-f", "-"}, args...)...)
		if len(args) > 0 {
			return
		}
		alpha := get(ctx, "v1alpha1", v1.TrainingJobKind, ns, "large")
		var written map[string]any
		Expect(yaml.Unmarshal([]byte(manifest), &written)).To(Succeed())
		expectContains(alpha.Object["spec"], written["spec"], "spec")
	},
		Entry("as much as etcd stores", 1_300_000),
		Entry("as much as the API server takes", 2_900_000, "--dry-run=server"),
	)
})
