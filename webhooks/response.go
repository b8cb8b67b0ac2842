package webhooks

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// badRequest answers a request that the API server would not have made.
func badRequest(request *admissionv1.AdmissionRequest, err error) *admissionv1.AdmissionResponse {
	return refused(request, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
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

func invalid(request *admissionv1.AdmissionRequest, found []Cause) *metav1.Status {
	kind := requestKind(request)
	causes, lines := make([]metav1.StatusCause, len(found)), make([]string, len(found))
	for i, cause := range found {
		causes[i], lines[i] = cause.StatusCause, cause.String()
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

// auditAnnotations say which policies of which snapshot were asked, and what
// they found, whatever came of it.
func auditAnnotations(judgements []judgement) map[string]string {
	var asked, found []string
	for _, j := range judgements {
		asked = append(asked, j.verdict.Judged...)
		for _, violation := range j.verdict.Violations {
			line := violation.String()
			if violation.Field != "" {
				line = j.at(violation.Field) + ": " + line
			}
			found = append(found, line)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	slices.Sort(asked)
	annotations := map[string]string{
		auditPolicies: strings.Join(slices.Compact(asked), ","),
		auditDigest:   judgements[0].verdict.Digest,
	}
	if len(found) > 0 {
		annotations[auditFound] = strings.Join(found, "\n")
	}
	return annotations
}
