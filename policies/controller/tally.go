package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
)

// maxWarning bounds a warning: the API server cuts longer ones where there are
// many.
const maxWarning = 250

// maxNamed is how many objects a preview names.
const maxNamed = 5

// An outcome is what judgements of one object come to.
type outcome struct {
	// asked tells that the policy is asked about the object, and no exception
	// lets it pass.
	asked bool
	// violations count, in the order of how much they do; errors are policies
	// that could not be evaluated.
	violations []stored.Violation
	errors     []policies.PolicyError
	missing    []policies.NotEvaluated
}

func outcomeOf(judgements []stored.Judgement) outcome {
	var o outcome
	for _, j := range judgements {
		o.asked = o.asked || len(j.Excepted) == 0 && len(j.Judged)+len(j.Errors)+len(j.NotEvaluated) > 0
		for _, violation := range j.Violations {
			o.violations = append(o.violations, j.Locate(violation))
		}
		o.errors = append(o.errors, j.Errors...)
		o.missing = append(o.missing, j.NotEvaluated...)
	}
	slices.SortStableFunc(o.violations, func(a, b stored.Violation) int { return stored.CompareActions(a.Action, b.Action) })
	return o
}

// action is what would become of the object: Deny, Warn, Audit, or nothing.
func (o outcome) action() v1.PolicyAction {
	if len(o.violations) == 0 {
		return ""
	}
	return o.violations[0].Action
}

// stricter reports whether the object comes off worse than it did.
func (o outcome) stricter(old outcome) bool {
	action, was := o.action(), old.action()
	return action != "" && (was == "" || stored.CompareActions(action, was) < 0)
}

// A tally is what a preview counts.
type tally struct {
	// edit tells that the policy is changed, and only what becomes worse counts.
	edit bool
	// total are the stored objects of all kinds that were listed, seen those that
	// were looked at, judged those of them that the policy is asked about. late
	// tells that time ran out before all were seen, vague that there are more
	// than total.
	// open are the seen that nothing but the policy itself keeps from being asked
	// about.
	total, seen, judged, open int
	// leaving are the fields of the policy by which it may leave objects out.
	leaving     []string
	late, vague bool
	// refused are how many the policy would refuse, before those that the policy
	// in force refuses of as many as that is asked about.
	refused int
	before  struct{ refused, judged int }
	// byAction counts objects by what would become of them.
	byAction map[v1.PolicyAction]int
	// failed counts objects that the policy could not be evaluated for.
	failed int
	fault  string
	// missing is what objects do not tell, with the number of those that it
	// kept from being judged, in part at least; partly counts those that were
	// judged as far as it goes.
	missing, partly map[policies.Missing]int
	unseen          []stored.UnseenKind
	// unread are kinds of the inventory that Penstock may not read.
	unread []string
	// named are some of those that come off worst, these first.
	named []named
	stray strayFields
	// unnamed counts those that may not be named to the author.
	unnamed int
}

// named is an object to name.
type named struct {
	kind      schema.GroupKind
	namespace string
	name      string
	violation stored.Violation
}

func newTally(edit bool) *tally {
	return &tally{edit: edit, byAction: map[v1.PolicyAction]int{}, missing: map[policies.Missing]int{}, partly: map[policies.Missing]int{}}
}

// add counts one object by what the new policy, and the old one if there is
// one, say of it. It reports whether the object is one to name.
func (t *tally) add(now, old outcome) bool {
	t.seen++
	if old.asked {
		t.before.judged++
	}
	if old.action() == v1.ActionDeny {
		t.before.refused++
	}
	if !now.asked {
		return false
	}
	t.judged++
	t.stray.add(now)
	if now.action() == v1.ActionDeny {
		t.refused++
	}
	for _, one := range now.missing {
		t.missing[one.Missing]++
		if one.Partly {
			t.partly[one.Missing]++
		}
	}
	if len(now.errors) > 0 {
		t.failed++
		t.fault = cmp.Or(t.fault, now.errors[0].Message)
	}
	if now.action() == "" || (t.edit && !now.stricter(old)) {
		return false
	}
	t.byAction[now.action()]++
	return true
}

// wants reports whether an object that comes off so is one to name, as those are
// that there is room for, or that come off worse than the last.
func (t *tally) wants(action v1.PolicyAction) bool {
	last := len(t.named) - 1
	return last+1 < maxNamed || stored.CompareActions(action, t.named[last].violation.Action) < 0
}

// name adds an object that is wanted, behind those that come off as badly.
func (t *tally) name(one named) {
	at := slices.IndexFunc(t.named, func(other named) bool { return stored.CompareActions(one.violation.Action, other.violation.Action) < 0 })
	if at < 0 {
		at = len(t.named)
	}
	t.named = slices.Insert(t.named, at, one)
	t.named = t.named[:min(len(t.named), maxNamed)]
}

// consequences say what a policy would do to an object, by its action.
var consequences = []struct {
	action v1.PolicyAction
	text   string
}{
	{v1.ActionDeny, "would be refused if written now (to let them pass: action Warn or Audit, or exceptions)"},
	{v1.ActionWarn, "would be warned about if written now"},
	{v1.ActionAudit, "break this policy, which only records it"},
}

// warnings are the lines to show to the author; none where there is nothing to
// say.
func (t *tally) warnings() []string {
	var lines []string
	for _, text := range slices.Concat(t.counts(), t.examples(), t.gaps()) {
		lines = append(lines, stored.Shorten("preview: "+text, maxWarning))
	}
	return lines
}

// counts say how many objects come off how.
func (t *tally) counts() []string {
	var lines []string
	add := func(format string, arguments ...any) { lines = append(lines, fmt.Sprintf(format, arguments...)) }
	for _, one := range consequences {
		if count := t.byAction[one.action]; count > 0 {
			add("%d of %s %s", count, t.scope(), one.text)
		}
	}
	if t.open > 0 && t.judged == 0 && !t.late {
		add("is asked about none of the %d stored objects of its kinds: left out by %s", t.open, strings.Join(t.leaving, " or "))
	}
	if t.refused < t.before.refused {
		add("would now refuse %d of %s; the policy in force refuses %s", t.refused, t.objects("stored objects"), t.inForce())
	}
	if quiet := len(t.byAction) == 0 && t.refused >= t.before.refused && t.failed == 0 && len(t.missing) == 0; t.late && quiet {
		add("%s", t.nothingFound())
	}
	return lines
}

// examples name some objects, as far as the author may know them.
func (t *tally) examples() []string {
	var lines []string
	for _, one := range t.named {
		lines = append(lines, fmt.Sprintf("%s: %s", stored.Identity(one.kind, one.namespace, one.name), one.violation))
	}
	if text := t.stray.text(); text != "" {
		lines = append(lines, text)
	}
	if t.unnamed > 0 {
		lines = append(lines, "objects that you may not list are counted and not named")
	}
	return lines
}

// gaps say what was not judged.
func (t *tally) gaps() []string {
	var lines []string
	of := strings.TrimSuffix(t.scope(), ",")
	if t.failed > 0 {
		lines = append(lines, fmt.Sprintf("could not be evaluated for %d of %s: %s", t.failed, of, t.fault))
	}
	for _, missing := range slices.Sorted(maps.Keys(t.missing)) {
		lines = append(lines, fmt.Sprintf("%s for %d of %s: %s", t.notEvaluated(missing), t.missing[missing], of, stored.MissingText(missing)))
	}
	if len(t.unread) > 0 {
		lines = append(lines, fmt.Sprintf("the inventory has no %s, and the failurePolicy answers where the rule reads it: %s", strings.Join(t.unread, ", "), forbiddenInventory))
	}
	for _, one := range byReason(t.unseen) {
		lines = append(lines, fmt.Sprintf("stored objects of %s are not looked at: %s", one.Kind, one.Reason))
	}
	return lines
}

func (t *tally) notEvaluated(missing policies.Missing) string {
	if t.partly[missing] > 0 {
		return "not evaluated in full"
	}
	return "not evaluated"
}

// byReason puts kinds that are not looked at for the same reason together.
func byReason(unseen []stored.UnseenKind) []stored.UnseenKind {
	var found []stored.UnseenKind
	for _, one := range unseen {
		at := slices.IndexFunc(found, func(other stored.UnseenKind) bool { return other.Reason == one.Reason })
		if at < 0 {
			found = append(found, one)
			continue
		}
		found[at].Kind += ", " + one.Kind
	}
	return found
}

// scope says which objects are spoken of.
func (t *tally) scope() string {
	if t.edit {
		return t.objects("stored objects, by this change,")
	}
	return t.objects("stored objects")
}

// objects says how many there are that the policy is asked about. How many are
// among those that were not looked at, nobody knows.
func (t *tally) objects(what string) string {
	switch {
	case !t.late:
		return fmt.Sprintf("%d %s", t.judged, what)
	case t.vague:
		return fmt.Sprintf("the %d judged in time of more %s", t.judged, what)
	default:
		return fmt.Sprintf("the %d judged in time of up to %d %s", t.judged, t.judged+max(t.total-t.seen, 0), what)
	}
}

// nothingFound says how much it is worth that nothing was found in time.
func (t *tally) nothingFound() string {
	if t.judged > 0 {
		return fmt.Sprintf("none of %s would be affected", t.scope())
	}
	return fmt.Sprintf("time was over before any stored object %swas judged, so that nothing is known of them", t.upTo())
}

// upTo says in brackets how many there may be, as far as that is known.
func (t *tally) upTo() string {
	if left := t.total - t.seen; !t.vague && left > 0 {
		return fmt.Sprintf("(of up to %d) ", left)
	}
	return ""
}

// inForce says how many the policy in force refuses, of how many where it is not
// asked about as many.
func (t *tally) inForce() string {
	if t.before.judged == t.judged {
		return fmt.Sprint(t.before.refused)
	}
	return fmt.Sprintf("%d of %d", t.before.refused, t.before.judged)
}
