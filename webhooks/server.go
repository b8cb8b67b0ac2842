package webhooks

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/penstock-dev/penstock/conversion"
)

// Phases of admission, as metrics name them.
const (
	phaseDefault  = "default"
	phaseValidate = "validate"
	phaseConvert  = "convert"
)

const (
	// usualWait is how long the API server waits when it does not say so.
	usualWait = 10 * time.Second
	// longestWait is its longest timeout of a webhook.
	longestWait = 30 * time.Second
)

// handler answers the AdmissionReviews of one path. A body that is no review
// gets status 400, one beyond conversion.MaxBody 413; a review is answered by
// a review with its uid, whatever happens.
type handler struct {
	// kind and phase that metrics are kept by. Those of the request would let
	// anyone who reaches the port make as many series as he likes.
	kind, phase string

	decide func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
	log    logr.Logger
}

func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	start := time.Now()
	request, code, err := readReview(w, req)
	if err != nil {
		http.Error(w, err.Error(), code)
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), timeLeft(req))
	defer cancel()
	response := h.answer(ctx, request)
	outcome := "allowed"
	switch {
	case response.Allowed:
	case response.Result != nil && response.Result.Code >= http.StatusInternalServerError:
		outcome = "failed"
	default:
		outcome = "refused"
	}
	admissionDuration.WithLabelValues(h.kind, h.phase, outcome).Observe(time.Since(start).Seconds())
	writeReview(w, response)
}

// answer decides, and turns a panic into a refusal that says so.
func (h *handler) answer(ctx context.Context, request *admissionv1.AdmissionRequest) (response *admissionv1.AdmissionResponse) {
	defer func() {
		if value := recover(); value != nil {
			panics.WithLabelValues(h.phase).Inc()
			h.log.Error(fmt.Errorf("panic: %v", value), "Recovered from a panic", "requestID", request.UID, "stack", string(debug.Stack()))
			response = broken(request, errors.New("Penstock panicked on this request; this is a fault in Penstock, not in the object")) //nolint:staticcheck // Penstock is a name.
		}
	}()
	return h.decide(ctx, request)
}

// readReview reads the request of an AdmissionReview, or gives the status code
// to answer with.
func readReview(w http.ResponseWriter, req *http.Request) (*admissionv1.AdmissionRequest, int, error) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, http.StatusMethodNotAllowed, errors.New("an AdmissionReview must be sent by POST")
	}
	body, err := conversion.ReadBody(w, req)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the AdmissionReview is larger than %d bytes", conversion.MaxBody)
	}
	if err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("failed to read the AdmissionReview: %w", err)
	}
	var review admissionv1.AdmissionReview
	if err := decodeTyped(body, &review); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("failed to read the AdmissionReview: %w", err)
	}
	if review.Kind != "AdmissionReview" || review.APIVersion != admissionv1.SchemeGroupVersion.String() {
		return nil, http.StatusBadRequest, fmt.Errorf("the body must be an AdmissionReview of %s, not kind %q of %q",
			admissionv1.SchemeGroupVersion, review.Kind, review.APIVersion)
	}
	if review.Request == nil {
		return nil, http.StatusBadRequest, errors.New("the AdmissionReview has no request")
	}
	return review.Request, 0, nil
}

// timeLeft is how long an answer may take: what the API server says it waits,
// less a tenth for the way back.
func timeLeft(req *http.Request) time.Duration {
	wait, err := time.ParseDuration(req.URL.Query().Get("timeout"))
	if err != nil || wait <= 0 {
		wait = usualWait
	}
	wait = min(wait, longestWait)
	return wait - wait/10
}

func writeReview(w http.ResponseWriter, response *admissionv1.AdmissionResponse) {
	review := admissionv1.AdmissionReview{Response: response}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := stdjson.Marshal(review)
	if err != nil {
		http.Error(w, fmt.Sprintf("failed to write the AdmissionReview: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// A client that is gone cannot be told.
	_, _ = w.Write(body)
}
