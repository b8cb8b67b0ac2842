package policies_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

const broken = "package p\nviolation contains"

func TestLastGoodVersionIsKept(t *testing.T) {
	engine := policies.NewEngine(policies.Options{})
	if err := engine.Set(policy("p", alwaysFails)); err != nil {
		t.Fatal(err)
	}
	good := engine.Snapshot().Digest()
	bad := policy("p", broken)
	bad.Generation = 2
	if err := engine.Set(bad); err == nil {
		t.Fatal("a broken policy is accepted")
	}
	snapshot := engine.Snapshot()
	state := snapshot.Policies()[0]
	if state.Generation != 2 || state.Enforced != 1 || state.Err == nil {
		t.Errorf("got %+v", state)
	}
	if snapshot.Digest() != good {
		t.Error("the digest has changed although the same is in force")
	}
	if verdict := snapshot.Judge(t.Context(), createRequest(trainingJob)); len(verdict.Denied()) != 1 {
		t.Errorf("the last good version is not in force: %+v", verdict)
	}
	engine.Remove("p")
	if verdict := engine.Snapshot().Judge(t.Context(), createRequest(trainingJob)); !verdict.Allowed() {
		t.Errorf("a removed policy judges: %+v", verdict)
	}
}

func TestPolicyThatNeverCompiledAnswersByItsFailurePolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		policy *v1.WorkloadPolicy
		want   bool
	}{
		"Fail":   {policy("p", broken), false},
		"Ignore": {policy("p", broken, ignoreFailure), true},
	} {
		engine := policies.NewEngine(policies.Options{})
		if err := engine.Set(tc.policy); err == nil {
			t.Fatal("a broken policy is accepted")
		}
		verdict := engine.Snapshot().Judge(t.Context(), createRequest(trainingJob))
		if len(verdict.Errors) != 1 || verdict.Errors[0].Reason != policies.ReasonNotCompiled || verdict.Allowed() != tc.want {
			t.Errorf("%s: got %+v", name, verdict)
		}
	}
}

func TestUnchangedSpecsAreNotCompiledAgain(t *testing.T) {
	engine := engineWith(t, policies.Options{}, policy("p", alwaysFails))
	before := engine.Snapshot()
	again := policy("p", alwaysFails)
	again.Generation = 7
	if err := engine.Set(again); err != nil {
		t.Fatal(err)
	}
	if after := engine.Snapshot(); after.Digest() != before.Digest() || after.Policies()[0].Enforced != 7 {
		t.Errorf("got %+v", after.Policies())
	}
}

func TestParametersCanBeChangedAlone(t *testing.T) {
	const echo = "package p\nviolation contains sprintf(\"%v\", [input.parameters.n]) if true"
	engine := engineWith(t, policies.Options{}, policy("p", echo, parameters(`{"n":1}`)))
	if err := engine.Set(policy("p", echo, parameters(`{"n":2}`))); err != nil {
		t.Fatal(err)
	}
	verdict := engine.Snapshot().Judge(t.Context(), createRequest(trainingJob))
	if len(verdict.Violations) != 1 || verdict.Violations[0].Message != "2" {
		t.Errorf("got %v", verdict.Violations)
	}
}

func TestDigestIsThatOfThePoliciesInForce(t *testing.T) {
	a, b := policy("a", alwaysFails), policy("b", alwaysFails)
	one := engineWith(t, policies.Options{}, a, b).Snapshot()
	other := engineWith(t, policies.Options{}, b, a).Snapshot()
	if one.Digest() != other.Digest() {
		t.Error("the digest depends on the order")
	}
	names := []string{}
	for _, state := range one.Policies() {
		names = append(names, state.Name)
	}
	if !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("got %v", names)
	}
	if other := engineWith(t, policies.Options{}, a); other.Snapshot().Digest() == one.Digest() {
		t.Error("the digest does not depend on the policies")
	}
	if other := engineWith(t, policies.Options{}, a, policy("b", alwaysFails, action(v1.ActionWarn))); other.Snapshot().Digest() == one.Digest() {
		t.Error("the digest does not depend on the specs")
	}
}

func TestPoliciesWithTheSamePackageDoNotCollide(t *testing.T) {
	engine := engineWith(t, policies.Options{},
		policy("a", "package p\nlimit := 1\nviolation contains limit_text if limit_text := sprintf(\"%v\", [limit])"),
		policy("b", "package p\nlimit := 2\nviolation contains limit_text if limit_text := sprintf(\"%v\", [limit])"))
	verdict := engine.Snapshot().Judge(t.Context(), createRequest(trainingJob))
	if len(verdict.Violations) != 2 || verdict.Violations[0].Message != "1" || verdict.Violations[1].Message != "2" {
		t.Errorf("got %v", verdict.Violations)
	}
}

// TestOneRequestSeesOneSnapshot changes two policies together, under load: a
// verdict that mixes their generations would show.
func TestOneRequestSeesOneSnapshot(t *testing.T) {
	generation := func(message string) []*v1.WorkloadPolicy {
		rego := "package p\nimport data.penstock.workload\nviolation contains \"" + message + "\" if count(workload.roles) >= 0"
		return []*v1.WorkloadPolicy{
			policy("a", rego, parameters(`{"x":{"y":1}}`)),
			policy("b", rego, func(spec *v1.WorkloadPolicySpec) {
				spec.Overrides = []v1.PolicyOverride{{NamespaceSelector: tier("research"), Action: v1.ActionWarn}}
			}),
		}
	}
	engine := engineWith(t, policies.Options{Concurrency: 8, Deadline: time.Minute}, generation("one")...)
	stop := make(chan struct{})
	var judges sync.WaitGroup
	for range 4 {
		judges.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				verdict := engine.Snapshot().Judge(t.Context(), createRequest(trainingJob))
				if len(verdict.Violations) != 2 || verdict.Violations[0].Message != verdict.Violations[1].Message {
					t.Errorf("got %+v", verdict)
					return
				}
			}
		})
	}
	for i := range 60 {
		engine.Replace(generation([]string{"one", "two"}[i%2]))
	}
	close(stop)
	judges.Wait()
}
