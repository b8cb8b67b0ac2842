package cel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-dev/penstock/webhooks/cel"
)

// Whoever follows a hint needs no second one, and a typo is none to guard.
func TestHowToMendConditionsThatFail(t *testing.T) {
	for expression, want := range map[string]string{
		"object.spec.nodeName == 'a'":                                 "guard it by has(object.spec.nodeName) && …",
		"object.metadata.labels.team == 'a'":                          "guard it by has(object.metadata.labels) && has(object.metadata.labels.team) && …",
		"object.metadata.labels['example.com/team'] == 'a'":           "guard it by has(object.metadata.labels) && 'example.com/team' in object.metadata.labels && …",
		"object.spec.containers.exists(c, c.resources.limits.a == 1)": "guard it by has(c.resources) && has(c.resources.limits) && has(c.resources.limits.a) && …",
		"object.spec.securityContext.runAsUser > 0":                   "guard it by has(object.spec.securityContext) && has(object.spec.securityContext.runAsUser) && …",
		"object.metadata.annotations['a/b'].startsWith('c')":          "guard it by has(object.metadata.annotations) && 'a/b' in object.metadata.annotations && …",
		"object.spec.schedulerName.startsWith('c')":                   "guard it by has(object.spec.schedulerName) && …",
		"object.metadata.nmae == 'a'":                                 "objects of kind Pod have no object.metadata.nmae: write object.metadata.name",
		"object.spec.containers.all(c, c.resorces.limits.a == 1)":     "objects of kind Pod have no c.resorces: write c.resources",
		"object.spec.template.spec.hostNetwork == true":               "objects of kind Pod have no object.spec.template: leave it out, or test request.kind.kind first if it is one of another kind",
		"oldObject.spec.nodeName != 'a'":                              cel.GuardOldObject,
		"object.metadata.name != oldObject.metadata.name":             cel.GuardOldObject,
		"object.data.a == 'b' || oldObject.data.a == 'b'":             "objects of kind Pod have no object.data: leave it out, or test request.kind.kind first if it is one of another kind",
		"object.metadata.name > 1":                                    "an operator or a function gets what it does not take, such as a number in place of a text or null: test it first, as in type(object.spec.x) == string && …, or convert it by string(…) or int(…)",
	} {
		for _, labels := range []string{"", `,"labels":{"a":"b"}`} {
			request := &admissionv1.AdmissionRequest{
				Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
				Operation: admissionv1.Create,
				Object:    runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"` + labels + `},"spec":{"containers":[{"name":"a"}]}}`)},
			}
			all := expressions(expression)
			_, err := cel.Hold(t.Context(), all, request, cel.Requester{Known: true})
			failed, ok := errors.AsType[*cel.Error](err)
			if !ok {
				t.Errorf("%s: got %v", expression, err)
				continue
			}
			if _, fix := failed.FailedCondition(); fix != want {
				t.Errorf("%s: got %q, want %q", expression, fix, want)
			}
		}
	}
}

// What costs too much is not mended by a guard.
func TestConditionsThatCostTooMuch(t *testing.T) {
	data := map[string]string{}
	for i := range 400 {
		data[fmt.Sprintf("key-%d", i)] = "x"
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": data})
	if err != nil {
		t.Fatal(err)
	}
	request := &admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	}
	_, err = cel.Hold(t.Context(), expressions("object.?data.orValue({}).all(a, object.data.all(b, object.data.all(c, a+b+c != 'x')))"), request, cel.Requester{Known: true})
	failed, ok := errors.AsType[*cel.Error](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	if fault, fix := failed.FailedCondition(); !strings.Contains(fault, "cost limit exceeded") || !strings.HasPrefix(fix, "it takes more than the API server lets conditions take: ") {
		t.Errorf("got %q: %q", fault, fix)
	}
}
