package webhooks

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/penstock-dev/penstock/policies"
)

// durations reach from what a copy costs to the longest timeout of a webhook.
var durations = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

var (
	admissionDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "penstock_admission_duration_seconds",
		Help:    "How long admission requests took, by kind, phase (default, validate) and outcome (allowed, refused, failed).",
		Buckets: durations,
	}, []string{"kind", "phase", "outcome"})
	conversionDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "penstock_conversion_duration_seconds",
		Help:    "How long conversion reviews took, by outcome (converted, failed).",
		Buckets: durations,
	}, []string{"outcome"})
	panics = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "penstock_webhook_panics_total",
		Help: "Panics that were recovered while answering, by phase (default, validate, convert).",
	}, []string{"phase"})
	decisionEvents = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "penstock_decision_log_events_total",
		Help: "Events of the decision log, by outcome (written, dropped, failed).",
	}, []string{"outcome"})
	policyEvaluations = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "penstock_policy_evaluations_total",
		Help: "Policies evaluated for requests, by policy and outcome.",
	}, []string{"policy", "outcome"})
	policyDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "penstock_policy_evaluation_duration_seconds",
		Help:    "How long policies took for a request, by policy.",
		Buckets: durations,
	}, []string{"policy"})
)

// What became of events of the decision log.
const (
	eventWritten = "written"
	eventDropped = "dropped"
	eventFailed  = "failed"
)

// RegisterMetrics adds the metrics of the webhooks to controller-runtime's
// registry. It is called once in a process.
func RegisterMetrics() {
	metrics.Registry.MustRegister(admissionDuration, conversionDuration, panics, decisionEvents, policyEvaluations, policyDuration)
}

// PolicyMetrics counts evaluations of policies.
type PolicyMetrics struct{}

var _ policies.Observer = PolicyMetrics{}

// Evaluated counts one policy judged for one request.
func (PolicyMetrics) Evaluated(policy string, outcome policies.Outcome, took time.Duration) {
	policyEvaluations.WithLabelValues(policy, string(outcome)).Inc()
	policyDuration.WithLabelValues(policy).Observe(took.Seconds())
}

// Removed drops the series of a policy that is gone.
func (PolicyMetrics) Removed(policy string) {
	policyEvaluations.DeletePartialMatch(prometheus.Labels{"policy": policy})
	policyDuration.DeletePartialMatch(prometheus.Labels{"policy": policy})
}
