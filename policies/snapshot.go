package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// Snapshot is the set of policies in force at one moment. It is immutable; a
// request is judged by one snapshot from beginning to end.
type Snapshot struct {
	index index
	// entries are those that some policy is in.
	entries map[Entry]bool
	digest  string
	states  []PolicyState
	limits  *Options
	slots   chan struct{}
	// inventory goes on changing; a request takes its state once.
	inventory *Inventory
}

// PolicyState says what of a policy is in force.
type PolicyState struct {
	Name string
	// UID is that of the policy that the engine was given last by that name.
	UID types.UID
	// Generation is the newest one that the engine was given, and Err, a
	// *CompileError, what is wrong with it.
	Generation int64
	Err        error
	// Enforced is the generation that judges requests, 0 when none has
	// compiled and the policy answers by its failure policy.
	Enforced int64
	// Spec is that of the generation that judges requests, nil when none has
	// compiled. It must not be changed. Digest identifies it.
	Spec   *v1.WorkloadPolicySpec
	Digest string
	// NamespaceLabels tells that the verdict may depend on the labels of the
	// namespace.
	NamespaceLabels bool
}

// Digest identifies the policies in force, by name and spec: two engines that
// were given the same policies have the same digest.
func (s *Snapshot) Digest() string { return s.digest }

// Policies returns the states of all policies in the order of their names.
func (s *Snapshot) Policies() []PolicyState {
	return append([]PolicyState(nil), s.states...)
}

// Judges reports whether some policy judges objects of a kind, be it when they
// are created, updated or deleted.
func (s *Snapshot) Judges(kind schema.GroupKind) bool {
	for _, operation := range []v1.PolicyOperation{v1.OperationCreate, v1.OperationUpdate, v1.OperationDelete} {
		if len(s.index.lookup(indexKey{kind.Group, kind.Kind, operation, ""})) > 0 {
			return true
		}
	}
	return false
}

// newSnapshot makes a snapshot of entries that are sorted by name, and of their
// policies in force.
func newSnapshot(entries []*entry, inForce []*Policy, engine *Engine) *Snapshot {
	s := &Snapshot{limits: engine.limits, slots: engine.slots, inventory: engine.inventory, entries: map[Entry]bool{}}
	sum := sha256.New()
	for _, e := range entries {
		state := PolicyState{Name: e.inForce.name, UID: e.uid, Generation: e.generation}
		if e.err != nil {
			state.Err = e.err
		}
		compiled := e.inForce.rule != nil
		if compiled {
			state.Enforced, state.Spec, state.Digest = e.inForce.generation, e.inForce.spec, e.inForce.digest
			state.NamespaceLabels = e.inForce.needsLabels()
		}
		s.states = append(s.states, state)
		s.entries[e.inForce.entry] = true
		_, _ = io.WriteString(sum, fmt.Sprintf("%q %s %t\n", e.inForce.name, e.inForce.digest, compiled))
	}
	s.digest = hex.EncodeToString(sum.Sum(nil))
	s.index = newIndex(inForce)
	return s
}
