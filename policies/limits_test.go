package policies_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

const (
	// loops walks a set of ten thousand million pairs.
	loops = "package p\nviolation contains \"x\" if { some i, j in numbers.range(1, 100000); some k in numbers.range(1, 100000); i * k == -j }"
	// hangs stays in one call of a builtin, which nothing can cut.
	hangs = "package p\nviolation contains \"x\" if regex.match(\"(a{1,30}b?){1,30}c\", input.object.spec.blob)"
	// loopsOnDemand loops when the object says so.
	loopsOnDemand = "package p\nviolation contains \"x\" if { input.object.spec.loop; some i, j in numbers.range(1, 100000); some k in numbers.range(1, 100000); i * k == -j }"
	// conflicts is an error at run time.
	conflicts = "package p\nx := 1 if input.object\nx := 2 if input.object\nviolation contains \"x\" if x == 1"
)

// outcomes is an Observer that keeps the last outcome of each policy.
type outcomes struct {
	mu   sync.Mutex
	last map[string]policies.Outcome
}

func (*outcomes) Removed(string) {}

func (o *outcomes) Evaluated(policy string, outcome policies.Outcome, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = map[string]policies.Outcome{}
	}
	o.last[policy] = outcome
}

func TestPoliciesAreCut(t *testing.T) {
	blob := []byte(`{"spec":{"blob":"` + strings.Repeat("a", 100_000) + `"}}`)
	tests := map[string]struct {
		rego       string
		object     []byte
		options    policies.Options
		wantReason policies.ErrorReason
	}{
		"a loop":                             {loops, trainingJob, policies.Options{}, policies.ReasonDeadline},
		"a slow builtin":                     {hangs, blob, policies.Options{}, policies.ReasonDeadline},
		"a runtime error":                    {conflicts, trainingJob, policies.Options{}, policies.ReasonRuntime},
		"a result of no use":                 {"package p\nviolation := 7", trainingJob, policies.Options{}, policies.ReasonRuntime},
		"an element of no use":               {"package p\nviolation contains x if x := 7", trainingJob, policies.Options{}, policies.ReasonRuntime},
		"too large an object":                {alwaysFails, trainingJob, policies.Options{MaxInputBytes: 20}, policies.ReasonInput},
		"no JSON":                            {alwaysFails, []byte("{"), policies.Options{}, policies.ReasonInput},
		"a name twice":                       {alwaysFails, []byte(`{"a":1,"a":2}`), policies.Options{}, policies.ReasonInput},
		"a number too large to compute with": {alwaysFails, []byte(`{"a":1e999999}`), policies.Options{}, policies.ReasonInput},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			seen := &outcomes{}
			tc.options.Deadline, tc.options.Observer = 250*time.Millisecond, seen
			engine := engineWith(t, tc.options,
				policy("bad-fail", tc.rego),
				policy("bad-ignore", tc.rego, ignoreFailure),
				policy("good", alwaysFails),
			)
			start := time.Now()
			verdict := engine.Snapshot().Judge(t.Context(), createRequest(tc.object))
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %s", took)
			}
			got := map[string]v1.PolicyAction{}
			for _, e := range verdict.Errors {
				if e.Reason != tc.wantReason || e.Message == "" {
					t.Errorf("got %+v, want reason %s", e, tc.wantReason)
				}
				got[e.Policy] = e.Action
			}
			want := map[string]v1.PolicyAction{"bad-fail": v1.ActionDeny, "bad-ignore": v1.ActionWarn}
			wantGood := policies.OutcomeViolated
			if tc.wantReason == policies.ReasonInput {
				// No policy can judge what cannot be read.
				want["good"] = v1.ActionDeny
				wantGood = policies.Outcome(policies.ReasonInput)
			} else if len(verdict.Denied()) != 1 || verdict.Denied()[0].Policy != "good" {
				t.Errorf("the good policy does not count: %v", verdict.Violations)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if len(verdict.Failed()) == 0 || len(verdict.Warnings()) != 1 || !strings.Contains(verdict.Warnings()[0], "bad-ignore") {
				t.Errorf("failed %v, warnings %q", verdict.Failed(), verdict.Warnings())
			}
			wantSeen := map[string]policies.Outcome{
				"bad-fail": policies.Outcome(tc.wantReason), "bad-ignore": policies.Outcome(tc.wantReason), "good": wantGood,
			}
			if diff := cmp.Diff(wantSeen, seen.last); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneRequestsTroubleIsItsOwn(t *testing.T) {
	engine := engineWith(t, policies.Options{Deadline: 250 * time.Millisecond}, policy("p", loopsOnDemand))
	for range 3 {
		if verdict := engine.Snapshot().Judge(t.Context(), createRequest(looping)); verdict.Allowed() {
			t.Fatal("a loop is admitted")
		}
		if verdict := engine.Snapshot().Judge(t.Context(), createRequest(trainingJob)); !verdict.Allowed() {
			t.Fatalf("the policy is disabled for others: %+v", verdict)
		}
	}
}

var looping = []byte(`{"spec":{"loop":true}}`)

func TestJudgeEndsWithTheRequest(t *testing.T) {
	engine := engineWith(t, policies.Options{Deadline: time.Minute}, policy("a", loops), policy("b", alwaysFails))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	verdict := engine.Snapshot().Judge(ctx, createRequest(trainingJob))
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	if len(verdict.Failed()) != 2 {
		t.Errorf("got %+v, want both policies out of time", verdict)
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	engine := engineWith(t, policies.Options{Deadline: time.Minute, Concurrency: 1}, policy("a", loopsOnDemand))
	occupied, release := context.WithCancel(t.Context())
	done := make(chan policies.Verdict)
	go func() { done <- engine.Snapshot().Judge(occupied, createRequest(looping)) }()

	// Until the slot is taken, which cannot be seen from here, requests pass.
	busy := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		failed := engine.Snapshot().Judge(ctx, createRequest(trainingJob)).Failed()
		return len(failed) == 1 && failed[0].Reason == policies.ReasonBusy
	}
	for deadline := time.Now().Add(10 * time.Second); !busy(); {
		if time.Now().After(deadline) {
			t.Fatal("a second request is evaluated beside the first")
		}
	}
	release()
	<-done
	if verdict := engine.Snapshot().Judge(t.Context(), createRequest(trainingJob)); !verdict.Allowed() {
		t.Errorf("the slot is not given back: %+v", verdict)
	}
}

func TestErrorsDoNoMoreThanViolationsWould(t *testing.T) {
	excepted := func(spec *v1.WorkloadPolicySpec) {
		spec.Exceptions = []v1.PolicyException{{Namespaces: []string{"team"}, Until: metav1.NewTime(now.Add(time.Hour)), Reason: "migration"}}
	}
	for name, tc := range map[string]struct {
		mods []func(*v1.WorkloadPolicySpec)
		want v1.PolicyAction
	}{
		"Deny, Fail":                    {nil, v1.ActionDeny},
		"Deny, Ignore":                  {[]func(*v1.WorkloadPolicySpec){ignoreFailure}, v1.ActionWarn},
		"Warn, Fail":                    {[]func(*v1.WorkloadPolicySpec){action(v1.ActionWarn)}, v1.ActionWarn},
		"Audit, Fail":                   {[]func(*v1.WorkloadPolicySpec){action(v1.ActionAudit)}, v1.ActionAudit},
		"Audit, Ignore":                 {[]func(*v1.WorkloadPolicySpec){action(v1.ActionAudit), ignoreFailure}, v1.ActionAudit},
		"an exception in its last week": {[]func(*v1.WorkloadPolicySpec){excepted}, v1.ActionWarn},
	} {
		verdict := judge(t, policy("p", conflicts, tc.mods...), createRequest(trainingJob))
		if len(verdict.Errors) != 1 || verdict.Errors[0].Action != tc.want {
			t.Errorf("%s: got %v, want %s", name, verdict.Errors, tc.want)
		}
	}
}
