package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// An Entry names the policies that the API server asks for by one webhook:
// those with the same failure policy and the same match conditions, which the
// API server evaluates before it asks. It is made of lower-case letters, digits
// and dashes, at most 16 of them.
type Entry string

// Entries of policies without match conditions.
const (
	EntryFail   Entry = "fail"
	EntryIgnore Entry = "ignore"
)

// EntryOf returns the entry of a policy.
func EntryOf(spec *v1.WorkloadPolicySpec) Entry {
	plain := EntryFail
	if spec.FailurePolicy == v1.FailurePolicyIgnore {
		plain = EntryIgnore
	}
	if len(spec.MatchConditions) == 0 {
		return plain
	}
	// Conditions are made of strings, which encode always.
	raw, _ := json.Marshal(spec.MatchConditions)
	sum := sha256.Sum256(raw)
	return plain + "-" + Entry(hex.EncodeToString(sum[:4]))
}

// Conditional reports whether the policies of the entry have match conditions.
func (e Entry) Conditional() bool { return strings.Contains(string(e), "-") }

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
	// Upstream asks only the policies that judge upstream kinds as well.
	Upstream bool
	// Only asks no others than the policies of these names; nil asks all.
	Only map[string]bool
}

// includes reports whether the scope asks a policy, whose conditions hold.
func (s *Scope) includes(p *Policy, entries map[Entry]bool) bool {
	switch {
	case s.Upstream && !p.upstream, s.Only != nil && !s.Only[p.name]:
		return false
	case s.Entry == "":
		return s.Holds != nil || !p.entry.Conditional()
	case entries[s.Entry]:
		return p.entry == s.Entry
	default:
		return p.entry.FailurePolicy() == s.Entry.FailurePolicy()
	}
}
