package audit

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
)

// A standing is how an object stands with a policy: Deny, Warn or Audit if it
// breaks it, or one of these. What the object does not tell follows standingLacks.
type standing string

const (
	standingPasses   standing = "Passes"
	standingExcepted standing = "Excepted"
	standingFailed   standing = "Failed"
	standingLacks    standing = "Lacks"
)

// rank orders standings by how much they matter.
func (s standing) rank() int {
	switch s {
	case standing(v1.ActionDeny):
		return 0
	case standing(v1.ActionWarn):
		return 1
	case standing(v1.ActionAudit):
		return 2
	case standingFailed:
		return 3
	case standingExcepted:
		return 4
	case standingPasses:
		return 6
	default:
		return 5
	}
}

// violates reports whether the object breaks the policy.
func (s standing) violates() bool { return s.rank() <= 2 }

// A policyResult is what one policy says of one object.
type policyResult struct {
	policy   string
	standing standing
	// violations are what is wrong, of objects that are excepted too.
	violations []stored.Violation
	// fault says why the policy could not be evaluated.
	fault string
	// until is when the exception ends that reason was given for; due, when to
	// judge again, zero for not before something changes.
	until  time.Time
	reason string
	due    time.Time
}

// Bounds on what is kept of an object that breaks a policy.
const (
	maxViolations = 20
	maxMessage    = 1024
)

// retryAfter is when to evaluate a policy again that could not be for want of
// time, or of the labels of a namespace.
const retryAfter = time.Minute

// resultsOf sorts judgements of one object by policy.
func resultsOf(judgements []stored.Judgement, now time.Time) []policyResult {
	found := map[string]*policyResult{}
	note := func(policy string, s standing) *policyResult {
		one := found[policy]
		if one == nil {
			one = &policyResult{policy: policy, standing: s}
			found[policy] = one
		}
		if s.rank() < one.standing.rank() {
			one.standing = s
		}
		return one
	}
	for _, j := range judgements {
		for _, policy := range j.Judged {
			note(policy, standingPasses)
		}
		for _, missing := range j.NotEvaluated {
			note(missing.Policy, standingLacks+standing(missing.Missing))
		}
		for _, violation := range j.Violations {
			note(violation.Policy, standing(violation.Action)).keep(j, violation)
		}
		for _, exception := range j.Expiring {
			one := note(exception.Policy, standingExcepted)
			one.until, one.due, one.reason = exception.Until, exception.Until, exception.Reason
			for _, violation := range exception.Violations {
				one.keep(j, violation)
			}
		}
		for _, failure := range j.Errors {
			one := note(failure.Policy, standingFailed)
			one.fault = stored.Shorten(failure.Message, maxMessage)
			switch failure.Reason {
			case policies.ReasonDeadline, policies.ReasonBusy, policies.ReasonNamespace:
				one.due = now.Add(retryAfter)
			}
		}
	}
	sorted := make([]policyResult, 0, len(found))
	for _, policy := range slices.Sorted(maps.Keys(found)) {
		sorted = append(sorted, *found[policy])
	}
	return sorted
}

// keep keeps a violation, cut to what a report may hold of it.
func (r *policyResult) keep(of stored.Judgement, violation policies.Violation) {
	if len(r.violations) >= maxViolations {
		return
	}
	one := of.Locate(violation)
	one.Path = stored.Shorten(one.Path, maxMessage)
	one.Message, one.Fix = stored.Shorten(one.Message, maxMessage), stored.Shorten(one.Fix, maxMessage)
	r.violations = append(r.violations, one)
}

// An auditedObject is an object that there is something to say of.
type auditedObject struct {
	kind      schema.GroupVersionKind
	namespace string
	name      string
	uid       types.UID
	// results are of the policies that it does not simply pass, by name.
	results []policyResult
}

func (o *auditedObject) of(policy string) *policyResult {
	if o == nil {
		return nil
	}
	for i := range o.results {
		if o.results[i].policy == policy {
			return &o.results[i]
		}
	}
	return nil
}
