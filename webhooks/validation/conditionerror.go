package validation

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
)

// ConditionError says that a match condition fails for an object: CEL has no
// value for what it reads. The API server then refuses the request, or lets it
// pass unasked, as the failure policy says.
type ConditionError struct {
	// Condition is its name.
	Condition string
	// Reason is what CEL says, such as no such key: nodeName.
	Reason string
	// Fix says how to write the expression.
	Fix string
}

// Error is the fault in one line.
func (e *ConditionError) Error() string {
	return fmt.Sprintf("match condition %s fails (%s): %s", e.Condition, e.Reason, e.Fix)
}

// FailedCondition is the fault without what to do about it, and that.
func (e *ConditionError) FailedCondition() (fault, fix string) {
	return fmt.Sprintf("match condition %s fails (%s)", e.Condition, e.Reason), e.Fix
}

// failedCondition finds which of some conditions fails; err is what was said of
// all.
func failedCondition(ctx context.Context, conditions []admissionregistrationv1.MatchCondition, attributes *admission.VersionedAttributes, err error) error {
	for _, one := range conditions {
		alone := matcherOf([]admissionregistrationv1.MatchCondition{one}).Match(ctx, attributes, nil, nobodyKnows)
		if alone.Error != nil {
			reason := alone.Error.Error()
			if _, said, found := strings.Cut(reason, "resulted in error: "); found {
				reason = said
			}
			return &ConditionError{Condition: one.Name, Reason: reason, Fix: guardFor(one.Expression, reason)}
		}
	}
	return err
}

var missingKey = regexp.MustCompile(`no such key: (\S+)`)

// guardFor says how to guard what a condition reads and is not there.
func guardFor(expression, reason string) string {
	found := missingKey.FindStringSubmatch(reason)
	if found == nil {
		return "guard what it reads, as in has(object.spec.nodeName) && object.spec.nodeName != ''"
	}
	key := regexp.QuoteMeta(found[1])
	member := regexp.MustCompile(`[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[[^\][]*\])*\.` + key + `\b`)
	if path := member.FindString(expression); path != "" {
		return fmt.Sprintf("guard it by has(%s) && …", path)
	}
	index := regexp.MustCompile(`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[[^\][]*\])*)\[['"]` + key + `['"]\]`)
	if path := index.FindStringSubmatch(expression); path != nil {
		return fmt.Sprintf("guard it by '%s' in %s && …", found[1], path[1])
	}
	return fmt.Sprintf("guard what reads %s by has(…)", found[1])
}

var (
	celText = regexp.MustCompile(`(?s)r?("""(?:\\.|[^\\])*?"""|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')`)
	celName = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// celNames lists the names in an expression, of variables and of members, but for
// what is in texts and comments. A name behind object or oldObject is one of
// theirs.
func celNames(expression string) []string {
	code := celText.ReplaceAllString(expression, "''")
	code = regexp.MustCompile(`//[^\n]*`).ReplaceAllString(code, "")
	code = regexp.MustCompile(`\b(object|oldObject)\s*(\.\s*\??\s*\w+)+`).ReplaceAllString(code, "$1")
	return celName.FindAllString(code, -1)
}
