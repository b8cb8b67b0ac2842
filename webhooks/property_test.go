package webhooks_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
	"github.com/penstock-dev/penstock/webhooks"
)

func randomRequest(t testing.TB, seed uint64, mods ...mod) *admissionv1.AdmissionRequest {
	t.Helper()
	raw, err := json.Marshal(webhooks.RandomJob(rand.New(rand.NewPCG(seed, 1))))
	if err != nil {
		t.Fatal(err)
	}
	return create(t, string(raw), mods...)
}

// Defaulting twice changes nothing more, what was defaulted validates, and
// writing it again as it was written first comes to what is stored.
func TestDefaultedJobsAreStable(t *testing.T) {
	gate := onlineGate(t)
	versions := map[string][]mod{"made in v1": nil, "made in v1alpha1": {inOlderVersion}}
	for name, mods := range versions {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(150) {
				request := randomRequest(t, seed, mods...)
				stored := applied(t, request, gate.Default(t.Context(), request))

				again := create(t, string(stored), mods...)
				if response := gate.Default(t.Context(), again); !response.Allowed || len(response.Patch) > 0 {
					t.Fatalf("seed %d: defaulting twice writes %s", seed, response.Patch)
				}
				if response := gate.Validate(t.Context(), again); !response.Allowed {
					t.Fatalf("seed %d: the defaulted job is refused: %s", seed, response.Result.Message)
				}
				same := create(t, string(stored), append(mods, from(t, string(stored)))...)
				if response := gate.Default(t.Context(), same); !response.Allowed || len(response.Patch) > 0 {
					t.Fatalf("seed %d: a write that changes nothing gets %s", seed, response.Patch)
				}
				rewritten := randomRequest(t, seed, append(mods, from(t, string(stored)))...)
				got := applied(t, rewritten, gate.Default(t.Context(), rewritten))
				if diff := cmp.Diff(specOf(t, stored), specOf(t, got)); diff != "" {
					t.Fatalf("seed %d: applying again changes the spec (-stored +again):\n%s", seed, diff)
				}
				rewritten.Object = runtime.RawExtension{Raw: got}
				if response := gate.Validate(t.Context(), rewritten); !response.Allowed {
					t.Fatalf("seed %d: applying again is refused: %s", seed, response.Result.Message)
				}
			}
		})
	}
}

// The fixtures are objects as they are stored.
func TestFixturesAreStored(t *testing.T) {
	gate := onlineGate(t)
	tests := map[string][]fixtures.JobMod{
		"workers":              {fixtures.Workers(4)},
		"a master and workers": {fixtures.Master(), fixtures.Workers(2)},
		"an elastic job":       {fixtures.Elastic(1, 4)},
		"a suspended job":      {fixtures.Suspended()},
		"a bounded job":        {fixtures.BackoffLimit(3), fixtures.Deadline(60), fixtures.TTL(60)},
	}
	for name, mods := range tests {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(fixtures.TrainingJob("a", mods...))
			if err != nil {
				t.Fatal(err)
			}
			request := create(t, string(raw))
			defaulted := create(t, string(applied(t, request, gate.Default(t.Context(), request))))
			if response := gate.Validate(t.Context(), defaulted); !response.Allowed {
				t.Errorf("refused: %v", response.Result)
			}
		})
	}
}

// FuzzHandlers has anything for objects: the answer is always a review with the
// uid, a refusal has a reason, and a patch applies.
func FuzzHandlers(f *testing.F) {
	for _, object := range []string{
		job(pytorch(role("Worker", "", ""))),
		job(pytorch(role("Master", ", replicas: 2", ", resources: {limits: {nvidia.com/gpu: 16}}"), role("worker", "", ""), "null")),
		job(`{framework: MPI, roles: [{name: Launcher, template: {}}], elastic: {replicas: null}, gang: {}}`),
		job(`{roles: {}}`, "managedFields: [{time: 1}]"),
		policy(`{match: {resources: [{kinds: [Pod]}]}, rego: "package a\nviolation contains 1", overrides: [{parameters: {a: null}}]}`),
		`{}`, `[]`, `null`, `{spec: []}`, `{metadata: {deletionTimestamp: x}, spec: {roles: [[]]}}`,
	} {
		raw := []byte(toJSON(f, object))
		f.Add(raw, raw, uint8(len(raw)))
		f.Add(raw, []byte(`{"spec":{"roles":[{"name":"Worker"}]}}`), uint8(1))
	}
	options := onlineOptions(f)
	options.Cluster = world{"a": toJSON(f, job(pytorch(role("Worker", "", ""))))}
	paths := served(gateOf(f, options))
	operations := []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, "CONNECT"}
	subresources := []string{"", "", "scale", "status"}
	targets := []string{mutateJobs, validateJobs, "/mutate-penstock-dev-v1-workloadpolicy", "/validate-penstock-dev-v1-workloadpolicy"}
	f.Fuzz(func(t *testing.T, object, old []byte, choice uint8) {
		if !json.Valid(object) || !json.Valid(old) {
			return
		}
		target := targets[choice&3]
		request := requestFor(v1.TrainingJobKind, "trainingjobs", string(object))
		if choice&2 != 0 {
			request = requestFor(v1.WorkloadPolicyKind, "workloadpolicies", string(object))
		}
		request.UID, request.Name, request.Namespace = "uid", "a", fixtures.Namespace
		request.Operation, request.SubResource = operations[choice>>2&3], subresources[choice>>4&3]
		request.OldObject = runtime.RawExtension{Raw: old}
		if choice&64 != 0 {
			inOlderVersion(request)
		}
		response := responseOf(t, paths.post(t.Context(), target, reviewOf(t, request)))
		switch {
		case response.UID != "uid":
			t.Errorf("got uid %q", response.UID)
		case response.Allowed:
			applied(t, request, response)
		case response.Result == nil || response.Result.Message == "" || response.Result.Reason == "":
			t.Errorf("refused without a reason: %+v", response.Result)
		case strings.Contains(response.Result.Message, "panicked"):
			t.Errorf("it panicked: %v", response.Result)
		case response.Result.Code >= http.StatusInternalServerError && response.Result.Reason == metav1.StatusReasonUnknown:
			t.Errorf("failed without a reason: %+v", response.Result)
		}
	})
}
