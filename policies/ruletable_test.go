package policies

import (
	"runtime"
	"testing"
	"time"
	"weak"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

func countRule(name, rego string) *v1.WorkloadPolicy {
	policy := &v1.WorkloadPolicy{}
	policy.Name, policy.Spec.Rego = name, rego
	policy.Spec.Match.Resources = []v1.PolicyResources{{Kinds: []string{"Pod"}}}
	return policy
}

// ruleOf compiles a policy, and gives its rule.
func ruleOf(t *testing.T, policy *v1.WorkloadPolicy) *rule {
	t.Helper()
	compiled, err := Compile(policy)
	if err != nil {
		t.Fatal(err)
	}
	return compiled.rule
}

// The same text is compiled once, whichever policies and engines have it.
func TestRulesAreCompiledOnce(t *testing.T) {
	const rego = "package compiled_once\nviolation contains \"no\" if input.object.spec.once"
	first := ruleOf(t, countRule("a", rego))
	other := countRule("b", rego)
	other.Spec.Match.Resources[0].Kinds[0] = "Job"
	if ruleOf(t, other) != first {
		t.Error("what a policy matches is compiled")
	}
	engine := NewEngine(Options{})
	if err := engine.Set(countRule("a", rego)); err != nil {
		t.Fatal(err)
	}
	if engine.entries["a"].inForce.rule != first {
		t.Error("an engine compiles what was compiled")
	}
	if ruleOf(t, countRule("a", rego+" # another")) == first {
		t.Error("another text is the same rule")
	}
	withLib := countRule("a", rego)
	withLib.Spec.Libs = []string{"package lib.a\nb := 1"}
	if ruleOf(t, withLib) == first {
		t.Error("libs do not count")
	}
	if _, err := Compile(countRule("a", "package a\nviolation contains")); err == nil {
		t.Error("nonsense compiles")
	}
}

// What nobody has is not kept, but for the last few.
func TestRulesGoWithTheLastWhoHasThem(t *testing.T) {
	held := weak.Make(ruleOf(t, countRule("a", "package goes\nviolation contains \"no\" if input.object.spec.goes")))
	for i := range recentRules {
		ruleOf(t, countRule("c", "package recent\nviolation contains \"no\" if input.object.spec.n == "+string(rune('0'+i))))
	}
	for deadline := time.Now().Add(10 * time.Second); held.Value() != nil; {
		if runtime.GC(); time.Now().After(deadline) {
			t.Fatal("a rule that nobody has is kept")
		}
	}
}
