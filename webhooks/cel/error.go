package cel

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/penstock-dev/penstock/webhooks/fields"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// Error says that a match condition fails for an object: CEL has no
// value for what it reads. The API server then refuses the request, or lets it
// pass unasked, as the failure policy says.
type Error struct {
	// Condition is its name.
	Condition string
	// Reason is what CEL says, such as no such key: nodeName.
	Reason string
	// Fix says how to write the expression.
	Fix string
}

// Error is the fault in one line.
func (e *Error) Error() string {
	return fmt.Sprintf("match condition %s fails (%s): %s", e.Condition, e.Reason, e.Fix)
}

// FailedCondition is the fault without what to do about it, and that.
func (e *Error) FailedCondition() (fault, fix string) {
	return fmt.Sprintf("match condition %s fails (%s)", e.Condition, e.Reason), e.Fix
}

// failedCondition finds which of some conditions fails; err is what was said of
// all.
func failedCondition(ctx context.Context, conditions []admissionregistrationv1.MatchCondition, attributes *admission.VersionedAttributes, authorizer authorizer.Authorizer, err error) error {
	for _, one := range conditions {
		alone := matcherOf([]admissionregistrationv1.MatchCondition{one}).Match(ctx, attributes, nil, authorizer)
		if alone.Error != nil {
			reason := alone.Error.Error()
			if _, said, found := strings.Cut(reason, "resulted in error: "); found {
				reason = said
			}
			fix := mend(attributes.VersionedKind, one.Expression, reason)
			if readsNull(attributes, one.Expression, reason) {
				fix = GuardOldObject
			}
			return &Error{Condition: one.Name, Reason: reason, Fix: fix}
		}
	}
	return err
}

// GuardOldObject says how to write a condition that reads an oldObject that is null.
const GuardOldObject = "write oldObject == null || (…), or operations: [UPDATE] if the policy is for updates alone"

// readsNull reports whether a condition fails as it reads a member of an oldObject
// that is not there, and not of the object.
func readsNull(attributes *admission.VersionedAttributes, expression, reason string) bool {
	found := missingKey.FindStringSubmatch(reason)
	if found == nil || attributes.GetOldObject() != nil {
		return false
	}
	if object, ok := attributes.GetObject().(*unstructured.Unstructured); ok {
		if _, there := object.Object[found[1]]; !there && slices.ContainsFunc(Reads(expression), func(read Read) bool { return read.Text == "object."+found[1] }) {
			return false
		}
	}
	return slices.ContainsFunc(Reads(expression), func(read Read) bool { return read.Text == "oldObject."+found[1] })
}

var missingKey = regexp.MustCompile(`no such key: (\S+)`)

// mend says how to write a condition that fails for an object of a kind.
func mend(kind schema.GroupVersionKind, expression, reason string) string {
	found := missingKey.FindStringSubmatch(reason)
	switch {
	case found == nil && strings.Contains(reason, "no such overload"):
		return "an operator or a function gets what it does not take, such as a number in place of a text or null: " +
			"test it first, as in type(object.spec.x) == string && …, or convert it by string(…) or int(…)"
	case found == nil && strings.Contains(reason, "cost limit exceeded"):
		return "it takes more than the API server lets conditions take: it must not go through lists within lists, nor search long texts; " +
			"leave what is exact to the rule, and keep the condition to a few fields or labels"
	case found == nil:
		return "guard what it reads, as in has(object.spec.nodeName) && object.spec.nodeName != ''"
	}
	if read, unknown := unknownRead(kind, expression, found[1]); unknown {
		text := fmt.Sprintf("objects of kind %s have no %s: ", kind.Kind, read.Text)
		if meant := validation.Nearest(found[1], read.Known); meant != "" {
			return text + "write " + read.Instead(meant)
		}
		return text + "leave it out, or test request.kind.kind first if it is one of another kind"
	}
	return guardFor(kind, expression, found[1])
}

// unknownRead finds where an expression reads a key that objects of a kind never
// have.
func unknownRead(kind schema.GroupVersionKind, expression, key string) (read UnknownRead, unknown bool) {
	for _, read := range Unknown(expression, func(path []string) (int, []string, bool) {
		return fields.Misspelt([]schema.GroupVersionKind{kind}, path)
	}) {
		if path := read.Paths[0]; path[len(path)-1] == key {
			return read, true
		}
	}
	return UnknownRead{}, false
}

// Paths as conditions write them, from a variable: its members by name, and by
// texts and numbers in brackets.
const (
	step  = `(?:\.[A-Za-z_]\w*|\[[^\][]*\])`
	chain = `[A-Za-z_]\w*` + step + `*`
)

var eachStep = regexp.MustCompile(step)

// guardFor says how to guard what a condition reads by a key that is not there,
// with all that leads there and goes on from there, which need not be there either.
func guardFor(kind schema.GroupVersionKind, expression, key string) string {
	quoted := regexp.QuoteMeta(key)
	at := regexp.MustCompile(`(` + chain + `)(?:\.` + quoted + `\b|\[['"]` + quoted + `['"]\])` + step + `*`).FindStringSubmatchIndex(expression)
	if at == nil {
		return fmt.Sprintf("guard what reads %s by has(…)", key)
	}
	path := expression[at[0]:at[1]]
	if strings.HasPrefix(strings.TrimSpace(expression[at[1]:]), "(") {
		path = path[:strings.LastIndex(path, ".")] // It is a function of it.
	}
	return fmt.Sprintf("guard it by %s && …", strings.Join(guards(path, at[3]-at[2], alwaysThere(kind, expression)), " && "))
}

// alwaysThere are the texts of what an expression reads and objects of a kind have.
func alwaysThere(kind schema.GroupVersionKind, expression string) map[string]bool {
	found := map[string]bool{"object.metadata": true, "object.spec": true, "oldObject.metadata": true, "oldObject.spec": true}
	for _, read := range Reads(expression) {
		if !slices.ContainsFunc(read.Paths, func(path []string) bool { return !fields.Always(kind, path) }) {
			found[read.Text] = true
		}
	}
	return found
}

// guards test each step of a path, but for what is there always and comes before
// what is not there.
func guards(path string, missing int, always map[string]bool) []string {
	var tests []string
	for _, at := range eachStep.FindAllStringIndex(path, -1) {
		before, through := path[:at[0]], path[:at[1]]
		name := strings.Trim(path[at[0]:at[1]], "[]")
		switch {
		case always[through] && at[1] <= missing:
		case strings.HasPrefix(name, "."):
			tests = append(tests, "has("+through+")")
		case strings.ContainsAny(name, `'"`):
			tests = append(tests, name+" in "+before)
		}
	}
	return tests
}
