package stored

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

// A Violation is one with the path of its field in the stored object.
type Violation struct {
	policies.Violation
	// Path is empty where the rule names no field.
	Path string
}

// Locate gives a violation of the judgement with the path of its field in the object
// as it is stored.
func (j *Judgement) Locate(violation policies.Violation) Violation {
	one := Violation{Violation: violation}
	if violation.Field != "" {
		one.Path = j.At(violation.Field)
	}
	return one
}

// String is the violation in one line, with its field.
func (v Violation) String() string {
	text := v.Message
	if v.Fix != "" {
		text += ": " + v.Fix
	}
	if v.Path == "" {
		return text
	}
	return v.Path + ": " + text
}

var severity = map[v1.PolicyAction]int{v1.ActionDeny: 0, v1.ActionWarn: 1, v1.ActionAudit: 2}

// CompareActions orders actions by how much they do: it is negative where the first
// is the stricter one.
func CompareActions(a, b v1.PolicyAction) int { return cmp.Compare(severity[a], severity[b]) }

// Identity names a stored object to people; namespace is empty where it has none.
func Identity(kind schema.GroupKind, namespace, name string) string {
	if namespace == "" {
		return kind.Kind + " " + name
	}
	return kind.Kind + " " + namespace + "/" + name
}

var missingTexts = map[policies.Missing]string{
	policies.MissingUser:            "the rule reads who makes a request, which a stored object does not tell",
	policies.MissingOptions:         "the rule reads the options of a request, which a stored object does not tell",
	policies.MissingConditions:      "the matchConditions need what a stored object does not tell",
	policies.MissingNamespaceLabels: "the labels of the namespace are not known",
	policies.MissingInventory:       "the inventory that the rule reads is not synced yet",
}

// MissingText says why a policy could not be evaluated for a stored object.
func MissingText(missing policies.Missing) string {
	return cmp.Or(missingTexts[missing], string(missing))
}

// Shorten cuts a text to limit bytes, between characters, and puts it on one line.
func Shorten(text string, limit int) string {
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
