package cel_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-dev/penstock/webhooks/cel"
)

// TestSent evaluates conditions as an API server does that sends them: it gives no
// object with a deletion, and a Scale with a write of scale.
func TestSent(t *testing.T) {
	raw := func(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }
	const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","labels":{"strict":"1"}},"spec":{"replicas":2}}`
	other := strings.Replace(deployment, "strict", "loose", 1)
	const strict = "'strict' in object.metadata.?labels.orValue({}) // as the team says"
	tests := map[string]struct {
		expression string
		request    admissionv1.AdmissionRequest
		want       bool
	}{
		"a creation":                    {strict, admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(deployment)}, true},
		"a creation of another":         {strict, admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(other)}, false},
		"an update reads both":          {"oldObject != object", admissionv1.AdmissionRequest{Operation: admissionv1.Update, Object: raw(deployment), OldObject: raw(other)}, true},
		"a deletion":                    {strict, admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: raw(deployment)}, true},
		"a deletion of another":         {strict, admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: raw(other)}, false},
		"a deletion reads both":         {"oldObject == object", admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: raw(deployment)}, true},
		"a scale":                       {strict, admissionv1.AdmissionRequest{Operation: admissionv1.Update, SubResource: "scale", Object: raw(`{"kind":"Scale","metadata":{"name":"a"}}`), OldObject: raw(`{"kind":"Scale"}`)}, true},
		"another subresource":           {strict, admissionv1.AdmissionRequest{Operation: admissionv1.Update, SubResource: "status", Object: raw(other), OldObject: raw(other)}, false},
		"a condition with two branches": {"false || " + strict, admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(other)}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.request.Kind = metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
			tc.request.Resource = metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
			holds, err := cel.HoldAsSent(t.Context(), cel.Sent(expressions(tc.expression), cel.Asked{Deletes: true, Scales: true}), &tc.request)
			if err != nil || holds != tc.want {
				t.Errorf("got %t, %v; want %t", holds, err, tc.want)
			}
		})
	}
}
