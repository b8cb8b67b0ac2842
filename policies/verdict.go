package policies

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// Violation is one fault that a policy found.
type Violation struct {
	// Policy is the name of the WorkloadPolicy.
	Policy string
	// Message says what is wrong; Fix, if the rule gave one, what to write instead.
	Message string
	Fix     string
	// Field is the path of the fault in the v1 object, empty when the rule named none.
	Field string
	// Action is what the violation does to the request.
	Action v1.PolicyAction
	// Stray says why Field cannot be where the fault is, nothing if it can. It is
	// for those who write policies, and told where Request.Stray asks for it.
	Stray string
	// Explanation says how it was found; nil unless Options.Explain.
	Explanation *Explanation
}

// String is the violation in one line: fault, fix and policy.
func (v Violation) String() string {
	if v.Fix == "" {
		return fmt.Sprintf("%s (policy %s)", v.Message, v.Policy)
	}
	return fmt.Sprintf("%s: %s (policy %s)", v.Message, v.Fix, v.Policy)
}

// Strays says that the field of the violation cannot be where the fault is;
// nothing if it can.
func (v Violation) Strays() string {
	if v.Stray == "" {
		return ""
	}
	return fmt.Sprintf("policy %s names the field %s, and %s: let it name the field that is at fault, or none", v.Policy, v.Field, v.Stray)
}

func compareViolations(a, b Violation) int {
	return cmp.Or(
		cmp.Compare(a.Policy, b.Policy),
		cmp.Compare(a.Field, b.Field),
		cmp.Compare(a.Message, b.Message),
		cmp.Compare(a.Fix, b.Fix),
		cmp.Compare(a.Action, b.Action),
	)
}

// ErrorReason says why a policy could not be evaluated.
type ErrorReason string

const (
	// ReasonDeadline means that the policy, or the request, ran out of time.
	ReasonDeadline ErrorReason = "Deadline"
	// ReasonRuntime means that Rego reported an error or a result that is no set of violations.
	ReasonRuntime ErrorReason = "Runtime"
	// ReasonPanic means that the evaluation panicked.
	ReasonPanic ErrorReason = "Panic"
	// ReasonInput means that the objects are too large or are not JSON.
	ReasonInput ErrorReason = "Input"
	// ReasonMemory means that the policy takes too much memory, or would with
	// its next step.
	ReasonMemory ErrorReason = "Memory"
	// ReasonBusy means that no evaluation slot became free in time, or that
	// evaluations of the policy for other requests hang.
	ReasonBusy ErrorReason = "Busy"
	// ReasonNotCompiled means that no version of the policy has compiled yet.
	ReasonNotCompiled ErrorReason = "NotCompiled"
	// ReasonNamespace means that the labels of the namespace are not known.
	ReasonNamespace ErrorReason = "Namespace"
	// ReasonParent means that the labels of the object that a subresource belongs to
	// are not known.
	ReasonParent ErrorReason = "Parent"
	// ReasonInventory means that the inventory that the policy reads is missing.
	ReasonInventory ErrorReason = "Inventory"
	// ReasonConditions means that a match condition fails, so that the API server
	// refuses the request or does not ask. It is told where no API server has
	// evaluated the conditions.
	ReasonConditions ErrorReason = "MatchConditions"
)

// PolicyError says that a policy could not be evaluated for this request.
type PolicyError struct {
	Policy  string
	Reason  ErrorReason
	Message string
	// Action is the failure policy applied: under Fail the policy's own action,
	// under Ignore at most Warn.
	Action v1.PolicyAction
}

// String is the error in one line.
func (e PolicyError) String() string {
	return fmt.Sprintf("policy %s could not be evaluated: %s", e.Policy, e.Message)
}

// Missing says what a policy needs that is not known of a request.
type Missing string

const (
	// MissingUser means that the policy reads the user, or leaves some alone.
	MissingUser Missing = "User"
	// MissingOptions means that the policy reads the options of a request, and
	// nobody makes one.
	MissingOptions Missing = "Options"
	// MissingNamespaceLabels means that what the policy says, or whether it says
	// anything, depends on the labels of the namespace.
	MissingNamespaceLabels Missing = "NamespaceLabels"
	// MissingParent means that whether the policy says anything depends on the labels
	// of the object that a subresource belongs to.
	MissingParent Missing = "Parent"
	// MissingInventory means that the policy reads objects of the cluster.
	MissingInventory Missing = "Inventory"
	// MissingConditions means that the policy's match conditions need what is
	// not known, such as what the user may do.
	MissingConditions Missing = "MatchConditions"
)

// NotEvaluated is a policy that was not asked because something that it needs
// is not known: any answer would be a guess.
type NotEvaluated struct {
	Policy  string
	Missing Missing
	// Partly tells that the policy was judged as far as it goes without: it is
	// among Judged too, and what it found stands.
	Partly bool
}

// Expiring is an exception that let violations pass and ends within a week or,
// for stored objects, whenever.
type Expiring struct {
	Policy     string
	Until      time.Time
	Reason     string
	Violations []Violation
}

// String is the warning in one line.
func (e Expiring) String() string {
	return fmt.Sprintf("passes policy %s only until %s, by an exception (%s): %s",
		e.Policy, e.Until.UTC().Format(time.RFC3339), e.Reason, e.Violations[0].Message)
}

// Verdict is what the policies of one snapshot say to one request. All lists
// are in a deterministic order and without duplicates.
type Verdict struct {
	// Digest is that of the snapshot that judged.
	Digest string
	// Judged are the names of the policies whose rules were evaluated.
	Judged []string
	// Violations that count, whatever their action.
	Violations []Violation
	// Tolerated are violations of an update that the old object had as well.
	Tolerated []Violation
	// Errors are the policies that could not be evaluated.
	Errors []PolicyError
	// Expiring are exceptions that let violations pass: those in their last
	// week and, for stored objects, all.
	Expiring []Expiring
	// Excepted are the policies that a stored object passes by an exception,
	// whatever they say of it; of an offline request, those that are not asked for
	// its sake.
	Excepted []string
	// NotEvaluated are policies that need what is not known of the request, for all
	// that they might find or for a part: the user of audit, preview and offline
	// checks, and what Request.Offline says.
	NotEvaluated []NotEvaluated
}

// Denied returns the violations that refuse the request.
func (v Verdict) Denied() []Violation { return v.withAction(v1.ActionDeny) }

// Warned returns the violations that the author is warned of.
func (v Verdict) Warned() []Violation { return v.withAction(v1.ActionWarn) }

// Audited returns the violations that are only recorded.
func (v Verdict) Audited() []Violation { return v.withAction(v1.ActionAudit) }

func (v Verdict) withAction(action v1.PolicyAction) []Violation {
	var found []Violation
	for _, violation := range v.Violations {
		if violation.Action == action {
			found = append(found, violation)
		}
	}
	return found
}

// Failed returns the errors that refuse the request.
func (v Verdict) Failed() []PolicyError {
	var failed []PolicyError
	for _, e := range v.Errors {
		if e.Action == v1.ActionDeny {
			failed = append(failed, e)
		}
	}
	return failed
}

// Allowed reports whether nothing refuses the request.
func (v Verdict) Allowed() bool {
	return len(v.Denied()) == 0 && len(v.Failed()) == 0
}

// Warnings returns the lines to show to the author of an admitted request:
// warned violations, exceptions that end soon, and errors that are ignored.
func (v Verdict) Warnings() []string {
	var lines []string
	for _, violation := range v.Warned() {
		lines = append(lines, violation.String())
	}
	for _, expiring := range v.Expiring {
		lines = append(lines, expiring.String())
	}
	for _, e := range v.Errors {
		if e.Action == v1.ActionWarn {
			lines = append(lines, e.String())
		}
	}
	return lines
}

func (v *Verdict) sort() {
	slices.Sort(v.Judged)
	slices.Sort(v.Excepted)
	slices.SortFunc(v.NotEvaluated, func(a, b NotEvaluated) int { return cmp.Compare(a.Policy, b.Policy) })
	v.Violations = sortedUnique(v.Violations)
	v.Tolerated = sortedUnique(v.Tolerated)
	slices.SortFunc(v.Errors, func(a, b PolicyError) int { return cmp.Compare(a.Policy, b.Policy) })
	slices.SortFunc(v.Expiring, func(a, b Expiring) int { return cmp.Compare(a.Policy, b.Policy) })
}

func sortedUnique(violations []Violation) []Violation {
	slices.SortFunc(violations, compareViolations)
	return slices.CompactFunc(violations, func(a, b Violation) bool { return compareViolations(a, b) == 0 })
}
