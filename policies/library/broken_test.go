package library_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/library"
)

// TestBrokenObjectsAreJudged puts nulls and values of wrong types anywhere into
// the objects of the cases: rules may find nothing, and must not fail.
func TestBrokenObjectsAreJudged(t *testing.T) {
	loaded, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	engine := policies.NewEngine(policies.Options{Deadline: 10 * time.Second})
	if faults := engine.Replace(loaded); len(faults) > 0 {
		t.Fatal(faults)
	}
	for _, need := range engine.Inventory().Needs() {
		if err := engine.Inventory().Replace(need.Kind, nil); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	for _, policy := range loaded {
		for _, tc := range readCases(t, policy.Name) {
			request := requestOf(t, tc)
			var object any
			if err := json.Unmarshal(tc.Object, &object); err != nil {
				t.Fatal(err)
			}
			for range 40 {
				broken, err := json.Marshal(breakAt(random, object))
				if err != nil {
					t.Fatal(err)
				}
				request.Object = broken
				request.Scope.Holds = func([]admissionregistrationv1.MatchCondition) (bool, error) { return true, nil }
				verdict := engine.Snapshot().Judge(t.Context(), request)
				if len(verdict.Errors) > 0 || len(verdict.Judged) == 0 {
					t.Fatalf("%s: %v", broken, verdict.Errors)
				}
			}
		}
	}
}

// breakAt returns a copy of a value with one thing in it replaced.
func breakAt(random *rand.Rand, value any) any {
	junk := []any{nil, true, 3, -1, 2.5, "x", "", []any{}, map[string]any{}, []any{nil}, map[string]any{"x": nil}}
	if random.IntN(6) == 0 {
		return junk[random.IntN(len(junk))]
	}
	switch container := value.(type) {
	case map[string]any:
		if len(container) == 0 {
			break
		}
		names := slices.Sorted(maps.Keys(container))
		chosen := names[random.IntN(len(names))]
		broken := maps.Clone(container)
		broken[chosen] = breakAt(random, container[chosen])
		return broken
	case []any:
		if len(container) == 0 {
			break
		}
		broken := append([]any(nil), container...)
		chosen := random.IntN(len(broken))
		broken[chosen] = breakAt(random, broken[chosen])
		return broken
	}
	return junk[random.IntN(len(junk))]
}
