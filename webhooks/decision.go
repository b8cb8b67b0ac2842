package webhooks

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// A Decision is what a Gate says to a request, and what it says it for.
type Decision struct {
	// Response is the answer to the API server.
	Response *admissionv1.AdmissionResponse
	// Causes are the causes of a refusal, those of the response in its order.
	// There are none where the request could not be judged.
	Causes []Cause
	// Warnings are the warnings of the response in its order.
	Warnings []Cause
	// NotEvaluated are the policies that need what is not known.
	NotEvaluated []policies.NotEvaluated
	// Verdicts are what the policies said, once for each shape of the object that
	// they were asked about.
	Verdicts []policies.Verdict
}

// A Cause is one thing to say of an object, in the paths of the kind and
// version that the request was made in.
type Cause struct {
	metav1.StatusCause
	// Policy is the policy that says it; empty for an invariant.
	Policy string
	// Fix is the part of the message that says what to write instead, where it
	// is known apart.
	Fix string
	// Yields says that it need not be said beside a policy that says it.
	Yields bool
	// Explanation says how a policy found it, where its engine explains.
	Explanation *policies.Explanation
}

// String is the cause in one line.
func (c Cause) String() string {
	if c.Field == "" {
		return c.Message
	}
	return c.Field + ": " + c.Message
}

// A judgement is what policies say of an object, and how the paths of the object
// they saw read in the one that was written.
type judgement struct {
	verdict policies.Verdict
	at      func(string) string
}

// decide makes the decision of the faults of an object, in v1 paths, and of what
// policies say of it. All faults are reported at
// once, each as a cause; kubectl prints causes only where the reason is Invalid,
// and other clients print the message only, so both say everything.
func decide(request *admissionv1.AdmissionRequest, faults []fault, judgements ...judgement) Decision {
	decision := Decision{Response: allowed(request), Causes: causesOf(request, faults)}
	response := decision.Response
	for _, j := range judgements {
		decision.Verdicts = append(decision.Verdicts, j.verdict)
		decision.NotEvaluated = append(decision.NotEvaluated, j.verdict.NotEvaluated...)
		decision.Causes = append(decision.Causes, j.causes(request)...)
		decision.Warnings = append(decision.Warnings, j.warnings()...)
	}
	for _, warning := range decision.Warnings {
		response.Warnings = append(response.Warnings, inOneLine(warning.String()))
	}
	decision.Causes = Unsaid(decision.Causes)
	response.AuditAnnotations = auditAnnotations(judgements)
	if len(decision.Causes) > 0 {
		response.Allowed = false
		response.Result = invalid(request, decision.Causes)
	}
	return decision
}

// Unsaid leaves out the causes that need not be said, as a policy says them of
// the same field, or of one below it.
func Unsaid(causes []Cause) []Cause {
	return slices.DeleteFunc(slices.Clone(causes), func(c Cause) bool {
		return c.Yields && slices.ContainsFunc(causes, func(other Cause) bool {
			rest, below := strings.CutPrefix(other.Field, c.Field)
			return other.Policy != "" && below && (rest == "" || rest[0] == '.' || rest[0] == '[')
		})
	})
}

// warn adds warnings that no policy gave, in v1 paths.
func (d *Decision) warn(request *admissionv1.AdmissionRequest, faults []fault) {
	for _, warning := range causesOf(request, faults) {
		d.Warnings = append(d.Warnings, warning)
		d.Response.Warnings = append(d.Response.Warnings, inOneLine(warning.String()))
	}
}

// inOneLine makes of a text one that may be sent as a warning: in the header of
// HTTP that it is sent in, nothing may break a line, and the API server drops what
// does. A rule may quote what stands in anybody's object.
func inOneLine(text string) string { return lineBreaks.Replace(text) }

var lineBreaks = strings.NewReplacer("\n", " ", "\t", " ")

// causesOf are the faults of an object of Penstock's own kinds.
func causesOf(request *admissionv1.AdmissionRequest, faults []fault) []Cause {
	if len(faults) == 0 {
		return nil
	}
	at := writtenPaths(request)
	found := make([]Cause, len(faults))
	for i, fault := range faults {
		cause := Cause{StatusCause: metav1.StatusCause{Type: fault.reason, Field: at(fault.field), Message: fault.message}, Yields: fault.yields}
		if cause.Field != fault.field {
			// What a schema says begins with the path again.
			cause.Message = strings.ReplaceAll(cause.Message, fault.field, cause.Field)
		}
		found[i] = cause
	}
	return found
}

// writtenPaths maps the paths of one of Penstock's own objects to those of the
// kind and version that the request was made in.
func writtenPaths(request *admissionv1.AdmissionRequest) func(string) string {
	return conversion.FieldPaths(requestKind(request), judgedObject(request))
}

func (j judgement) causes(request *admissionv1.AdmissionRequest) []Cause {
	var found []Cause
	for _, violation := range j.verdict.Denied() {
		cause := causeOf(violation, j.at)
		if cause.Field == "" {
			cause.Field = wholeOf(request)
		}
		found = append(found, cause)
	}
	for _, failure := range j.verdict.Failed() {
		cause := failed(failure)
		cause.Field = wholeOf(request)
		found = append(found, cause)
	}
	return found
}

func (j judgement) warnings() []Cause {
	var found []Cause
	for _, violation := range j.verdict.Warned() {
		found = append(found, causeOf(violation, j.at))
	}
	for _, expiring := range j.verdict.Expiring {
		found = append(found, Cause{StatusCause: metav1.StatusCause{Message: expiring.String()}, Policy: expiring.Policy})
	}
	for _, failure := range j.verdict.Errors {
		if failure.Action == v1.ActionWarn {
			found = append(found, failed(failure))
		}
	}
	return found
}

// wholeOf is the field of a cause that is about the whole object: kubectl prints
// none without one well.
func wholeOf(request *admissionv1.AdmissionRequest) string {
	var object struct {
		Spec jsontext.Value `json:"spec"`
	}
	if decodeTyped(judgedObject(request), &object) == nil && len(object.Spec) == 0 {
		return "metadata"
	}
	return "spec"
}

func causeOf(violation policies.Violation, at func(string) string) Cause {
	cause := Cause{Policy: violation.Policy, Fix: violation.Fix, Explanation: violation.Explanation}
	cause.Type, cause.Message = metav1.CauseTypeFieldValueInvalid, violation.String()
	if violation.Field != "" {
		cause.Field = at(violation.Field)
	}
	return cause
}

func failed(failure policies.PolicyError) Cause {
	cause := Cause{Policy: failure.Policy}
	cause.Type, cause.Message = metav1.CauseTypeFieldValueInvalid, failure.String()
	return cause
}

// judgedObject is the object that field paths are about.
func judgedObject(request *admissionv1.AdmissionRequest) []byte {
	if request.Operation == admissionv1.Delete {
		return request.OldObject.Raw
	}
	return request.Object.Raw
}

// noField is how the absent path is printed.
var noField = (*field.Path)(nil).String()

// toFaults gives the faults of errors; one without a field is of the whole spec.
func toFaults(errs field.ErrorList) []fault {
	faults := make([]fault, len(errs))
	for i, err := range errs {
		faults[i] = fault{field: err.Field, message: err.ErrorBody(), reason: metav1.CauseType(err.Type), yields: err.Origin == validation.MayBePolicy}
		if err.Field == "" || err.Field == noField {
			faults[i].field, faults[i].message = "spec", err.Detail
		}
	}
	return faults
}
