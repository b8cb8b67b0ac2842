package policies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// trial is one policy about to judge one request.
type trial struct {
	policy     *Policy
	action     v1.PolicyAction
	parameters *ast.Term
	// exception lets the request pass; what it lets pass is told all the same,
	// as it ends soon, or nobody makes a request.
	exception *v1.PolicyException
	// passes tells that it lets pass whatever the policy would say, of which
	// nothing is told: only offline is it worth knowing.
	passes bool
	// inventory is nil when the policy reads none.
	inventory *inventoryView
	// lacks are what is missing for a whole answer, first what is told of first.
	// What a rule finds without them stands.
	lacks lacks
	// stored tells that the object is a stored one as it was, of whose writes nothing
	// is known.
	stored bool
}

// without are the needs that the trial does not meet.
func (t trial) without() needs {
	without := t.lacks.needs()
	if t.stored && t.policy.rule.reads.write {
		without |= needsWrite
	}
	return without
}

// onError is what an error does: what a violation would do under failurePolicy
// Fail, and no more than warn under Ignore or an exception.
func (t trial) onError() v1.PolicyAction {
	if t.action == v1.ActionDeny && (t.policy.ignoreErrors || t.exception != nil) {
		return v1.ActionWarn
	}
	return t.action
}

// judgement is the work of judging one request.
type judgement struct {
	snapshot *Snapshot
	request  *Request
	verdict  Verdict

	// labels of the namespace; nil when they are not known, with labelsErr if
	// that is because reading them failed.
	labels    labels.Set
	labelsErr error
	// inventory is the state that all policies see; nil until one asks.
	inventory *inventoryState
	// in is the request as policies see it; nil before one is asked.
	in *input
}

// Judge judges a request by the policies of the snapshot. It returns in time:
// a policy is cut at its deadline, and at ctx's end at the latest; policies
// that were not evaluated by then are Errors. It does not fail otherwise.
func (s *Snapshot) Judge(ctx context.Context, request Request) Verdict {
	kind := request.matchKind()
	var found []*Policy
	if request.Stored && request.Operation == v1.OperationUpdate {
		found = s.index.updated(kind)
	} else {
		found = s.index.lookup(indexKey{kind.Group, kind.Kind, request.Operation, request.SubResource})
	}
	if len(found) == 0 {
		return Verdict{Digest: s.digest}
	}
	matched := request // request itself must not escape: most requests end above
	j := &judgement{snapshot: s, request: &matched, verdict: Verdict{Digest: s.digest}}
	trials := j.trials(found)
	if len(trials) > 0 {
		j.try(ctx, trials)
	}
	j.verdict.sort()
	return j.verdict
}

// trials returns the policies that judge the request, by all that can be told
// without looking at the object.
func (j *judgement) trials(found []*Policy) []trial {
	j.readLabels()
	trials := make([]trial, 0, len(found))
	for _, policy := range found {
		if !j.asked(policy) {
			continue
		}
		known, ok := j.labelsFor(policy)
		if !ok {
			j.withoutLabels(policy)
			continue
		}
		if j.request.Namespace != "" && !policy.matcher.namespaceSelector.Matches(known) || !j.holds(policy) {
			continue
		}
		exception := exceptionFor(policy.exceptions, j.request)
		passes := exception != nil && !j.request.Stored && !endsSoon(exception, j.request.Now)
		if passes && !j.request.Offline {
			continue
		}
		if exception != nil && j.request.Stored {
			j.verdict.Excepted = append(j.verdict.Excepted, policy.name)
		}
		t := trial{policy: policy, exception: exception, passes: passes}
		t.action, t.parameters = policy.settings.in(known)
		trials = append(trials, t)
	}
	return trials
}

// asked reports whether a policy is asked by all that the request says of
// itself.
func (j *judgement) asked(policy *Policy) bool {
	if policy.matcher.excludes(j.request) || !j.request.Scope.includes(policy, j.snapshot.entries) || j.request.Reach.bars(policy, j.request) {
		return false
	}
	if j.request.Offline && !j.request.UserKnown && policy.matcher.excludesUsers() {
		j.leave(policy, MissingUser, false)
		return false
	}
	return true
}

// holds reports whether a policy's match conditions do, where no API server has
// evaluated them. It comes last of what is asked: it looks at the object.
func (j *judgement) holds(policy *Policy) bool {
	if j.request.Scope.Holds == nil || !policy.entry.Conditional() {
		return true
	}
	holds, err := j.request.Scope.Holds(policy.conditions)
	if failure, ok := errors.AsType[conditionFailure](err); ok {
		j.failCondition(policy, failure)
	} else if err != nil && !j.request.Offline && !j.request.Stored {
		j.fail(trial{policy: policy, action: policy.settings.action}, ReasonConditions, fmt.Sprintf("its match conditions cannot be evaluated: %v", err))
	} else if err != nil {
		j.leave(policy, MissingConditions, false)
	}
	return err == nil && holds
}

// conditionFailure is an error of Scope.Holds that says that a condition fails for
// the object, and not that something is not known.
type conditionFailure interface {
	error
	FailedCondition() (fault, fix string)
}

// failCondition records what the API server makes of a match condition that
// fails, whatever the policy's action is.
func (j *judgement) failCondition(policy *Policy, failure conditionFailure) {
	fault, fix := failure.FailedCondition()
	consequence, action := "the API server refuses every write of it", v1.ActionDeny
	if policy.ignoreErrors {
		consequence, action = "the API server does not ask about it", v1.ActionWarn
	}
	j.verdict.Errors = append(j.verdict.Errors, PolicyError{
		Policy: policy.name, Reason: ReasonConditions, Message: fmt.Sprintf("%s, and %s: %s", fault, consequence, fix), Action: action,
	})
}

// readLabels asks for the labels of the namespace, once.
func (j *judgement) readLabels() {
	switch {
	case j.request.Namespace == "":
		j.labels = labels.Set{}
	case j.request.NamespaceLabels != nil:
		j.labels, j.labelsErr = j.request.NamespaceLabels()
		if j.labelsErr != nil {
			j.labels = nil
		} else if j.labels == nil {
			j.labels = labels.Set{}
		}
	}
}

// withoutLabels records that a policy needs labels that are not there.
func (j *judgement) withoutLabels(policy *Policy) {
	if j.request.Offline {
		j.leave(policy, MissingNamespaceLabels, false)
		return
	}
	j.fail(trial{policy: policy, action: policy.settings.action}, ReasonNamespace,
		fmt.Sprintf("the labels of namespace %s are not known: %v", j.request.Namespace, j.labelsErr))
}

// labelsFor gives the labels of the namespace as far as a policy looks at them. Of
// a namespace whose labels are not known, its name is one: nobody can give it
// another. It reports whether that will do: offline, a rule that reads others says
// what it can.
func (j *judgement) labelsFor(policy *Policy) (labels.Set, bool) {
	if j.labels != nil || !policy.needsLabels() {
		return j.labels, true
	}
	named := labels.Set{corev1.LabelMetadataName: j.request.Namespace}
	reads := policy.rule != nil && policy.rule.reads.namespace
	return named, policy.leftOutBy(named) || policy.settledBy(named) && (j.request.Offline || !reads)
}

// needsLabels reports whether the verdict may depend on the namespace's labels.
func (p *Policy) needsLabels() bool {
	return !p.matcher.namespaceSelector.Empty() || len(p.settings.overrides) > 0 ||
		(p.rule != nil && p.rule.reads.namespace)
}

// try parses the request and has the policies judge it.
func (j *judgement) try(ctx context.Context, trials []trial) {
	if j.request.Load != nil {
		var err error
		if j.request.Object, j.request.OldObject, err = j.request.Load(); err != nil {
			j.failAll(trials, ReasonInput, err.Error())
			return
		}
	}
	if size, limit := len(j.request.Object)+len(j.request.OldObject), j.snapshot.limits.MaxInputBytes; size > limit {
		j.failAll(trials, ReasonInput, fmt.Sprintf("the request holds %d bytes and at most %d are judged", size, limit))
		return
	}
	var needs reads
	for _, t := range trials {
		if t.policy.rule != nil {
			needs = needs.and(t.policy.rule.reads)
		}
	}
	in, err := newInput(j.request, j.labels, needs)
	if err != nil {
		j.failAll(trials, ReasonInput, err.Error())
		return
	}
	j.in = in
	ready := j.ready(in, trials)
	if len(ready) == 0 {
		return
	}
	newAttempt(j, in).run(ctx, ready)
}

// ready drops the trials that the labels of the object rule out and those that
// have no rule, and notes what the others lack.
func (j *judgement) ready(in *input, trials []trial) []trial {
	asked := objectLabels{judgement: j, in: in}
	ready := trials[:0]
	for _, t := range trials {
		p := t.policy
		selected, err := asked.selectedBy(p)
		switch {
		case err != nil && j.request.Offline:
			j.leave(p, MissingParent, false)
			continue
		case err != nil:
			j.fail(t, ReasonParent, err.Error())
			continue
		case !selected:
			continue
		}
		if t.passes {
			j.verdict.Excepted = append(j.verdict.Excepted, p.name)
			continue
		}
		if p.rule == nil {
			j.fail(t, ReasonNotCompiled, "no version of it has compiled; its Compiled condition says why")
			continue
		}
		j.noteLacks(&t)
		ready = append(ready, t)
	}
	return ready
}

// noteLacks notes what of the things that its rule reads the trial has to do without.
func (j *judgement) noteLacks(t *trial) {
	reads := t.policy.rule.reads
	if j.labels == nil && reads.namespace {
		t.lacks = append(t.lacks, lack{missing: MissingNamespaceLabels})
	}
	if !j.request.UserKnown && reads.user {
		t.lacks = append(t.lacks, lack{missing: MissingUser})
	}
	if (j.request.Stored || j.request.OptionsUnknown) && reads.options {
		t.lacks = append(t.lacks, lack{missing: MissingOptions})
	}
	if missing := j.takeInventory(t); missing != nil {
		t.lacks = append(t.lacks, *missing)
	}
}

// takeInventory gives the trial its view of the inventory. It returns what of it
// is missing, nil if there is all that the policy reads.
func (j *judgement) takeInventory(t *trial) *lack {
	if len(t.policy.inventoryKinds) == 0 {
		return nil
	}
	if j.inventory == nil {
		j.inventory = j.snapshot.inventory.state.Load()
	}
	view, missing, ok := j.inventory.view(t.policy)
	if ok {
		t.inventory = view
		return nil
	}
	apiVersion, kind := missing.ToAPIVersionAndKind()
	if why := j.inventory.lacks[missing]; why != "" {
		return &lack{MissingInventory, fmt.Errorf("there are no objects of kind %s (%s) for it to read: %s", kind, apiVersion, why)}
	}
	return &lack{MissingInventory, fmt.Errorf("the objects of kind %s (%s) that it reads are not synced yet", kind, apiVersion)}
}

// record adds what a policy found to the verdict.
func (j *judgement) record(t trial, result result) Outcome {
	name := t.policy.name
	j.verdict.Judged = append(j.verdict.Judged, name)
	for _, one := range result.tolerated {
		j.verdict.Tolerated = append(j.verdict.Tolerated, violation(name, t.action, one))
	}
	if len(result.findings) == 0 {
		return OutcomePassed
	}
	var found []Violation
	for _, one := range result.findings {
		said := violation(name, t.action, one)
		said.Stray = j.stray(t.policy, one)
		found = append(found, said)
	}
	if t.exception != nil {
		j.verdict.Expiring = append(j.verdict.Expiring, Expiring{
			Policy: name, Until: t.exception.Until.Time, Reason: t.exception.Reason, Violations: sortedUnique(found),
		})
		return OutcomePassed
	}
	j.verdict.Violations = append(j.verdict.Violations, found...)
	return OutcomeViolated
}

// stray says why the field of a finding cannot be where the fault is, to those
// who may mend the rule.
func (j *judgement) stray(policy *Policy, one finding) string {
	if one.field == "" || !j.request.Stray {
		return ""
	}
	site := faultSite{object: valueOf(j.in.object), reads: &policy.rule.ofObject, fields: j.request.Fields}
	reason := site.stray(one.field)
	there := valueAt(site.object, one.field) != nil
	if reason == strayVague || reason == strayUnread && there {
		return "" // It may stand for the object, as metadata.name does.
	}
	return reason
}

// violation applies the policy's action; what a warn rule finds never denies.
func violation(policy string, action v1.PolicyAction, one finding) Violation {
	if one.warn && action == v1.ActionDeny {
		action = v1.ActionWarn
	}
	return Violation{Policy: policy, Message: one.message, Field: one.field, Fix: one.fix, Action: action, Explanation: one.explanation}
}

// fail records that a policy was not evaluated.
func (j *judgement) fail(t trial, reason ErrorReason, message string) {
	j.verdict.Errors = append(j.verdict.Errors, PolicyError{
		Policy: t.policy.name, Reason: reason, Message: message, Action: t.onError(),
	})
	j.observe(t, Outcome(reason), 0)
}

// observe tells of an evaluation for a request.
func (j *judgement) observe(t trial, outcome Outcome, took time.Duration) {
	if !j.request.Stored {
		j.snapshot.limits.Observer.Evaluated(t.policy.name, outcome, took)
	}
}

// leave records that a policy was not asked, or partly what can be told of it.
func (j *judgement) leave(policy *Policy, missing Missing, partly bool) {
	j.verdict.NotEvaluated = append(j.verdict.NotEvaluated, NotEvaluated{Policy: policy.name, Missing: missing, Partly: partly})
}

func (j *judgement) failAll(trials []trial, reason ErrorReason, message string) {
	for _, t := range trials {
		if !t.passes {
			j.fail(t, reason, message)
		}
	}
}
