package policies

import "time"

// Outcome is how the evaluation of one policy for one request ended: one of
// the constants or an ErrorReason.
type Outcome string

const (
	// OutcomePassed means that the rule found nothing that counts.
	OutcomePassed Outcome = "Passed"
	// OutcomeViolated means that the rule found violations.
	OutcomeViolated Outcome = "Violated"
)

// Observer is told of every evaluation. Its methods are called concurrently
// and on the request path: they must be quick.
type Observer interface {
	// Evaluated reports one policy judged for one request.
	Evaluated(policy string, outcome Outcome, took time.Duration)
	// Removed reports that a policy is no longer in force. A request that had
	// begun may still be judged by it.
	Removed(policy string)
}

type noObserver struct{}

func (noObserver) Evaluated(string, Outcome, time.Duration) {}

func (noObserver) Removed(string) {}
