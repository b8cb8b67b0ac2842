package webhooks_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks"
)

const (
	mutateJobs   = "/mutate-penstock-dev-v1-trainingjob"
	validateJobs = "/validate-penstock-dev-v1-trainingjob"
)

// routes are handlers by path.
type routes map[string]http.Handler

func (r routes) Register(path string, handler http.Handler) { r[path] = handler }

func served(gate *webhooks.Gate) routes {
	paths := routes{}
	webhooks.Setup(paths, gate, logr.Discard())
	return paths
}

func (r routes) post(ctx context.Context, target, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(body))
	recorder := httptest.NewRecorder()
	r[request.URL.Path].ServeHTTP(recorder, request)
	return recorder
}

func reviewOf(t testing.TB, request *admissionv1.AdmissionRequest) string {
	t.Helper()
	review := admissionv1.AdmissionReview{Request: request}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	raw, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func responseOf(t testing.TB, recorder *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
	t.Helper()
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil {
		t.Fatalf("%v: %s", err, recorder.Body)
	}
	if recorder.Code != http.StatusOK || review.Kind != "AdmissionReview" || review.APIVersion != "admission.k8s.io/v1" ||
		review.Response == nil || review.Request != nil {
		t.Fatalf("got %d %s, want a review with a response", recorder.Code, recorder.Body)
	}
	return review.Response
}

func TestPathsAreThoseOfTheConfigurations(t *testing.T) {
	paths := served(onlineGate(t))
	got := map[string]bool{}
	for path := range paths {
		got[path] = true
	}
	want := map[string]bool{
		mutateJobs: true, validateJobs: true, "/convert": true, webhooks.JudgePath: true, webhooks.ProbePath: true,
		"/mutate-penstock-dev-v1-raycluster": true, "/validate-penstock-dev-v1-raycluster": true,
		"/mutate-penstock-dev-v1-workloadpolicy": true, "/validate-penstock-dev-v1-workloadpolicy": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestServeReviews(t *testing.T) {
	paths := served(onlineGate(t))
	request := create(t, job(pytorch(role("Boss", "", ""))))
	response := responseOf(t, paths.post(t.Context(), validateJobs+"?timeout=10s", reviewOf(t, request)))
	if response.Allowed || response.UID != request.UID || len(causesOf(response)) == 0 {
		t.Errorf("got %+v, want a refusal with the uid of the request", response)
	}
	request = create(t, job(pytorch(role("Worker", "", ""))))
	response = responseOf(t, paths.post(t.Context(), mutateJobs, reviewOf(t, request)))
	if !response.Allowed || len(response.Patch) == 0 || response.UID != request.UID {
		t.Errorf("got %+v, want a patch with the uid of the request", response)
	}
}

func TestBodiesThatAreNoReview(t *testing.T) {
	good := reviewOf(t, create(t, job(pytorch(role("Worker", "", "")))))
	tests := map[string]struct {
		method, body string
		want         int
		wantText     string
	}{
		"another method":            {http.MethodGet, good, http.StatusMethodNotAllowed, "by POST"},
		"nothing":                   {http.MethodPost, "", http.StatusBadRequest, "failed to read the AdmissionReview"},
		"no JSON":                   {http.MethodPost, "a: b", http.StatusBadRequest, "failed to read the AdmissionReview"},
		"half of a review":          {http.MethodPost, good[:len(good)/2], http.StatusBadRequest, "failed to read the AdmissionReview"},
		"more after a review":       {http.MethodPost, good + "{}", http.StatusBadRequest, "failed to read the AdmissionReview"},
		"a list":                    {http.MethodPost, "[]", http.StatusBadRequest, "failed to read the AdmissionReview"},
		"null":                      {http.MethodPost, "null", http.StatusBadRequest, "must be an AdmissionReview"},
		"a review of conversion":    {http.MethodPost, strings.Replace(good, "AdmissionReview", "ConversionReview", 1), http.StatusBadRequest, "must be an AdmissionReview of admission.k8s.io/v1"},
		"a review of an older kind": {http.MethodPost, strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), http.StatusBadRequest, "must be an AdmissionReview of admission.k8s.io/v1"},
		"a review without request":  {http.MethodPost, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, http.StatusBadRequest, "has no request"},
		"more than the API server sends": {
			http.MethodPost, `{"kind":"` + strings.Repeat("x", conversion.MaxBody) + `"}`, http.StatusRequestEntityTooLarge, "larger than 7340032 bytes",
		},
	}
	paths := served(onlineGate(t))
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), tc.method, validateJobs, strings.NewReader(tc.body))
			recorder := httptest.NewRecorder()
			paths[validateJobs].ServeHTTP(recorder, request)
			if recorder.Code != tc.want || !strings.Contains(recorder.Body.String(), tc.wantText) {
				t.Errorf("got %d %s, want %d and %q", recorder.Code, recorder.Body, tc.want, tc.wantText)
			}
		})
	}
}

// deadlines is a world that reads no namespace, but how long it may take.
type deadlines struct {
	world
	left *time.Duration
}

func (d deadlines) NamespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	if deadline, ok := ctx.Deadline(); ok {
		*d.left = time.Until(deadline)
	}
	return d.world.NamespaceLabels(ctx, name)
}

func (d deadlines) Object(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) ([]byte, error) {
	if deadline, ok := ctx.Deadline(); ok {
		*d.left = time.Until(deadline)
	}
	return d.world.Object(ctx, kind, namespace, name)
}

func TestTimeToAnswer(t *testing.T) {
	tests := map[string]struct {
		query string
		want  time.Duration
	}{
		"what the API server waits, less a tenth":   {"?timeout=20s", 18 * time.Second},
		"nothing said is ten seconds":               {"", 9 * time.Second},
		"what is no duration is ten seconds":        {"?timeout=soon", 9 * time.Second},
		"a number without a unit is ten seconds":    {"?timeout=3", 9 * time.Second},
		"a negative time to wait is ten seconds":    {"?timeout=-1s", 9 * time.Second},
		"more than the API server waits is bounded": {"?timeout=1000h", 27 * time.Second},
	}
	var left time.Duration
	options := onlineOptions(t)
	options.Cluster = deadlines{world{}, &left}
	paths := served(gateOf(t, options))
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			responseOf(t, paths.post(t.Context(), validateJobs+tc.query, reviewOf(t, scaleOf("a", "1"))))
			if late := tc.want - left; late < 0 || late > 5*time.Second {
				t.Errorf("got %v left, want a little less than %v", left, tc.want)
			}
		})
	}
}

// A policy that runs out of time answers by its failure policy, in time.
func TestNoTimeLeft(t *testing.T) {
	request := create(t, job(pytorch(role("Worker", "", ""))))
	response := responseOf(t, served(onlineGate(t)).post(t.Context(), validateJobs+"?timeout=1ns", reviewOf(t, request)))
	if response.Allowed || response.UID != request.UID || response.Result.Code != http.StatusUnprocessableEntity {
		t.Errorf("got %+v, want a refusal by the failure policy", response)
	}
}

// panicking is a world that breaks.
type panicking struct{ world }

func (panicking) Object(context.Context, schema.GroupVersionKind, string, string) ([]byte, error) {
	panic("the world ends")
}

func TestPanicsAreAnsweredAndCounted(t *testing.T) {
	options := onlineOptions(t)
	options.Cluster = panicking{}
	paths := served(gateOf(t, options))
	before := value(t, "penstock_webhook_panics_total", "validate")
	response := responseOf(t, paths.post(t.Context(), validateJobs, reviewOf(t, scaleOf("a", "1"))))
	if response.Allowed || response.UID != "2" || response.Result.Code != http.StatusInternalServerError ||
		!strings.Contains(response.Result.Message, "fault in Penstock") {
		t.Errorf("got %+v, want it refused for a fault in Penstock", response)
	}
	if strings.Contains(response.Result.Message, "the world ends") {
		t.Errorf("the response tells what is inside: %s", response.Result.Message)
	}
	if got := value(t, "penstock_webhook_panics_total", "validate") - before; got != 1 {
		t.Errorf("counted %v panics, want 1", got)
	}
}

func init() { webhooks.RegisterMetrics() }

// series gives the label sets of a metric, and the value or count of each.
func series(t testing.TB, name string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.(prometheus.Gatherer).Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, pair := range metric.GetLabel() {
				labels = append(labels, pair.GetValue())
			}
			found[strings.Join(labels, ",")] = metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return found
}

// The table of metrics in docs is complete.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	webhooks.PolicyMetrics{}.Evaluated("p", policies.OutcomePassed, time.Second)
	families, err := metrics.Registry.(prometheus.Gatherer).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if name := family.GetName(); strings.HasPrefix(name, "penstock_") && !strings.Contains(string(text), "| `"+name+"` |") {
			t.Errorf("docs/operations.md says nothing of %s", name)
		}
	}
}

func value(t testing.TB, name, labels string) float64 {
	t.Helper()
	return series(t, name)[labels]
}

// Whoever reaches the port chooses what a request says, and must not be able to
// make as many series as he likes.
func TestMetricsHaveClosedSets(t *testing.T) {
	paths := served(onlineGate(t))
	good := create(t, job(pytorch(role("Worker", "", ""))))
	alien := create(t, job(pytorch(role("Worker", "", ""))), func(request *admissionv1.AdmissionRequest) {
		request.Kind.Kind, request.Name, request.UserInfo.Username = "Kind-of-nobody", "name-of-nobody", "nobody"
	})
	for _, request := range []*admissionv1.AdmissionRequest{good, alien, create(t, job(pytorch(role("Boss", "", "")))), scaleOf("a", "1")} {
		for _, path := range []string{mutateJobs, validateJobs} {
			responseOf(t, paths.post(t.Context(), path, reviewOf(t, request)))
		}
	}
	conversionReview := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"penstock.dev/v1","objects":[]}}`
	paths.post(t.Context(), webhooks.ConvertPath, conversionReview)
	allowed := map[string][]string{
		"penstock_admission_duration_seconds": {
			"TrainingJob,allowed,default", "TrainingJob,refused,default", "TrainingJob,failed,default",
			"TrainingJob,allowed,validate", "TrainingJob,refused,validate", "TrainingJob,failed,validate",
		},
		"penstock_conversion_duration_seconds": {"converted", "failed"},
		"penstock_webhook_panics_total":        {"default", "validate", "convert"},
	}
	for name, sets := range allowed {
		found := series(t, name)
		for _, labels := range sets {
			delete(found, labels)
		}
		if len(found) > 0 {
			t.Errorf("%s has unexpected series: %v", name, found)
		}
	}
	if value(t, "penstock_admission_duration_seconds", "TrainingJob,allowed,validate") == 0 ||
		value(t, "penstock_conversion_duration_seconds", "converted") == 0 {
		t.Error("what was answered is not counted")
	}
}
