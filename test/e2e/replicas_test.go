package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/fixtures"
	"github.com/penstock-dev/penstock/test/install"
)

const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"e2e",
"kind":{"group":"penstock.dev","version":"v1","kind":"TrainingJob"},"resource":{"group":"penstock.dev","version":"v1","resource":"trainingjobs"},
"requestKind":{"group":"penstock.dev","version":"v1","kind":"TrainingJob"},"requestResource":{"group":"penstock.dev","version":"v1","resource":"trainingjobs"},
"operation":"CREATE","namespace":"default","name":"asked","userInfo":{"username":"e2e"},"object":%s}}`

var _ = Describe("two managers", Serial, func() {
	It("both serve webhooks, one reconciles, and the other takes over when it is stopped", func(ctx context.Context) {
		ns := newNamespace(ctx)
		first, firstHolder := manager, leader(ctx)
		metrics, err := cluster.FreePort()
		Expect(err).NotTo(HaveOccurred())
		port, err := cluster.FreePort()
		Expect(err).NotTo(HaveOccurred())
		options := install.Options{Port: port}
		metricsAddress := fmt.Sprintf("127.0.0.1:%d", metrics)
		second := startManager(ctx, options, "--metrics-bind-address="+metricsAddress)

		By("asking each of them")
		for _, options := range []install.Options{webhooks, options} {
			Expect(ask(ctx, options, manifest(fixtures.TrainingJob("asked", fixtures.Workers(1))))).To(ContainSubstring(`"allowed":true`))
			Expect(ask(ctx, options, manifest(fixtures.TrainingJob("asked", fixtures.Master(), fixtures.EachRole(func(r *v1.Role) { r.Replicas = new(int32(2)) }))))).
				To(And(ContainSubstring(`"allowed":false`), ContainSubstring("must be 1")))
		}

		By("running a job, of which the second sees nothing")
		submit(ctx, ns, "one", exits("0"), fixtures.Workers(1))
		eventuallyJob(ctx, ns, "one", inPhase(v1.PhaseSucceeded))
		submit(ctx, ns, "over", forever)
		eventuallyJob(ctx, ns, "over", allReady("2/2"))
		Expect(leader(ctx)).To(Equal(firstHolder))
		Expect(scrape(ctx, metricsAddress)).To(And(
			ContainSubstring("penstock_admission_duration_seconds"),
			Not(MatchRegexp(`controller_runtime_reconcile_total\{controller="trainingjob",[^}]*\} [1-9]`)),
		))

		By("stopping the leader")
		began := time.Now()
		first.Stop()
		Eventually(leader).WithContext(ctx).Should(And(Not(Equal(firstHolder)), Not(BeEmpty())))
		Expect(time.Since(began)).To(BeNumerically("<", 15*time.Second), "the lease is released, not waited for")
		Expect(install.Apply(ctx, control.Config, options)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			second.Stop()
			manager = startManager(ctx, webhooks)
			Expect(install.Apply(ctx, control.Config, webhooks)).To(Succeed())
		})
		Eventually(func(ctx context.Context) (string, error) {
			return kubectl(ctx, manifest(fixtures.TrainingJob("two", exits("0"), fixtures.Workers(1))), "apply", "-n", ns, "-f", "-")
		}).WithContext(ctx).Should(ContainSubstring("created"))
		eventuallyJob(ctx, ns, "two", inPhase(v1.PhaseSucceeded))
		pod := now(ctx, pods(ns, "over"))["over-worker-0"]
		mustKubectl(ctx, "", "delete", "-n", ns, "pod", pod.Name, "--wait=false")
		Eventually(pods(ns, "over")).WithContext(ctx).Should(HaveKeyWithValue(pod.Name, anotherUID(pod.UID)))
		Expect(scrape(ctx, metricsAddress)).To(MatchRegexp(`controller_runtime_reconcile_total\{controller="trainingjob",[^}]*\} [1-9]`))
	})
})

// leader is who holds the lease.
func leader(ctx context.Context) string {
	var lease coordinationv1.Lease
	if err := k8s.Get(ctx, client.ObjectKey{Namespace: install.Namespace, Name: "penstock-manager.penstock.dev"}, &lease); err != nil {
		return ""
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// ask posts a review of a job to the webhooks of one manager, as the API server
// would: by the CA bundle that it was given.
func ask(ctx context.Context, options install.Options, job string) string {
	GinkgoHelper()
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	Expect(k8s.Get(ctx, client.ObjectKey{Name: "penstock"}, &configuration)).To(Succeed())
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(configuration.Webhooks[0].ClientConfig.CABundle)).To(BeTrue())
	caller := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}
	url := fmt.Sprintf("https://localhost:%d/validate-penstock-dev-v1-trainingjob", options.Port)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(fmt.Appendf(nil, review, job)))
	Expect(err).NotTo(HaveOccurred())
	return do(&caller, request)
}

func scrape(ctx context.Context, address string) string {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	return do(http.DefaultClient, request)
}

func do(caller *http.Client, request *http.Request) string {
	GinkgoHelper()
	response, err := caller.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.StatusCode).To(Equal(http.StatusOK), string(body))
	return string(body)
}
