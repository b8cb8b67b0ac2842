package webhooks_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func TestDefault(t *testing.T) {
	const port = ", ports: [{name: pytorchjob-port, containerPort: 23456, protocol: TCP}]"
	full := strings.Replace(pytorch(role("Worker", ", replicas: 1, restartPolicy: OnFailure", port)), "{",
		"{runPolicy: {suspend: false, cleanPodPolicy: None}, pytorch: {processesPerNode: auto}, ", 1)
	tests := map[string]struct {
		object string
		mods   []mod
		// want is the spec with its defaults; the same as it was when empty.
		want string
	}{
		"a job that leaves everything out is spelt out": {
			object: job(pytorch(role("Worker", "", ""))), want: full,
		},
		"a job that says everything is left as it is": {object: job(full)},
		"nulls go, as they ask for nothing": {
			object: job(strings.Replace(full, "{", "{gang: null, elastic: null, ", 1)), want: full,
		},
		"a null beside what is said goes too": {
			object: job(strings.Replace(full, "imag", "command: null, imag", 1)), want: full,
		},
		"what a Go type cannot hold stays for validation to name": {
			object: job(pytorch(role("Worker", "", ", imge: a"))),
			want:   strings.Replace(full, "ports", "imge: a, ports", 1),
		},
		"what a Go type writes in other words stays in those of its author": {
			object: job(strings.Replace(full, port, port+`, resources: {requests: {cpu: "1000m", memory: 1024Mi}}`, 1)),
		},
		"a role in another case gets its name and keeps its words": {
			object: job(strings.Replace(strings.Replace(full, "Worker", "WORKER", 1), port, port+`, resources: {requests: {cpu: "1000m"}}`, 1)),
			want:   strings.Replace(full, port, port+`, resources: {requests: {cpu: "1000m"}}`, 1),
		},
		"a limit of devices is made the request as well": {
			object: job(strings.Replace(full, port, port+", resources: {limits: {nvidia.com/gpu: 8}}", 1)),
			want:   strings.Replace(full, port, port+`, resources: {limits: {nvidia.com/gpu: 8}, requests: {nvidia.com/gpu: "8"}}`, 1),
		},
		"what v1's schema writes is written for v1alpha1": {
			object: job(strings.Replace(full, port, `, ports: [{name: pytorchjob-port, containerPort: 23456}]`, 1)),
			mods:   []mod{inOlderVersion}, want: full,
		},
		"an object that does not decode gets no patch": {
			object: job(pytorch(role("Worker", ", replicas: two", ""), "null")),
		},
		"an object that does not decode gets no patch in v1alpha1 either": {
			object: job(pytorch(role("Worker", "", ", imagePullPolicy: 12"))), mods: []mod{inOlderVersion},
		},
		"a framework that nobody knows gets no defaults": {
			object: job("{framework: Caffe, roles: [" + role("Worker", "", "") + "]}"),
		},
		"a job without a spec is left to validation": {
			object: "{apiVersion: penstock.dev/v1, kind: TrainingJob, metadata: {name: a}}",
		},
		"a spec that is no object is left to validation": {object: job("[1]")},
		"a policy is spelt out": {
			object: policy(`{match: {resources: [{kinds: [Pod]}]}, rego: "package a"}`),
			want: `{match: {resources: [{kinds: [Pod]}], operations: [CREATE, UPDATE]}, rego: "package a",
				action: Deny, failurePolicy: Fail, upstreamKinds: Ignore}`,
		},
		"a null in the parameters of an override stays, to be refused": {
			object: policy(`{match: {resources: [{kinds: [Pod]}], operations: [CREATE]}, rego: "package a", action: Deny, failurePolicy: Fail,
				upstreamKinds: Ignore, parameters: {max: 8}, overrides: [{namespaceSelector: {}, parameters: {max: null}}]}`),
		},
	}
	gate := onlineGate(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := create(t, tc.object, tc.mods...)
			response := gate.Default(t.Context(), request)
			got := specOf(t, applied(t, request, response))
			want := specOf(t, request.Object.Raw)
			if tc.want != "" {
				want = specOf(t, []byte("spec: "+tc.want))
			} else if len(response.Patch) > 0 {
				t.Errorf("got a patch, want none: %s", response.Patch)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if (response.PatchType == nil) != (response.Patch == nil) {
				t.Errorf("patch type %v beside patch %s", response.PatchType, response.Patch)
			}
			checkRefusal(t, request, response)
		})
	}
}

func specOf(t *testing.T, object []byte) any {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal(object, &content); err != nil {
		t.Fatal(err)
	}
	return content["spec"]
}

// A role that server-side apply adds again in another case is the stored one:
// the write must change nothing, whatever words the spec is in.
func TestDefaultOfARoleThatIsAppliedAgain(t *testing.T) {
	stored := create(t, job(pytorch(role("master", "", `, resources: {requests: {cpu: "1000m"}}`), role("Worker", "", ""))))
	gate := onlineGate(t)
	old := applied(t, stored, gate.Default(t.Context(), stored))
	again := strings.Replace(string(old), `"name":"Master"`, `"name":"master"`, 1)
	var content map[string]any
	if err := yaml.Unmarshal(old, &content); err != nil {
		t.Fatal(err)
	}
	roles := content["spec"].(map[string]any)["roles"].([]any)
	var twin map[string]any
	if err := yaml.Unmarshal([]byte(again), &twin); err != nil {
		t.Fatal(err)
	}
	content["spec"].(map[string]any)["roles"] = append(roles, twin["spec"].(map[string]any)["roles"].([]any)[0])
	raw, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	request := create(t, string(raw), from(t, string(old)))
	got := applied(t, request, gate.Default(t.Context(), request))
	if diff := cmp.Diff(specOf(t, old), specOf(t, got)); diff != "" {
		t.Errorf("applying again changes the spec (-stored +again):\n%s", diff)
	}
}

func TestQuietUpdate(t *testing.T) {
	managed := func(second string) string {
		return `managedFields: [{manager: kubectl, operation: Update, time: "2026-03-01T12:00:0` + second + `Z", fieldsV1: {"f:spec": {}}}]`
	}
	stored := create(t, job(pytorch(role("Worker", "", "")), managed("0")))
	gate := onlineGate(t)
	old := string(applied(t, stored, gate.Default(t.Context(), stored)))
	tests := map[string]struct {
		object      string
		wantManaged string
	}{
		"an update that comes to what is stored keeps the owners and their times": {
			object: job(pytorch(role("Worker", "", "")), managed("1")), wantManaged: managed("0"),
		},
		"an update that changes something has new times": {
			object: job(pytorch(role("Worker", ", replicas: 2", "")), managed("1")), wantManaged: managed("1"),
		},
		"a new owner is a change": {
			object:      job(pytorch(role("Worker", "", "")), strings.Replace(managed("1"), "kubectl", "other", 1)),
			wantManaged: strings.Replace(managed("1"), "kubectl", "other", 1),
		},
		"a label is a change": {
			object: job(pytorch(role("Worker", "", "")), managed("1"), "labels: {a: b}"), wantManaged: managed("1"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := create(t, tc.object, from(t, old))
			got := applied(t, request, gate.Default(t.Context(), request))
			var content, want struct {
				Metadata struct{ ManagedFields any }
			}
			if err := yaml.Unmarshal(got, &content); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte("metadata: {"+tc.wantManaged+"}"), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, content); diff != "" {
				t.Errorf("managed fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestsThatCannotBeAnswered(t *testing.T) {
	type decide func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
	gate := onlineGate(t)
	byDefault := func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return gate.Default(t.Context(), request)
	}
	validate := func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return gate.Validate(t.Context(), request)
	}
	starting := onlineOptions(t)
	starting.Loaded = func() bool { return false }
	notLoaded := gateOf(t, starting)
	good := job(pytorch(role("Worker", "", "")))
	noJSON := func(request *admissionv1.AdmissionRequest) { request.Object = runtime.RawExtension{Raw: []byte("[]")} }
	unknown := func(request *admissionv1.AdmissionRequest) { request.Kind.Kind = "Pod" }
	tests := map[string]struct {
		decide  decide
		request *admissionv1.AdmissionRequest
		want    int32
	}{
		"defaults of an unknown kind":      {byDefault, create(t, good, unknown), http.StatusBadRequest},
		"validating an unknown kind":       {validate, create(t, good, unknown), http.StatusBadRequest},
		"defaults of what is no object":    {byDefault, create(t, good, noJSON), http.StatusInternalServerError},
		"validating what is no object":     {validate, create(t, good, noJSON, inOlderVersion), http.StatusInternalServerError},
		"defaults of an update of nothing": {byDefault, create(t, good, from(t, good), func(request *admissionv1.AdmissionRequest) { request.OldObject.Raw = nil }), http.StatusBadRequest},
		"validating before the policies are loaded": {
			func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				return notLoaded.Validate(t.Context(), request)
			}, create(t, good), http.StatusServiceUnavailable,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			response := tc.decide(tc.request)
			if response.Allowed || response.Result.Code != tc.want || len(response.Patch) > 0 {
				t.Errorf("got %v %v, want code %d and no patch", response.Allowed, response.Result, tc.want)
			}
			checkRefusal(t, tc.request, response)
		})
	}
	t.Run("a deletion has nothing to default", func(t *testing.T) {
		if response := byDefault(create(t, good, deleted)); !response.Allowed || len(response.Patch) > 0 {
			t.Errorf("got %+v, want it admitted without a patch", response)
		}
	})
	t.Run("a policy can be mended before the policies are loaded", func(t *testing.T) {
		mended := create(t, policy(`{match: {resources: [{kinds: [Service]}]}, rego: "package a\nviolation contains {\"msg\": \"a\"} if false"}`))
		if response := notLoaded.Validate(t.Context(), mended); !response.Allowed {
			t.Errorf("refused: %v", response.Result)
		}
	})
}
