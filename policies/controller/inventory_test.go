package controller

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// A kind whose objects may be out of date for good is dropped; one whose API
// server is away for a moment is kept.
func TestFailureOfInventory(t *testing.T) {
	nodes := schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	resource := schema.GroupResource{Resource: "nodes"}
	tests := map[string]struct {
		err        error
		wantReason string
		wantIn     string
		wantKept   bool
	}{
		"a kind that is not served": {
			err: &meta.NoKindMatchError{GroupKind: nodes.GroupKind()}, wantReason: v1.WorkloadPolicyKindNotServedReason, wantIn: "as soon as it does",
		},
		"a kind that is served no more": {
			err: errors.Join(apierrors.NewNotFound(resource, ""), nil), wantReason: v1.WorkloadPolicyKindNotServedReason, wantIn: "does not serve it",
		},
		"a kind that may not be listed": {
			err: apierrors.NewForbidden(resource, "", errors.New("no")), wantReason: v1.WorkloadPolicyInventoryForbiddenReason, wantIn: stored.AggregationLabel,
		},
		"an API server that is away": {
			err: errors.New("connection refused"), wantReason: v1.WorkloadPolicyInventoryFailedReason, wantIn: "connection refused", wantKept: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			engine := policies.NewEngine(policies.Options{})
			policy := policyOf("a", 4, rule, func(spec *v1.WorkloadPolicySpec) {
				spec.Inventory = []v1.InventoryKind{{APIVersion: "v1", Kind: "Node"}}
			})
			if err := engine.Set(policy); err != nil {
				t.Fatal(err)
			}
			inventory := newInventory(engine, nil, kinds)
			if _, state := inventory.stateOf(policy); state.settled() {
				t.Error("settled before anything was read")
			}
			w := &inventoryWatch{kind: nodes, policies: []string{"a"}}
			inventory.watches[nodes] = w
			store := &inventoryStore{inventory: inventory, watch: w, ctx: t.Context()}
			if err := store.Replace([]any{fixtures.Object(t, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`)}, "1"); err != nil {
				t.Fatal(err)
			}
			if got := inventorySyncedCondition(policy, nodes, w.state); got.Status != metav1.ConditionTrue || got.ObservedGeneration != 4 {
				t.Errorf("synced, and the condition is %+v", got)
			}
			inventory.failed(t.Context(), w, tc.err)
			kind, state := inventory.stateOf(policy)
			if tc.wantKept {
				kind, state = nodes, w.state
				state.synced = false
			}
			got := inventorySyncedCondition(policy, kind, state)
			if got.Status != metav1.ConditionFalse || got.Reason != tc.wantReason || !strings.Contains(got.Message, "kind Node (v1)") || !strings.Contains(got.Message, tc.wantIn) {
				t.Errorf("got condition %+v, want reason %s and %q", got, tc.wantReason, tc.wantIn)
			}
			if kept := engine.Inventory().Count(nodes) == 1; kept != tc.wantKept || w.state.synced != tc.wantKept {
				t.Errorf("kept: %t, want %t", kept, tc.wantKept)
			}
			if len(inventory.changed) != 2 {
				t.Errorf("the status was to follow %d times, want 2", len(inventory.changed))
			}
		})
	}
}

func TestStateTellsPoliciesOfOneNameApart(t *testing.T) {
	engine := policies.NewEngine(policies.Options{})
	first, second := policyOf("a", 1, rule), policyOf("a", 1, rule)
	first.UID, second.UID = "1", "2"
	s := &status{engine: engine}
	for _, policy := range []*v1.WorkloadPolicy{first, second} {
		if err := engine.Set(policy); err != nil {
			t.Fatal(err)
		}
		if got := s.state("a"); got.UID != policy.UID || got.Enforced != 1 {
			t.Errorf("got %+v for the policy with UID %s", got, policy.UID)
		}
	}
}
