package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

// maxWarning bounds a warning: the API server cuts longer ones where there are
// many.
const maxWarning = 250

// maxNamed is how many objects a preview names.
const maxNamed = 5

// An outcome is what judgements of one object come to.
type outcome struct {
	// violations count, in the order of how much they do; errors are policies
	// that could not be evaluated.
	violations []located
	errors     []policies.PolicyError
	missing    []policies.Missing
}

// located is a violation with the path of its field in the stored object.
type located struct {
	policies.Violation
	field string
}

// String is the violation in one line, with its field.
func (l located) String() string {
	text := l.Message
	if l.Fix != "" {
		text += ": " + l.Fix
	}
	if l.field == "" {
		return text
	}
	return l.field + ": " + text
}

var severity = map[v1.PolicyAction]int{v1.ActionDeny: 0, v1.ActionWarn: 1, v1.ActionAudit: 2}

func outcomeOf(judgements []judgement) outcome {
	var o outcome
	for _, j := range judgements {
		for _, violation := range j.Violations {
			one := located{Violation: violation}
			if violation.Field != "" {
				one.field = j.at(violation.Field)
			}
			o.violations = append(o.violations, one)
		}
		o.errors = append(o.errors, j.Errors...)
		for _, one := range j.NotEvaluated {
			o.missing = append(o.missing, one.Missing)
		}
	}
	slices.SortStableFunc(o.violations, func(a, b located) int { return cmp.Compare(severity[a.Action], severity[b.Action]) })
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
	return action != "" && (was == "" || severity[action] < severity[was])
}

// A tally is what a preview counts.
type tally struct {
	// edit tells that the policy is changed, and only what becomes worse counts.
	edit bool
	// judged and total are numbers of stored objects; late tells that time ran
	// out before all were judged, vague that total is a lower bound.
	judged, total int
	late, vague   bool
	// byAction counts objects by what would become of them.
	byAction map[v1.PolicyAction]int
	// failed counts objects that the policy could not be evaluated for.
	failed int
	fault  string
	// missing is what objects do not tell, with the number of those that it
	// kept from being judged.
	missing map[policies.Missing]int
	unseen  []unseenKind
	named   []named
	// unnamed counts those that may not be named to the author.
	unnamed int
}

// named is an object to name.
type named struct {
	kind      schema.GroupKind
	namespace string
	name      string
	violation located
}

func newTally(edit bool) *tally {
	return &tally{edit: edit, byAction: map[v1.PolicyAction]int{}, missing: map[policies.Missing]int{}}
}

// add counts one object by what the new policy, and the old one if there is
// one, say of it. It reports whether the object is one to name.
func (t *tally) add(now, old outcome) bool {
	t.judged++
	for _, missing := range now.missing {
		t.missing[missing]++
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

// consequences say what a policy would do to an object, by its action.
var consequences = []struct {
	action v1.PolicyAction
	text   string
}{
	{v1.ActionDeny, "would be refused if written now (to let them pass: action Warn or Audit, or exceptions)"},
	{v1.ActionWarn, "would be warned about if written now"},
	{v1.ActionAudit, "break this policy, which only records it"},
}

var missingTexts = map[policies.Missing]string{
	policies.MissingUser:            "the rule reads who makes a request, which a stored object does not tell",
	policies.MissingOperation:       "the rule reads the operation or the old object, which a stored object does not tell",
	policies.MissingConditions:      "the matchConditions need what a stored object does not tell",
	policies.MissingNamespaceLabels: "the labels of the namespace are not known",
	policies.MissingInventory:       "the inventory that the rule reads is not synced yet",
}

// warnings are the lines to show to the author; none where there is nothing to
// say.
func (t *tally) warnings() []string {
	var lines []string
	add := func(format string, arguments ...any) {
		lines = append(lines, shorten("preview: "+fmt.Sprintf(format, arguments...), maxWarning))
	}
	for _, one := range consequences {
		if count := t.byAction[one.action]; count > 0 {
			add("%d of %s %s", count, t.scope(), one.text)
		}
	}
	if t.late && len(t.byAction) == 0 && t.failed == 0 && len(t.missing) == 0 {
		add("none of %s would be affected", t.scope())
	}
	for _, one := range t.named {
		add("%s: %s", one.identity(), one.violation)
	}
	if t.unnamed > 0 {
		add("objects that you may not list are counted and not named")
	}
	if t.failed > 0 {
		add("could not be evaluated for %d of %s: %s", t.failed, t.scope(), t.fault)
	}
	for _, missing := range sortedKeys(t.missing) {
		add("not evaluated for %d of %s: %s", t.missing[missing], t.scope(), cmp.Or(missingTexts[missing], string(missing)))
	}
	for _, one := range t.unseen {
		add("stored objects of %s are not looked at: %s", one.kind, one.reason)
	}
	return lines
}

// scope says which objects are spoken of.
func (t *tally) scope() string {
	what := "stored objects"
	if t.edit {
		what = "stored objects, by this change,"
	}
	if !t.late {
		return fmt.Sprintf("%d %s", t.total, what)
	}
	least := ""
	if t.vague {
		least = "at least "
	}
	return fmt.Sprintf("the %d judged in time of %s%d %s", t.judged, least, max(t.total, t.judged), what)
}

func (n named) identity() string {
	if n.namespace == "" {
		return n.kind.Kind + " " + n.name
	}
	return n.kind.Kind + " " + n.namespace + "/" + n.name
}

func sortedKeys[K cmp.Ordered, V any](from map[K]V) []K {
	keys := make([]K, 0, len(from))
	for key := range from {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// shorten cuts a text between characters, and puts it on one line.
func shorten(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= limit {
		return text
	}
	limit -= len("…")
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
