package policies_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

// A rule sees the request as it was made as well as what it was converted to, as
// the API server tells both.
func TestReviewTellsTheRequestAsItWasMade(t *testing.T) {
	const rego = `package p
violation contains sprintf("%s/%s %s of %s/%s %s%s", [
	r.requestKind.group, r.requestKind.version, r.requestKind.kind, r.requestResource.group, r.requestResource.version, r.requestResource.resource,
	object.get(r, "requestSubResource", ""),
]) if r := input.review
violation contains sprintf("in %s", [input.review._unstable.namespace.metadata.labels.tier]) if true
`
	engine := engineWith(t, policies.Options{}, policy("p", rego, func(spec *v1.WorkloadPolicySpec) {
		spec.Match.Resources = []v1.PolicyResources{{Group: "apps", Kinds: []string{"Deployment"}, Subresources: []string{"", "scale"}}}
	}))
	base := admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Namespace: "team", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(`{}`)},
	}
	for name, tc := range map[string]struct {
		mod  func(*admissionv1.AdmissionRequest)
		want string
	}{
		"as it is": {func(*admissionv1.AdmissionRequest) {}, "apps/v1 Deployment of apps/v1 deployments"},
		"in another version": {func(r *admissionv1.AdmissionRequest) {
			r.RequestKind = &metav1.GroupVersionKind{Group: "extensions", Version: "v1beta1", Kind: "Deployment"}
			r.RequestResource = &metav1.GroupVersionResource{Group: "extensions", Version: "v1beta1", Resource: "deployments"}
		}, "extensions/v1beta1 Deployment of extensions/v1beta1 deployments"},
		"of a subresource": {func(r *admissionv1.AdmissionRequest) { r.SubResource, r.RequestSubResource = "scale", "scale" }, "apps/v1 Deployment of apps/v1 deploymentsscale"},
	} {
		review := base
		tc.mod(&review)
		labels := func() (map[string]string, error) { return map[string]string{"tier": "research"}, nil }
		verdict := engine.Snapshot().Judge(t.Context(), policies.FromAdmission(&review, time.Unix(0, 0), labels))
		var got []string
		for _, violation := range verdict.Violations {
			got = append(got, violation.Message)
		}
		if diff := cmp.Diff([]string{tc.want, "in research"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s%v", name, diff, verdict.Errors)
		}
	}
}
