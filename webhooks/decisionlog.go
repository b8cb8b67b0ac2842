package webhooks

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/penstock-dev/penstock/policies"
)

// Bounds of what waits to be written.
const (
	decisionsWaiting     = 1024
	decisionBytesWaiting = 32 << 20
)

// A DecisionLog writes what policies said to requests, one JSON object a line,
// in the format of OPA's decision log events. Writing is done beside requests:
// what comes faster than it can be written is dropped, and counted.
type DecisionLog struct {
	options DecisionLogOptions
	queue   chan *loggedDecision
	// waiting is how many bytes the queue holds.
	waiting atomic.Int64
}

// DecisionLogOptions say what a DecisionLog writes, and where to.
type DecisionLogOptions struct {
	Output io.Writer
	// Labels are those of every event: what tells this process from others.
	Labels map[string]string
	// AllowedRate is the part of the requests without any finding that is
	// written, from 0 to 1. All others are.
	AllowedRate float64
	Mask        Mask
	Clock       func() time.Time
	Log         logr.Logger
}

// loggedDecision is a request and what was said to it.
type loggedDecision struct {
	request  *admissionv1.AdmissionRequest
	decision Decision
	at       time.Time
	took     time.Duration
}

func (d *loggedDecision) size() int64 {
	return int64(len(d.request.Object.Raw) + len(d.request.OldObject.Raw))
}

// NewDecisionLog makes a log, which writes once it is started.
func NewDecisionLog(options DecisionLogOptions) *DecisionLog {
	return &DecisionLog{options: options, queue: make(chan *loggedDecision, decisionsWaiting)}
}

// NeedLeaderElection is false: every replica judges requests.
func (*DecisionLog) NeedLeaderElection() bool { return false }

// Log has a decision written if it is one to write. It does not wait. The request
// must not be changed afterwards.
func (l *DecisionLog) Log(request *admissionv1.AdmissionRequest, decision Decision, took time.Duration) {
	if !decision.judged() || !l.samples(request, &decision) {
		return
	}
	logged := &loggedDecision{request: request, decision: decision, at: l.options.Clock(), took: took}
	size := logged.size()
	if l.waiting.Add(size) > decisionBytesWaiting {
		l.waiting.Add(-size)
		decisionEvents.WithLabelValues(eventDropped).Inc()
		return
	}
	select {
	case l.queue <- logged:
	default:
		l.waiting.Add(-size)
		decisionEvents.WithLabelValues(eventDropped).Inc()
	}
}

// judged reports whether some policy was asked.
func (d *Decision) judged() bool {
	for _, verdict := range d.Verdicts {
		if len(verdict.Judged)+len(verdict.Errors)+len(verdict.NotEvaluated) > 0 {
			return true
		}
	}
	return false
}

// clean reports whether there is nothing to say of a request but that it is
// allowed.
func (d *Decision) clean() bool {
	if !d.Response.Allowed || len(d.Response.Warnings) > 0 {
		return false
	}
	for _, verdict := range d.Verdicts {
		if len(verdict.Violations)+len(verdict.Errors)+len(verdict.Expiring) > 0 {
			return false
		}
	}
	return true
}

// samples reports whether a decision is one to write. Which of the clean ones are
// is up to their UID, which is random.
func (l *DecisionLog) samples(request *admissionv1.AdmissionRequest, decision *Decision) bool {
	if !decision.clean() {
		return true
	}
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, string(request.UID))
	// The last rounds of the hash are in its lower bits.
	return float64(hash.Sum32()&math.MaxUint16) < l.options.AllowedRate*(math.MaxUint16+1)
}

// Start writes until ctx ends, and what waits then.
func (l *DecisionLog) Start(ctx context.Context) error {
	out := bufio.NewWriterSize(l.options.Output, 64<<10)
	for {
		select {
		case logged := <-l.queue:
			l.write(out, logged)
			continue
		default:
		}
		if err := out.Flush(); err != nil {
			l.failed(err)
			out.Reset(l.options.Output)
		}
		select {
		case logged := <-l.queue:
			l.write(out, logged)
		case <-ctx.Done():
			if len(l.queue) == 0 {
				return nil
			}
		}
	}
}

func (l *DecisionLog) write(out *bufio.Writer, logged *loggedDecision) {
	defer l.waiting.Add(-logged.size())
	event, err := l.event(logged)
	if err != nil {
		l.failed(err)
		return
	}
	if _, err := out.Write(append(event, '\n')); err != nil {
		l.failed(err)
		out.Reset(l.options.Output)
		return
	}
	decisionEvents.WithLabelValues(eventWritten).Inc()
}

func (l *DecisionLog) failed(err error) {
	decisionEvents.WithLabelValues(eventFailed).Inc()
	l.options.Log.Error(err, "Failed to write a decision")
}

// decisionPath is what OPA calls the path of a decision: of which document of
// the policies it is.
const decisionPath = "penstock/admission"

// decisionEvent is an event of OPA's decision log. Its fields have the names and
// the meaning that they have there; docs/operations.md says which are used.
type decisionEvent struct {
	Labels     map[string]string            `json:"labels"`
	DecisionID string                       `json:"decision_id"`
	Bundles    map[string]map[string]string `json:"bundles,omitempty"`
	Path       string                       `json:"path"`
	Input      map[string]any               `json:"input"`
	Result     decisionResult               `json:"result"`
	Erased     []string                     `json:"erased,omitempty"`
	Masked     []string                     `json:"masked,omitempty"`
	Timestamp  time.Time                    `json:"timestamp"`
	Metrics    map[string]int64             `json:"metrics"`
}

// decisionResult is what was decided, and by whom.
type decisionResult struct {
	Allowed      bool             `json:"allowed"`
	Code         int32            `json:"code,omitempty"`
	Message      string           `json:"message,omitempty"`
	Warnings     []string         `json:"warnings,omitempty"`
	Judged       []string         `json:"judged,omitempty"`
	Violations   []decisionFault  `json:"violations,omitempty"`
	Tolerated    []decisionFault  `json:"tolerated,omitempty"`
	Expiring     []string         `json:"expiring,omitempty"`
	Errors       []decisionFailed `json:"errors,omitempty"`
	NotEvaluated []string         `json:"notEvaluated,omitempty"`
}

type decisionFault struct {
	Policy  string `json:"policy"`
	Action  string `json:"action"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
	Fix     string `json:"fix,omitempty"`
}

type decisionFailed struct {
	Policy  string `json:"policy"`
	Action  string `json:"action"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (l *DecisionLog) event(logged *loggedDecision) ([]byte, error) {
	masked, err := l.options.Mask.apply(inputOf(logged.request), logged.request)
	if err != nil {
		return nil, fmt.Errorf("failed to read the request %s: %w", logged.request.UID, err)
	}
	event := decisionEvent{
		Labels: l.options.Labels, DecisionID: string(logged.request.UID), Path: decisionPath, Input: masked.input,
		Result: resultOf(&logged.decision, masked.hide), Erased: masked.erased, Masked: masked.masked,
		Timestamp: logged.at.UTC(), Metrics: map[string]int64{"timer_server_handler_ns": logged.took.Nanoseconds()},
	}
	for _, verdict := range logged.decision.Verdicts {
		event.Bundles = map[string]map[string]string{"policies": {"revision": verdict.Digest}}
	}
	return json.Marshal(event)
}

// resultOf is the result of a decision; hide takes out of a text what is masked in
// the input.
func resultOf(decision *Decision, hide func(string) string) decisionResult {
	result := decisionResult{Allowed: decision.Response.Allowed}
	if status := decision.Response.Result; status != nil {
		result.Code, result.Message = status.Code, hide(status.Message)
	}
	for _, warning := range decision.Response.Warnings {
		result.Warnings = append(result.Warnings, hide(warning))
	}
	faults := func(found []policies.Violation) (all []decisionFault) {
		for _, one := range found {
			all = append(all, decisionFault{one.Policy, string(one.Action), hide(one.Message), hide(one.Field), hide(one.Fix)})
		}
		return all
	}
	for _, verdict := range decision.Verdicts {
		result.Judged = append(result.Judged, verdict.Judged...)
		result.Violations = append(result.Violations, faults(verdict.Violations)...)
		result.Tolerated = append(result.Tolerated, faults(verdict.Tolerated)...)
		for _, one := range verdict.Expiring {
			result.Expiring = append(result.Expiring, hide(one.String()))
		}
		for _, one := range verdict.Errors {
			result.Errors = append(result.Errors, decisionFailed{one.Policy, string(one.Action), string(one.Reason), hide(one.Message)})
		}
		for _, one := range verdict.NotEvaluated {
			result.NotEvaluated = append(result.NotEvaluated, one.Policy)
		}
	}
	return result
}

// inputOf is the request as rules see it, without its objects.
func inputOf(request *admissionv1.AdmissionRequest) map[string]any {
	return map[string]any{
		"operation": string(request.Operation), "user": request.UserInfo,
		"kind": request.Kind, "resource": request.Resource, "subResource": request.SubResource,
		"namespace": request.Namespace, "name": request.Name, "dryRun": request.DryRun != nil && *request.DryRun,
	}
}
