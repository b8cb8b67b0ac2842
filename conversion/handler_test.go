package conversion

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

func post(t *testing.T, h http.Handler, body string) (int, string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/convert", strings.NewReader(body)))
	return recorder.Code, recorder.Body.String()
}

func TestHandlerRefusesBodies(t *testing.T) {
	tests := map[string]struct {
		body string
		code int
		want string
	}{
		"empty":            {"", 400, "failed to read the ConversionReview"},
		"garbage":          {"\x00\x01garbage", 400, "failed to read the ConversionReview"},
		"truncated":        {`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"1"`, 400, "failed to read the ConversionReview"},
		"a list":           {`[]`, 400, "it must be a JSON object"},
		"two documents":    {`{"kind":"ConversionReview"}{}`, 400, "after the JSON object"},
		"another kind":     {`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, 400, "must be a ConversionReview"},
		"no request":       {`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}`, 400, "has no request"},
		"no version":       {`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"1","objects":[]}}`, 400, "desiredAPIVersion"},
		"objects no list":  {`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"1","desiredAPIVersion":"penstock.dev/v1","objects":5}}`, 400, "objects must be a list"},
		"wrong type":       {`{"kind":5,"apiVersion":{}}`, 400, "must be a ConversionReview"},
		"larger than 7 Mi": {`{"kind":"` + strings.Repeat("x", MaxBody) + `"}`, 413, "larger than"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			code, body := post(t, &Handler{}, tc.body)
			if code != tc.code || !strings.Contains(body, tc.want) {
				t.Errorf("got %d %q, want %d with %q", code, body, tc.code, tc.want)
			}
		})
	}
}

func TestHandlerAnswersWithTheUID(t *testing.T) {
	tests := map[string]struct {
		objects string
		want    string
	}{
		"no objects":      {``, ""},
		"an object":       {`{"apiVersion":"penstock.dev/v1alpha1","kind":"TrainingJob","metadata":{"name":"a"}}`, ""},
		"an unknown kind": {`{"apiVersion":"penstock.dev/v1alpha1","kind":"Job","metadata":{"namespace":"n","name":"a"}}`, `objects[0] (penstock.dev/v1alpha1 Job n/a)`},
		"no object":       {`5`, "it must be a JSON object"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			code, body := post(t, &Handler{}, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u-1","desiredAPIVersion":"penstock.dev/v1","objects":[`+tc.objects+`]}}`)
			var review apiextensionsv1.ConversionReview
			if err := json.Unmarshal([]byte(body), &review); err != nil || code != 200 {
				t.Fatalf("got %d %s: %v", code, body, err)
			}
			if review.Response.UID != "u-1" {
				t.Errorf("got uid %q", review.Response.UID)
			}
			if ok := review.Response.Result.Status == metav1.StatusSuccess; ok != (tc.want == "") || !strings.Contains(review.Response.Result.Message, tc.want) {
				t.Errorf("got %s, want %q", body, tc.want)
			}
		})
	}
}

// Specs are decoded while the review is read; whatever comes in whatever order,
// the answer is that of Convert.
func TestHandlerAgreesWithConvert(t *testing.T) {
	const spec = `"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":2,"template":{"spec":{"containers":[{"name":"a"}]}}}}}`
	alpha := func(rest string) string {
		return `{"apiVersion":"penstock.dev/v1alpha1","kind":"TrainingJob",` + rest + `}`
	}
	tests := map[string]string{
		"plain":                          alpha(spec),
		"the version last":               `{` + spec + `,"kind":"TrainingJob","apiVersion":"penstock.dev/v1alpha1"}`,
		"another version after the spec": alpha(`"metadata":{},` + spec + `,"apiVersion":"penstock.dev/v1"`),
		"another kind after the spec":    alpha(spec + `,"kind":"Job"`),
		"a version without a kind":       `{"apiVersion":"penstock.dev/v1alpha1",` + spec + `}`,
		"two specs":                      alpha(spec + `,"spec":{"jaxReplicaSpecs":{"Worker":{"replicas":3}}}`),
		"a null after the spec":          alpha(spec + `,"spec":null`),
		"an ill-typed spec before":       alpha(`"spec":{"jaxReplicaSpecs":[]},` + spec),
		"an ill-typed value":             alpha(`"metadata":{"name":"a"},"spec":{"jaxReplicaSpecs":{"Worker":{"replicas":"3"}}},"status":{"phase":"Running"}`),
		"an unknown field":               alpha(`"spec":{"jaxReplicaSpecs":{"Worker":{"replica":3}}}`),
		"an ill-typed spec":              alpha(`"spec":[1]`),
		"the annotation before":          alpha(`"metadata":{"annotations":{"penstock.dev/restore":"{\"set\":{\"/gang\":{\"scheduler\":\"volcano\"}}}"}},` + spec),
		"the annotation after":           alpha(spec + `,"metadata":{"annotations":{"penstock.dev/restore":"{\"set\":{\"/gang\":{\"scheduler\":\"volcano\"}}}"}}`),
		"a carried stand-in":             alpha(`"spec":{"mainContainer":"\u0000","jaxReplicaSpecs":{"Worker":{"template":{"a":"\u0000"}}}}`),
	}
	for name, object := range tests {
		t.Run(name, func(t *testing.T) {
			// The objects beside it are read by the same decoder.
			objects := alpha(spec) + "," + object + "," + alpha(spec)
			_, body := post(t, &Handler{}, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"penstock.dev/v1","objects":[`+objects+`]}}`)
			var answer apiextensionsv1.ConversionReview
			if err := json.Unmarshal([]byte(body), &answer); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			want, err := Convert([]byte(object), v1.GroupVersion)
			if err != nil {
				if message := answer.Response.Result.Message; !strings.Contains(message, "objects[1]") || !strings.Contains(message, err.Error()) {
					t.Errorf("got %q, want %q", message, err)
				}
				return
			}
			if len(answer.Response.ConvertedObjects) != 3 {
				t.Fatalf("got %s", body)
			}
			if got := answer.Response.ConvertedObjects[1].Raw; !sameMeaning(t, want, got) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func FuzzHandler(f *testing.F) {
	f.Add(`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"penstock.dev/v1","objects":[{"apiVersion":"penstock.dev/v1alpha1","kind":"TrainingJob","spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":"x"}}}}]}}`)
	f.Add(`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"objects":[{"metadata":[]}]}}`)
	f.Fuzz(func(t *testing.T, body string) {
		panicked := false
		code, _ := post(t, &Handler{Panicked: func(any, []byte) { panicked = true }}, body)
		if panicked || code >= 500 {
			t.Errorf("got %d, panicked %v", code, panicked)
		}
	})
}
