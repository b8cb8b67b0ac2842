package policies

import (
	"context"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// ratchet sets aside the findings of an update that the stored object has as
// well and that the update does not touch. The old object is judged by the
// same rule with the same parameters, today, and as audit judges what is stored:
// as if somebody unknown created it. What a rule finds of who writes, or of the
// change, is no fault of the stored object.
//
// A finding is tolerated if the old object has one at the same field, where the
// items of lists are told by their names (see places), with the same message, and
// the field's subtree is unchanged (without a field: the whole spec, and the labels and
// annotations that the rule names).
//
// The message counts because a rule may report at one place what depends on
// others: a total over all roles is reported at the largest, and when another
// grows the field's subtree is the same but the total in the message is not. It
// counts as the rule says it, also past the length that is shown.
//
// What the policy was not about before, by the labels of the stored object or the
// policy's conditions, it never let be: nothing of it is tolerated. So an object
// that loses what exempts it has to conform, as if it were new.
//
// A field that cannot be where the fault is counts as none (see stray): it stays
// as it is whatever is written, and would let every update pass.
func (w *worker) ratchet(ctx context.Context, t trial, found decision, cancel topdown.Cancel) result {
	in := w.attempt.in
	request := w.attempt.judgement.request
	findings := found.findings
	if len(findings) == 0 || in.oldObject == nil || request.Operation != v1.OperationUpdate || request.Stored {
		return result{findings: findings}
	}
	// Of what was not collected nobody can tell whether it is old.
	if found.more || !w.reachedBefore(t) {
		return result{findings: findings}
	}
	t.stored = true
	old := w.before(t)
	before, err := old.judge(ctx, t, cancel)
	if err != nil {
		// What cannot be shown to be old counts.
		return result{findings: findings}
	}
	change := &change{
		faultSite: faultSite{object: in.object.Value, reads: &t.policy.rule.ofObject, fields: w.attempt.judgement.request.Fields},
		oldObject: in.oldObject.Value,
		operation: string(old.in.operation.Value.(ast.String)),
	}
	known, places := map[string][]finding{}, placesIn(in.oldObject.Value)
	for _, one := range before.findings {
		place := places.of(one.field)
		known[place] = append(known[place], one)
	}
	var r result
	places = placesIn(in.object.Value)
	for _, one := range findings {
		if slices.ContainsFunc(known[places.of(one.field)], func(old finding) bool { return change.tolerates(one, old) }) {
			r.tolerated = append(r.tolerated, one)
		} else {
			r.findings = append(r.findings, one)
		}
	}
	return r
}

// reachedBefore reports whether a policy is about the old object, by all but its
// rule.
func (w *worker) reachedBefore(t trial) bool {
	selector, scope := t.policy.matcher.objectSelector, &w.attempt.judgement.request.Scope
	// The labels of a parent are not what a write of its subresource changes.
	own := !w.attempt.judgement.request.ofParent()
	if own && !selector.Empty() && !selector.Matches(labelsOf(w.attempt.in.oldObject)) {
		return false
	}
	return !t.policy.entry.Conditional() || scope.HeldBefore == nil || scope.HeldBefore(t.policy.conditions)
}

// before gives the evaluation of the old object for a policy: as a creation, or
// as an update where it is not asked about those.
func (w *worker) before(t trial) *evaluation {
	kind := w.attempt.judgement.request.matchKind()
	creating := w.attempt.judgement.snapshot.index.lookup(indexKey{kind.Group, kind.Kind, v1.OperationCreate, ""})
	operation, old := v1.OperationCreate, &w.created
	if !slices.Contains(creating, t.policy) {
		operation, old = v1.OperationUpdate, &w.updated
	}
	if *old == nil {
		*old = &evaluation{in: w.attempt.in.asOld(operation), now: w.eval.now}
	}
	return *old
}

// change compares an object with its stored self.
type change struct {
	faultSite
	oldObject ast.Value
	// operation is that as which the old object was judged.
	operation string
}

// tolerates compares findings at the same place.
func (c *change) tolerates(now, old finding) bool {
	if now.warn != old.warn || !c.sameMessage(now.said, old.said) {
		return false
	}
	if now.field == "" || c.stray(now.field) != "" {
		return c.specUnchanged() && c.metadataUnchanged()
	}
	return c.unchanged(now.field, old.field) && sameValue(now.details, old.details)
}

// sameMessage compares messages, which may name the operation.
func (c *change) sameMessage(now, old string) bool {
	return now == old || strings.ReplaceAll(now, string(v1.OperationUpdate), c.operation) == old
}

// unchanged reports whether the subtree at a field is the same as it was at its
// place before, absence included.
func (c *change) unchanged(path, before string) bool {
	return sameValue(valueAt(c.object, path), valueAt(c.oldObject, before))
}

// specUnchanged compares spec, and in kinds that have none (ConfigMap, Role)
// everything but metadata and status.
func (c *change) specUnchanged() bool {
	return sameValue(withoutRecord(c.object), withoutRecord(c.oldObject))
}

// metadataUnchanged compares the labels and annotations that the rule names. Those
// of names that its text does not tell may be any, and are written by controllers
// all the time: of these, its message has to tell.
func (c *change) metadataUnchanged() bool {
	metadata := c.reads.named.members["metadata"]
	if metadata == nil {
		return true
	}
	for _, group := range []string{"labels", "annotations"} {
		read := metadata.members[group]
		if read == nil {
			continue
		}
		for name := range read.members {
			path := []string{"metadata", group, name}
			if name != anyMember && !sameValue(valueIn(c.object, path), valueIn(c.oldObject, path)) {
				return false
			}
		}
	}
	return true
}

// withoutRecord drops what is written about an object rather than in it.
func withoutRecord(value ast.Value) ast.Value {
	object, ok := value.(ast.Object)
	if !ok {
		return value
	}
	kept := ast.NewObjectWithCapacity(object.Len())
	object.Foreach(func(key, member *ast.Term) {
		switch name, _ := key.Value.(ast.String); name {
		case "apiVersion", "kind", "metadata", "status":
		default:
			kept.Insert(key, member)
		}
	})
	return kept
}

func sameValue(a, b ast.Value) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Compare(b) == 0
}
