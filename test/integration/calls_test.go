package integration

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-dev/penstock/conversion"
)

// bundle is the CA bundle that the API server calls the validating webhooks by.
func bundle(ctx context.Context) []byte {
	GinkgoHelper()
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	Expect(k8s.Get(ctx, client.ObjectKey{Name: "penstock"}, &configuration)).To(Succeed())
	return configuration.Webhooks[0].ClientConfig.CABundle
}

// caller calls the webhooks as an API server with a CA bundle would, by a new
// connection for each call.
func caller(bundle []byte) *http.Client {
	GinkgoHelper()
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(bundle)).To(BeTrue())
	return &http.Client{
		Timeout: 15 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		},
	}
}

func webhookURL(path string) string {
	return fmt.Sprintf("https://localhost:%d%s", webhooks.Port, path)
}

// call sends a body and gives the status code and what was answered.
func call(ctx context.Context, caller *http.Client, method, path, body string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, method, webhookURL(path), strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := caller.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

// admissionReview asks about an object.
func admissionReview(kind, resource, object string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"the-uid",
"kind":{"group":"penstock.dev","version":"v1","kind":%[1]q},"resource":{"group":"penstock.dev","version":"v1","resource":%[2]q},
"requestKind":{"group":"penstock.dev","version":"v1","kind":%[1]q},"requestResource":{"group":"penstock.dev","version":"v1","resource":%[2]q},
"operation":"CREATE","namespace":"default","name":"asked","userInfo":{"username":"somebody","groups":["system:masters"]},"object":%[3]s}}`, kind, resource, object)
}

func conversionReview(desired, objects string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"the-uid","desiredAPIVersion":%q,"objects":%s}}`, desired, objects)
}

// An endpoint is a path with a review that it answers well, and how to make a
// review of any object for it.
type endpoint struct {
	path   string
	good   string
	review func(object string) string
}

const (
	goodJob    = `{"apiVersion":"penstock.dev/v1","kind":"TrainingJob","metadata":{"name":"asked","namespace":"default"},"spec":{"framework":"PyTorch","roles":[{"name":"Worker","replicas":1,"template":{"spec":{"containers":[{"name":"pytorch","image":"i"}]}}}]}}`
	goodPolicy = `{"apiVersion":"penstock.dev/v1","kind":"WorkloadPolicy","metadata":{"name":"asked"},"spec":{"match":{"resources":[{"group":"penstock.dev","kinds":["TrainingJob"]}]},"rego":"package asked\nviolation contains {\"msg\": \"no\"} if { false }\n"}}`
)

func endpoints() map[string]endpoint {
	jobs := func(object string) string { return admissionReview("TrainingJob", "trainingjobs", object) }
	policies := func(object string) string { return admissionReview("WorkloadPolicy", "workloadpolicies", object) }
	converts := func(object string) string { return conversionReview("penstock.dev/v1alpha1", "["+object+"]") }
	return map[string]endpoint{
		"defaulting of jobs":     {"/mutate-penstock-dev-v1-trainingjob", jobs(goodJob), jobs},
		"validation of jobs":     {"/validate-penstock-dev-v1-trainingjob", jobs(goodJob), jobs},
		"defaulting of policies": {"/mutate-penstock-dev-v1-workloadpolicy", policies(goodPolicy), policies},
		"validation of policies": {"/validate-penstock-dev-v1-workloadpolicy", policies(goodPolicy), policies},
		"conversion":             {"/convert", converts(goodJob), converts},
	}
}

// A verdict is what is common to the answers to both kinds of review.
type verdict struct {
	Response *struct {
		UID     string `json:"uid"`
		Allowed bool   `json:"allowed"`
		Status  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"status"`
		Result *struct {
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"result"`
	} `json:"response"`
}

func (v verdict) good() bool {
	return v.Response != nil && (v.Response.Allowed || v.Response.Result != nil && v.Response.Result.Status == "Success")
}

func (v verdict) message() string {
	switch {
	case v.Response == nil:
		return ""
	case v.Response.Status != nil:
		return v.Response.Status.Message
	case v.Response.Result != nil:
		return v.Response.Result.Message
	default:
		return ""
	}
}

func parseVerdict(answer string) verdict {
	GinkgoHelper()
	var v verdict
	Expect(json.Unmarshal([]byte(answer), &v)).To(Succeed(), answer)
	Expect(v.Response).NotTo(BeNil(), answer)
	Expect(v.Response.UID).To(Equal("the-uid"), answer)
	return v
}

var _ = Describe("a body that is sent to a webhook", func() {
	for name, endpoint := range endpoints() {
		Describe("for "+name, func() {
			It("is answered where it is a review", func(ctx context.Context) {
				code, answer, err := call(ctx, caller(bundle(ctx)), http.MethodPost, endpoint.path, endpoint.good)
				Expect(err).NotTo(HaveOccurred())
				Expect(code).To(Equal(http.StatusOK), answer)
				Expect(parseVerdict(answer).good()).To(BeTrue(), answer)
			})

			It("is turned away with a reason where it is none", func(ctx context.Context) {
				client := caller(bundle(ctx))
				for what, body := range map[string]string{
					"empty":                  "",
					"garbage":                "\x00\xff not JSON",
					"a list":                 "[]",
					"a number":               "5",
					"null":                   "null",
					"an object of no kind":   "{}",
					"another kind":           `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`,
					"of another version":     strings.NewReplacer("admission.k8s.io/v1", "admission.k8s.io/v1beta1", "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1").Replace(endpoint.good),
					"without a request":      strings.Split(endpoint.good, `,"request"`)[0] + "}",
					"with a request in text": strings.Split(endpoint.good, `"request":`)[0] + `"request":"please"}`,
					"cut in the middle":      endpoint.good[:len(endpoint.good)/2],
					"cut at the end":         endpoint.good[:len(endpoint.good)-1],
					"two of them":            endpoint.good + endpoint.good,
					"nested without end":     strings.Repeat(`{"a":`, 100_000),
					"a tower of lists":       `{"apiVersion":` + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000) + "}",
				} {
					code, answer, err := call(ctx, client, http.MethodPost, endpoint.path, body)
					Expect(err).NotTo(HaveOccurred(), what)
					Expect(code).To(Equal(http.StatusBadRequest), "%s: %s", what, answer)
					Expect(strings.TrimSpace(answer)).NotTo(BeEmpty(), what)
				}
			})

			It("is turned away with 413 where it is beyond 7 MiB", func(ctx context.Context) {
				body := endpoint.review(`{"kind":"` + strings.Repeat("x", 7<<20) + `"}`)
				code, answer, err := call(ctx, caller(bundle(ctx)), http.MethodPost, endpoint.path, body)
				Expect(err).NotTo(HaveOccurred())
				Expect(code).To(Equal(http.StatusRequestEntityTooLarge))
				Expect(answer).To(ContainSubstring("larger than"))
			})

			It("is turned away with 405 where it is not sent by POST", func(ctx context.Context) {
				for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
					code, _, err := call(ctx, caller(bundle(ctx)), method, endpoint.path, endpoint.good)
					Expect(err).NotTo(HaveOccurred())
					Expect(code).To(Equal(http.StatusMethodNotAllowed), method)
				}
			})

			It("is refused by its uid where it is a review of something else", func(ctx context.Context) {
				client := caller(bundle(ctx))
				for what, object := range map[string]string{
					"an unknown kind":        `{"apiVersion":"penstock.dev/v1","kind":"Surprise","metadata":{"name":"asked"}}`,
					"an unknown group":       `{"apiVersion":"example.com/v1","kind":"TrainingJob","metadata":{"name":"asked"}}`,
					"a number":               `5`,
					"a text":                 `"job"`,
					"a list":                 `[]`,
					"metadata that is text":  `{"apiVersion":"penstock.dev/v1","kind":"TrainingJob","metadata":"asked"}`,
					"spec that is a number":  `{"apiVersion":"penstock.dev/v1","kind":"TrainingJob","metadata":{"name":"asked"},"spec":7}`,
					"roles that are text":    `{"apiVersion":"penstock.dev/v1","kind":"TrainingJob","metadata":{"name":"asked"},"spec":{"framework":"PyTorch","roles":"two"}}`,
					"a role that is null":    `{"apiVersion":"penstock.dev/v1","kind":"TrainingJob","metadata":{"name":"asked"},"spec":{"framework":"PyTorch","roles":[null]}}`,
					"a template of numbers":  `{"apiVersion":"penstock.dev/v1","kind":"TrainingJob","metadata":{"name":"asked"},"spec":{"framework":"PyTorch","roles":[{"name":"Worker","template":{"spec":{"containers":[1,2]}}}]}}`,
					"replicas beyond bounds": `{"apiVersion":"penstock.dev/v1","kind":"TrainingJob","metadata":{"name":"asked"},"spec":{"framework":"PyTorch","roles":[{"name":"Worker","replicas":1e30}]}}`,
				} {
					code, answer, err := call(ctx, client, http.MethodPost, endpoint.path, endpoint.review(object))
					Expect(err).NotTo(HaveOccurred(), what)
					if code != http.StatusOK {
						Expect(code).To(And(BeNumerically(">=", 400), BeNumerically("<", 500)), "%s: %s", what, answer)
						continue
					}
					v := parseVerdict(answer)
					// The defaulter leaves what it cannot read to others, and conversion
					// carries what is ill-typed on to the API server's own refusal.
					if !v.good() {
						Expect(v.message()).NotTo(BeEmpty(), what)
						Expect(v.message()).NotTo(ContainSubstring("panicked"), what)
					} else {
						Expect(endpoint.path).NotTo(HavePrefix("/validate"), "%s is allowed: %s", what, answer)
					}
				}
				code, answer, err := call(ctx, client, http.MethodPost, endpoint.path, endpoint.good)
				Expect(err).NotTo(HaveOccurred())
				Expect(code).To(Equal(http.StatusOK), answer)
				Expect(parseVerdict(answer).good()).To(BeTrue(), "it still answers well")
			})
		})
	}

	It("is given up where it does not come to its end", func(ctx context.Context) {
		roots := x509.NewCertPool()
		Expect(roots.AppendCertsFromPEM(bundle(ctx))).To(BeTrue())
		answers := make(chan error)
		for _, endpoint := range endpoints() {
			go func() { answers <- stall(roots, endpoint) }()
		}
		for range endpoints() {
			Expect(<-answers).To(Succeed())
		}
	})

	It("is refused where it asks for a conversion to what is not served", func(ctx context.Context) {
		for _, desired := range []string{"penstock.dev/v2", "example.com/v1", "v1", "a/b/c", ""} {
			code, answer, err := call(ctx, caller(bundle(ctx)), http.MethodPost, "/convert", conversionReview(desired, "["+goodJob+"]"))
			Expect(err).NotTo(HaveOccurred())
			if code == http.StatusOK {
				Expect(parseVerdict(answer).good()).To(BeFalse(), "%s: %s", desired, answer)
			} else {
				Expect(code).To(Equal(http.StatusBadRequest), answer)
			}
		}
	})
})

// stall sends the first half of a review, and then waits for an answer: which
// must be 400.
func stall(roots *x509.CertPool, endpoint endpoint) error {
	address := fmt.Sprintf("localhost:%d", webhooks.Port)
	connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(conversion.BodyWait + 5*time.Second)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s",
		endpoint.path, len(endpoint.good), endpoint.good[:len(endpoint.good)/2])
	if err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return fmt.Errorf("%s: %w", endpoint.path, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		return fmt.Errorf("%s answered %s", endpoint.path, response.Status)
	}
	return nil
}
