package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/penstock-dev/penstock/test/install"
)

const caSecret = "penstock-webhook-ca"

// authority is the certificate of the authority in the Secret.
func authority(ctx context.Context) []byte {
	secret, err := clientset.CoreV1().Secrets(install.Namespace).Get(ctx, caSecret, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return secret.Data[corev1.TLSCertKey]
}

// servedBy says whether what the webhooks serve now was signed by an authority.
func servedBy(authority []byte) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return fmt.Errorf("there is no authority")
	}
	connection, err := tls.Dial("tcp", fmt.Sprintf("localhost:%d", webhooks.Port), &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	if err != nil {
		return err
	}
	return connection.Close()
}

// A load calls the webhooks until it is ended: through the API server, by
// creations in v1alpha1 that are dry runs, and by new connections of its own,
// which trust what the API server was told to trust a moment ago.
type load struct {
	stop     context.CancelFunc
	group    sync.WaitGroup
	requests atomic.Int64
	mu       sync.Mutex
	failures []string
}

func startLoad(ctx context.Context, ns string) *load {
	ctx, stop := context.WithCancel(ctx)
	l := &load{stop: stop}
	var manifest map[string]any
	Expect(yaml.Unmarshal([]byte(alphaJob("load")), &manifest)).To(Succeed())
	for range 4 {
		l.run(ctx, func() error {
			job := (&unstructured.Unstructured{Object: manifest}).DeepCopy()
			job.SetNamespace(ns)
			return k8s.Create(ctx, job, client.DryRunAll)
		})
	}
	var trusted []byte
	var since time.Time
	l.run(ctx, func() error {
		if time.Since(since) > time.Second {
			var configuration admissionregistrationv1.ValidatingWebhookConfiguration
			if err := k8s.Get(ctx, client.ObjectKey{Name: "penstock"}, &configuration); err != nil {
				return err
			}
			trusted, since = configuration.Webhooks[0].ClientConfig.CABundle, time.Now()
		}
		code, answer, err := call(ctx, caller(trusted), http.MethodPost, "/convert", conversionReview("penstock.dev/v1alpha1", "["+goodJob+"]"))
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("status %d: %s", code, answer)
		}
		return err
	})
	return l
}

func (l *load) run(ctx context.Context, once func() error) {
	l.group.Go(func() {
		defer GinkgoRecover()
		for ctx.Err() == nil {
			err := once()
			if ctx.Err() != nil {
				return
			}
			l.requests.Add(1)
			if err != nil {
				l.mu.Lock()
				l.failures = append(l.failures, err.Error())
				l.mu.Unlock()
			}
		}
	})
}

// end ends the load and gives what failed.
func (l *load) end() []string {
	l.stop()
	l.group.Wait()
	return l.failures
}

var _ = Describe("certificates", Serial, func() {
	DescribeTable("rotate without a failed call", func(ctx context.Context, change func(context.Context)) {
		ns := newNamespace(ctx, nil)
		old := authority(ctx)
		Expect(servedBy(old)).To(Succeed())
		before, began := webhookCalls(ctx), time.Now()
		load := startLoad(ctx, ns)
		DeferCleanup(load.stop)
		Eventually(load.requests.Load).WithContext(ctx).Should(BeNumerically(">", 20))

		change(ctx)
		Eventually(authority).WithContext(ctx).Should(And(Not(BeEmpty()), Not(Equal(old))))
		fresh := authority(ctx)
		Eventually(servedBy).WithContext(ctx).WithArguments(fresh).Should(Succeed())
		Expect(bundle(ctx)).To(ContainSubstring(string(old)), "leaves of the old authority may still be served elsewhere")
		// Some more calls on what is new.
		done := load.requests.Load()
		Eventually(load.requests.Load).WithContext(ctx).Should(BeNumerically(">", done+100))

		Expect(load.end()).To(BeEmpty())
		rate := (webhookCalls(ctx) - before) / time.Since(began).Seconds()
		AddReportEntry("webhook calls a second", rate)
		Expect(rate).To(BeNumerically(">", 100))
	},
		Entry("when the Secret of the authority is deleted", func(ctx context.Context) {
			Expect(clientset.CoreV1().Secrets(install.Namespace).Delete(ctx, caSecret, metav1.DeleteOptions{})).To(Succeed())
		}),
		Entry("when the Secret's contents are wiped", func(ctx context.Context) {
			mustKubectl(ctx, "", "patch", "secret", "-n", install.Namespace, caSecret, "--type=merge", "-p", `{"data":{"tls.crt":"","tls.key":"","ca.crt":""}}`)
		}),
	)

	It("are trusted again where a bundle was wiped", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		want := strings.TrimSpace(string(authority(ctx)))
		for _, name := range []string{"mutatingwebhookconfiguration/penstock", "validatingwebhookconfiguration/penstock", "crd/trainingjobs.penstock.dev"} {
			object := map[string]any{}
			Expect(yaml.Unmarshal([]byte(mustKubectl(ctx, "", "get", name, "-o", "yaml")), &object)).To(Succeed())
			metadata := object["metadata"].(map[string]any)
			object["metadata"] = map[string]any{"name": metadata["name"], "labels": metadata["labels"]}
			delete(object, "status")
			for _, config := range clientConfigs(object) {
				// What manifests hold for want of a bundle: an empty line. A CRD may
				// not have one.
				config["caBundle"] = "Cg=="
				if _, isCRD := object["spec"]; isCRD {
					config["caBundle"] = ""
				}
			}
			content, err := yaml.Marshal(object)
			Expect(err).NotTo(HaveOccurred())
			mustKubectl(ctx, string(content), "apply", "--server-side", "--force-conflicts", "-f", "-")
		}
		Eventually(func(g Gomega, ctx context.Context) {
			for _, found := range bundles(ctx, g) {
				g.Expect(string(found)).To(ContainSubstring(want))
			}
		}).WithContext(ctx).Should(Succeed())
		Eventually(func(ctx context.Context) (string, error) {
			return kubectl(ctx, alphaJob("trusted"), "apply", "-n", ns, "-f", "-")
		}).WithContext(ctx).Should(ContainSubstring("created"))
	})

	It("are of the same authority after a restart", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		old, trusted := authority(ctx), bundle(ctx)
		manager.Stop()
		Expect(servedBy(old)).NotTo(Succeed())
		startManager(ctx)
		Expect(servedBy(old)).To(Succeed())
		Expect(authority(ctx)).To(Equal(old))
		Expect(bundle(ctx)).To(Equal(trusted))
		mustKubectl(ctx, alphaJob("after"), "apply", "-n", ns, "-f", "-")
	})
})

// clientConfigs are the parts of a webhook configuration, or of a CRD, that say
// how the webhooks are called.
func clientConfigs(object map[string]any) []map[string]any {
	var configs []map[string]any
	entries, _ := object["webhooks"].([]any)
	for _, entry := range entries {
		configs = append(configs, entry.(map[string]any)["clientConfig"].(map[string]any))
	}
	if spec, ok := object["spec"].(map[string]any); ok {
		conversion := spec["conversion"].(map[string]any)["webhook"].(map[string]any)
		configs = append(configs, conversion["clientConfig"].(map[string]any))
	}
	return configs
}

// bundles are those of everything that calls the webhooks.
func bundles(ctx context.Context, g Gomega) [][]byte {
	var found [][]byte
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	g.Expect(k8s.Get(ctx, client.ObjectKey{Name: "penstock"}, &mutating)).To(Succeed())
	for _, webhook := range mutating.Webhooks {
		found = append(found, webhook.ClientConfig.CABundle)
	}
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	g.Expect(k8s.Get(ctx, client.ObjectKey{Name: "penstock"}, &validating)).To(Succeed())
	for _, webhook := range validating.Webhooks {
		found = append(found, webhook.ClientConfig.CABundle)
	}
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	g.Expect(k8s.Get(ctx, client.ObjectKey{Name: "trainingjobs.penstock.dev"}, definition)).To(Succeed())
	text, _, err := unstructured.NestedString(definition.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	g.Expect(err).NotTo(HaveOccurred())
	decoded, err := base64.StdEncoding.DecodeString(text)
	g.Expect(err).NotTo(HaveOccurred())
	return append(found, decoded)
}
