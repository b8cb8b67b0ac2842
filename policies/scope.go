package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// An Entry names the policies that the API server asks for by one webhook:
// those with the same failure policy, the same match conditions and, if they
// fail closed, the same selector of namespaces. The API server evaluates both
// before it asks, so while no Penstock answers, only what is selected is
// refused. It is made of lower-case letters, digits and dashes, at most 16 of
// them.
type Entry string

// Entries of policies without match conditions.
const (
	EntryFail   Entry = "fail"
	EntryIgnore Entry = "ignore"
)

// selecting begins the entries that have a selector and no match conditions.
const selecting = EntryFail + "-in-"

// EntryOf returns the entry of a policy.
func EntryOf(spec *v1.WorkloadPolicySpec) Entry {
	plain := EntryFail
	if spec.FailurePolicy == v1.FailurePolicyIgnore {
		plain = EntryIgnore
	}
	selector := EntrySelector(spec)
	switch {
	case len(spec.MatchConditions) > 0 && selector != nil:
		return plain + "-" + hashed(spec.MatchConditions, selector)
	case len(spec.MatchConditions) > 0:
		return plain + "-" + hashed(spec.MatchConditions)
	case selector != nil:
		return selecting + hashed(selector)
	default:
		return plain
	}
}

// EntrySelector returns the selector of namespaces that the API server evaluates
// before it asks for a policy, nil if it asks in all namespaces: of a policy that
// fails open, nothing is refused while nobody answers. One that is invalid
// selects everything, as it does in the engine.
func EntrySelector(spec *v1.WorkloadPolicySpec) *metav1.LabelSelector {
	if spec.FailurePolicy == v1.FailurePolicyIgnore {
		return nil
	}
	from := spec.Match.NamespaceSelector
	if compiled, faults := selector(from, nil); len(faults) > 0 || compiled.Empty() {
		return nil
	}
	return from
}

// hashed is what identifies parts of a policy, which are made of strings and
// encode always.
func hashed(parts ...any) Entry {
	sum := sha256.New()
	for _, part := range parts {
		raw, _ := json.Marshal(part)
		sum.Write(raw)
	}
	return Entry(hex.EncodeToString(sum.Sum(nil)[:4]))
}

// Conditional reports whether the policies of the entry have match conditions.
func (e Entry) Conditional() bool {
	return strings.Contains(string(e), "-") && !strings.HasPrefix(string(e), string(selecting))
}

// FailurePolicy is that of the entry's policies.
func (e Entry) FailurePolicy() v1.PolicyFailurePolicy {
	if e == EntryIgnore || strings.HasPrefix(string(e), string(EntryIgnore)+"-") {
		return v1.FailurePolicyIgnore
	}
	return v1.FailurePolicyFail
}

// ProbeAnswer is the message that a probe of the webhook configuration is
// refused with. Whoever gets it for the fingerprint of a configuration knows
// that the API server works by that.
func ProbeAnswer(fingerprint string) string {
	return "this is a probe of the webhook configuration " + fingerprint
}

// Scope says which of the policies that match a request are asked. The zero
// value asks those without match conditions.
type Scope struct {
	// Entry asks the policies of one entry, whose conditions have been found to
	// hold. While the API server and a replica disagree on the entries, which
	// they do for a moment after a policy was edited, the snapshot may not know
	// it: then every policy of its failure policy is asked. Too much is judged
	// for that moment, and nothing slips through.
	Entry Entry
	// Holds evaluates match conditions where no API server did. An error means
	// that they need what is not known; the policy is not evaluated then.
	Holds func([]admissionregistrationv1.MatchCondition) (bool, error)
	// HeldBefore evaluates match conditions on the object before an update: whether
	// they left it to the policy. Nil stands for all that do. It may be called by
	// another goroutine.
	HeldBefore func([]admissionregistrationv1.MatchCondition) bool
	// Upstream asks only the policies that judge upstream kinds as well.
	Upstream bool
	// Only asks no others than the policies of these names; nil asks all. Except
	// asks none of these.
	Only, Except map[string]bool
}

// includes reports whether the scope asks a policy, whose conditions hold.
func (s *Scope) includes(p *Policy, entries map[Entry]bool) bool {
	switch {
	case s.Upstream && !p.upstream, s.Only != nil && !s.Only[p.name], s.Except[p.name]:
		return false
	case s.Entry == "":
		return s.Holds != nil || !p.entry.Conditional()
	case entries[s.Entry]:
		return p.entry == s.Entry
	default:
		return p.entry.FailurePolicy() == s.Entry.FailurePolicy()
	}
}
