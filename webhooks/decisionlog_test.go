package webhooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks"
)

func maskOf(t *testing.T, env string, pointers ...string) webhooks.Mask {
	t.Helper()
	mask, err := webhooks.NewMask(env, pointers)
	if err != nil {
		t.Fatal(err)
	}
	return mask
}

func warns(spec *v1.WorkloadPolicySpec) { spec.Action = v1.ActionWarn }

// logOf judges requests with a log, and gives its events.
func logOf(t *testing.T, options webhooks.DecisionLogOptions, rules []*v1.WorkloadPolicy, requests ...*admissionv1.AdmissionRequest) []map[string]any {
	t.Helper()
	var written bytes.Buffer
	options.Output, options.Clock, options.Log = &written, func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }, logr.Discard()
	log := webhooks.NewDecisionLog(options)
	engine, err := engineOf(rules...)
	if err != nil {
		t.Fatal(err)
	}
	gateOptions := onlineOptions(t)
	gateOptions.Engine, gateOptions.Decisions = engine, log
	gate := gateOf(t, gateOptions)
	for _, request := range requests {
		gate.Judge(t.Context(), request, policies.EntryFail)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := log.Start(ended); err != nil { // it writes what waits
		t.Fatal(err)
	}
	var events []map[string]any
	for line := range strings.Lines(written.String()) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		events = append(events, event)
	}
	return events
}

func podRequest(t *testing.T, object string) *admissionv1.AdmissionRequest {
	request := create(t, pod, as("", "v1", "Pod"), of("", "pods", ""))
	request.Object = runtime.RawExtension{Raw: []byte(object)}
	request.UserInfo.Username = "ada"
	return request
}

func TestDecisionsAreLoggedAsOPADoes(t *testing.T) {
	rule := policyOn("p", "", "Pod", `msg := sprintf("the token is %s", [input.object.spec.containers[0].env[0].value]); field := "spec"`)
	events := logOf(t, webhooks.DecisionLogOptions{Labels: map[string]string{"app": "penstock"}, Mask: maskOf(t, ".*")}, []*v1.WorkloadPolicy{rule},
		podRequest(t, `{"metadata":{"name":"a","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"hunter2-secret","a/b":"c"},"managedFields":[{}]},
			"spec":{"n":9007199254740993,"containers":[{"env":[{"name":"TOKEN","value":"hunter2-secret"},{"name":"REF","valueFrom":{"secretKeyRef":{"name":"s"}}}]}]}}`))
	if len(events) != 1 {
		t.Fatalf("got %d events", len(events))
	}
	event := events[0]
	revision := event["bundles"].(map[string]any)["policies"].(map[string]any)["revision"]
	if revision == "" || event["metrics"].(map[string]any)["timer_server_handler_ns"].(float64) <= 0 {
		t.Errorf("got %v", event)
	}
	want := map[string]any{
		"labels": map[string]any{"app": "penstock"}, "decision_id": "42", "path": "penstock/admission", "timestamp": "2026-03-01T12:00:00Z",
		"erased": []any{"/input/object/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration", "/input/object/metadata/managedFields"},
		"masked": []any{"/input/object/spec/containers/0/env/0/value"},
		"result": map[string]any{
			"allowed": false, "code": 422.0, "judged": []any{"p"},
			"message":    `Pod "a" is invalid: spec: the token is **REDACTED** (policy p)`,
			"violations": []any{map[string]any{"policy": "p", "action": "Deny", "field": "spec", "message": "the token is **REDACTED**"}},
		},
	}
	event["decision_id"] = "42"
	for name := range want {
		if diff := cmp.Diff(want[name], event[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	input, _ := json.Marshal(event["input"])
	for _, part := range []string{`"a/b":"c"`, `"operation":"CREATE"`, `"kind":"Pod"`, `"secretKeyRef":{"name":"s"}`, `"username":"ada"`} {
		if !strings.Contains(string(input), part) {
			t.Errorf("%s is not in %s", part, input)
		}
	}
	if whole, _ := json.Marshal(event); strings.Contains(string(whole), "hunter2") {
		t.Errorf("a masked value is in %s", whole)
	}
}

func TestDecisionLogMasks(t *testing.T) {
	const container = `{"metadata":{"name":"a"},"spec":{"containers":[{"args":["--token=t","x"],"env":[{"name":"API_TOKEN","value":"t"},{"name":"HOME","value":"/root"}]}],"initContainers":[{"args":["y"]}]}}`
	tests := map[string]struct {
		env            string
		pointers       []string
		kind, object   string
		erased, masked []any
	}{
		"names of variables": {
			env: "(?i)token|password", kind: "Pod", object: container,
			masked: []any{"/input/object/spec/containers/0/args/0", "/input/object/spec/containers/0/env/0/value"},
		},
		"what is named or written as a secret": {
			env: "^$", kind: "Pod", object: `{"metadata":{"name":"a","annotations":{"vault-token":"c2VjcmV0"}},
				"spec":{"roles":[{"ray":{"startParams":{"redis-password":"c2VjcmV0","num-cpus":"1"}}}],"tokenFile":"/t",
				"containers":[{"args":["--token=c2VjcmV0","--redis-password","c2VjcmV0","--lr=1"],"command":["echo","x-c2VjcmV0-y"],"image":"redis://u:c2VjcmV0@h/x",
				"env":[{"name":"DB_PASSWORD","value":"c2VjcmV0"},{"name":"PLAIN","value":"1"}]}]}}`,
			masked: []any{
				"/input/object/metadata/annotations/vault-token", "/input/object/spec/containers/0/args/0", "/input/object/spec/containers/0/args/2",
				"/input/object/spec/containers/0/command/1", "/input/object/spec/containers/0/env/0/value", "/input/object/spec/containers/0/image",
				"/input/object/spec/roles/0/ray/startParams/redis-password",
			},
		},
		"copies of variables": {
			env: ".*", kind: "Pod", object: `{"metadata":{"name":"a","labels":{"a":"worker-1"}},
				"spec":{"containers":[{"args":["--x","c2VjcmV0","worker-1"],"env":[{"name":"A","value":"c2VjcmV0"},{"name":"B","value":"worker-1"},{"name":"C","value":"--x"}]}]}}`,
			masked: []any{
				"/input/object/spec/containers/0/args/1", "/input/object/spec/containers/0/args/2",
				"/input/object/spec/containers/0/env/0/value", "/input/object/spec/containers/0/env/1/value", "/input/object/spec/containers/0/env/2/value",
			},
		},
		"members and elements": {
			env: "^$", pointers: []string{"/input/*/spec/*/*/args", "/input/object/spec/containers/0/env/1"}, kind: "Pod", object: container,
			erased: []any{"/input/object/spec/containers/0/args", "/input/object/spec/containers/0/env/1", "/input/object/spec/initContainers/0/args"},
			masked: []any{"/input/object/spec/containers/0/env/0/value"},
		},
		"who asks": {
			env: "^$", pointers: []string{"/input/user"}, kind: "Pod", object: container, erased: []any{"/input/user"},
			masked: []any{"/input/object/spec/containers/0/args/0", "/input/object/spec/containers/0/env/0/value"},
		},
		"values of a Secret, and copies of them": {
			env: ".*", kind: "Secret", object: `{"metadata":{"name":"a","annotations":{"copy":"c2VjcmV0"}},"data":{"key":"c2VjcmV0"},"stringData":{"a/b":"secret"},"type":"Opaque"}`,
			masked: []any{"/input/object/data/key", "/input/object/metadata/annotations/copy", "/input/object/stringData/a~1b"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := podRequest(t, tc.object)
			request.Kind.Kind = tc.kind
			rule := policyOn("p", "", tc.kind, `msg := input.object.metadata.name; field := ""`, warns)
			events := logOf(t, webhooks.DecisionLogOptions{Mask: maskOf(t, tc.env, tc.pointers...)}, []*v1.WorkloadPolicy{rule}, request)
			if len(events) != 1 {
				t.Fatalf("got %d events", len(events))
			}
			got := [2]any{events[0]["erased"], events[0]["masked"]}
			want := [2]any{}
			if tc.erased != nil {
				want[0] = tc.erased
			}
			if tc.masked != nil {
				want[1] = tc.masked
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("erased, masked (-want +got):\n%s", diff)
			}
			if whole, _ := json.Marshal(events[0]); strings.Contains(string(whole), "c2VjcmV0") || strings.Contains(string(whole), `"secret"`) {
				t.Errorf("a value is in %s", whole)
			}
		})
	}
	for _, pointer := range []string{"", "/", "input/object", "/result/message", "/input"} {
		if _, err := webhooks.NewMask(".*", []string{pointer}); err == nil {
			t.Errorf("the pointer %q is accepted", pointer)
		}
	}
}

func TestCleanDecisionsAreSampled(t *testing.T) {
	silent := policyOn("p", "", "Pod", `input.object.metadata.name == "never"; msg := ""; field := ""`)
	requests := make([]*admissionv1.AdmissionRequest, 1000)
	for i := range requests {
		requests[i] = podRequest(t, `{"metadata":{"name":"a"}}`)
		requests[i].UID = types.UID(fmt.Sprintf("7d8e%08d-1111-2222-3333-444455556666", i*7919))
	}
	for rate, want := range map[float64][2]int{0: {0, 0}, 0.1: {50, 200}, 1: {1000, 1000}} {
		events := logOf(t, webhooks.DecisionLogOptions{AllowedRate: rate, Mask: maskOf(t, ".*")}, []*v1.WorkloadPolicy{silent}, requests...)
		if len(events) < want[0] || len(events) > want[1] {
			t.Errorf("at a rate of %v, %d of 1000 are logged", rate, len(events))
		}
	}
	loud := policyOn("p", "", "Pod", `msg := "x"; field := ""`, func(spec *v1.WorkloadPolicySpec) { spec.Action = v1.ActionAudit })
	if events := logOf(t, webhooks.DecisionLogOptions{Mask: maskOf(t, ".*")}, []*v1.WorkloadPolicy{loud}, requests...); len(events) != 1000 {
		t.Errorf("%d of 1000 findings are logged", len(events))
	}
	if events := logOf(t, webhooks.DecisionLogOptions{AllowedRate: 1, Mask: maskOf(t, ".*")}, nil, requests...); len(events) != 0 {
		t.Errorf("%d requests are logged that no policy judged", len(events))
	}
}

// stuckWriter blocks until it is freed, and then fails.
type stuckWriter struct{ freed chan struct{} }

func (w stuckWriter) Write([]byte) (int, error) {
	<-w.freed
	return 0, errors.New("the disk is full")
}

var _ io.Writer = stuckWriter{}

// TestSlowLogHoldsUpNobody logs more than waits to be written while nothing can be.
func TestSlowLogHoldsUpNobody(t *testing.T) {
	out := stuckWriter{make(chan struct{})}
	log := webhooks.NewDecisionLog(webhooks.DecisionLogOptions{Output: out, AllowedRate: 1, Mask: maskOf(t, ".*"), Clock: time.Now, Log: logr.Discard()})
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() { _ = log.Start(ctx) })
	large := podRequest(t, `{"metadata":{"name":"`+strings.Repeat("a", 1<<20)+`"}}`)
	decision := webhooks.Decision{Response: &admissionv1.AdmissionResponse{}, Verdicts: []policies.Verdict{{Judged: []string{"p"}}}}
	dropped := value(t, "penstock_decision_log_events_total", "dropped")
	start := time.Now()
	for range 3000 {
		log.Log(large, decision, time.Millisecond)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	if got := value(t, "penstock_decision_log_events_total", "dropped") - dropped; got < 2900 {
		t.Errorf("%v of 3000 MiB were dropped", got)
	}
	close(out.freed)
	cancel()
	writing.Wait()
	if value(t, "penstock_decision_log_events_total", "failed") == 0 {
		t.Error("what could not be written is not counted")
	}
}
