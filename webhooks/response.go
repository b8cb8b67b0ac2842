package webhooks

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
)

// Audit annotations of a response; the API server puts the webhook's name and
// a slash before them.
const (
	auditPolicies = "policies"
	auditDigest   = "snapshot-digest"
	auditFound    = "violations"
)

func allowed(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
}

func patched(request *admissionv1.AdmissionRequest, operations patch) *admissionv1.AdmissionResponse {
	patch, err := json.Marshal(operations)
	if err != nil {
		return broken(request, err)
	}
	response := allowed(request)
	kind := admissionv1.PatchTypeJSONPatch
	response.Patch, response.PatchType = patch, &kind
	return response
}

// broken answers a request that could not be judged.
func broken(request *admissionv1.AdmissionRequest, err error) *admissionv1.AdmissionResponse {
	return refused(request, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
}

func unknownKind(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return refused(request, http.StatusBadRequest, metav1.StatusReasonBadRequest,
		fmt.Sprintf("this webhook does not judge kind %q of group %q: correct the webhook configuration", request.Kind.Kind, request.Kind.Group))
}

func refused(request *admissionv1.AdmissionRequest, code int32, reason metav1.StatusReason, message string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{
		UID:    request.UID,
		Result: &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message},
	}
}

// answer makes the response of faults and verdict. All faults are reported at
// once, each as a cause; kubectl prints causes only where the reason is Invalid,
// and other clients print the message only, so both say everything.
func answer(request *admissionv1.AdmissionRequest, faults []fault, verdict policies.Verdict) *admissionv1.AdmissionResponse {
	at := conversion.FieldPaths(requestKind(request), judgedObject(request))
	response := allowed(request)
	response.Warnings = warnings(verdict, at)
	response.AuditAnnotations = auditAnnotations(verdict)

	var causes []metav1.StatusCause
	for _, fault := range faults {
		causes = append(causes, metav1.StatusCause{Type: fault.reason, Field: at(fault.field), Message: fault.message})
	}
	for _, violation := range verdict.Denied() {
		path := violation.Field
		if path == "" {
			path = "spec"
		}
		causes = append(causes, metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: at(path), Message: violation.String(),
		})
	}
	for _, failure := range verdict.Failed() {
		causes = append(causes, metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: "spec", Message: failure.String(),
		})
	}
	if len(causes) > 0 {
		response.Allowed = false
		response.Result = invalid(request, causes)
	}
	return response
}

func invalid(request *admissionv1.AdmissionRequest, causes []metav1.StatusCause) *metav1.Status {
	kind := requestKind(request)
	lines := make([]string, len(causes))
	for i, cause := range causes {
		lines[i] = cause.Field + ": " + cause.Message
	}
	said := lines[0]
	if len(lines) > 1 {
		said = "[" + strings.Join(lines, ", ") + "]"
	}
	return &metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("%s %q is invalid: %s", schema.GroupKind{Group: kind.Group, Kind: kind.Kind}, request.Name, said),
		Details: &metav1.StatusDetails{Group: kind.Group, Kind: kind.Kind, Name: request.Name, Causes: causes},
	}
}

// judgedObject is the object that field paths are about.
func judgedObject(request *admissionv1.AdmissionRequest) []byte {
	if request.Operation == admissionv1.Delete {
		return request.OldObject.Raw
	}
	return request.Object.Raw
}

func warnings(verdict policies.Verdict, at func(string) string) []string {
	var lines []string
	for _, violation := range verdict.Warned() {
		line := violation.String()
		if violation.Field != "" {
			line = at(violation.Field) + ": " + line
		}
		lines = append(lines, line)
	}
	for _, expiring := range verdict.Expiring {
		lines = append(lines, expiring.String())
	}
	for _, failure := range verdict.Errors {
		if failure.Action == v1.ActionWarn {
			lines = append(lines, failure.String())
		}
	}
	return lines
}

func auditAnnotations(verdict policies.Verdict) map[string]string {
	if len(verdict.Judged) == 0 {
		return nil
	}
	annotations := map[string]string{
		auditPolicies: strings.Join(verdict.Judged, ","),
		auditDigest:   verdict.Digest,
	}
	var found []string
	for _, violation := range verdict.Violations {
		found = append(found, violation.Field+": "+violation.String())
	}
	if len(found) > 0 {
		annotations[auditFound] = strings.Join(found, "\n")
	}
	return annotations
}

func toFaults(errs field.ErrorList) []fault {
	faults := make([]fault, len(errs))
	for i, err := range errs {
		faults[i] = fault{field: err.Field, message: err.ErrorBody(), reason: metav1.CauseType(err.Type)}
	}
	return faults
}
