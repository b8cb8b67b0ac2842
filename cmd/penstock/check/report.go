package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-dev/penstock/cmd/penstock/render"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks"
)

// A Report is what a check says. Its JSON is stable: members are added, not
// renamed or removed, and lists are always present.
type Report struct {
	Results []Result `json:"results"`
	// Errors are the files and documents that could not be read.
	Errors  []*Unreadable `json:"errors"`
	Summary Summary       `json:"summary"`
}

// A Result is what is said of one object.
type Result struct {
	File string `json:"file"`
	// Document counts the documents of the file, Item the items of a list in
	// the document, from 1. Items is Item and, where that is a list, the items of
	// it, and so on.
	Document int   `json:"document"`
	Item     int   `json:"item,omitempty"`
	Items    []int `json:"items,omitempty"`
	// Line is where the object begins, from 1.
	Line       int    `json:"line"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is that which is written, or --namespace; absent where none is
	// written and the kind is not known to have one.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Operation is CREATE, or UPDATE where the stored object was given.
	Operation string `json:"operation,omitempty"`
	// Judged is false for kinds that neither Penstock nor a policy names, and for
	// what is never behind Penstock.
	Judged bool `json:"judged"`
	// NotJudged says why it is not.
	NotJudged string `json:"notJudged,omitempty"`
	Allowed   bool   `json:"allowed"`
	// Reason is that of the API server's Status for a refusal: BadRequest where
	// the object cannot be decoded, Invalid for faults of schema, invariants
	// and policies.
	Reason   metav1.StatusReason `json:"reason,omitempty"`
	Faults   []Fault             `json:"faults"`
	Warnings []Fault             `json:"warnings"`
	// Notes are worth knowing and nothing that the cluster says.
	Notes []Fault `json:"notes"`
	// NotEvaluated are the policies whose verdict depends on what was not given.
	NotEvaluated []NotEvaluated `json:"notEvaluated"`
	// Children are what Penstock would make of the object, in this order, where
	// that was asked for.
	Children []render.Child `json:"children,omitempty"`

	// causes are those of the last of Faults.
	causes []webhooks.Cause
}

// A Fault is one thing that is wrong with an object. Field and Message are those
// of the cause in the API server's Status; for a warning, whose line is both
// joined by a colon.
type Fault struct {
	// Field is a path in the object as it was written.
	Field string `json:"field,omitempty"`
	// Line is where the field is written, or the nearest one above it.
	Line    int    `json:"line"`
	Message string `json:"message"`
	// Fix is the part of Message that says what to write instead, and Policy the
	// one that found the fault, where there is one.
	Fix    string `json:"fix,omitempty"`
	Policy string `json:"policy,omitempty"`
	// Explanation says how a policy found it, where that was asked for.
	Explanation *Explanation `json:"explanation,omitempty"`
}

// NotEvaluated is a policy that says nothing, or not all that it might, and why.
type NotEvaluated struct {
	Policy string `json:"policy"`
	Reason string `json:"reason"`
	// missing is what the reason is about; partly tells that the policy says what it
	// can without.
	missing policies.Missing
	partly  bool
}

// Summary counts.
type Summary struct {
	Objects   int `json:"objects"`
	Admitted  int `json:"admitted"`
	Refused   int `json:"refused"`
	NotJudged int `json:"notJudged"`
	Warnings  int `json:"warnings"`
}

// NewReport makes the report of results, in their order.
func NewReport(results []Result, unreadable []*Unreadable) Report {
	report := Report{Results: append([]Result{}, results...), Errors: append([]*Unreadable{}, unreadable...)}
	summary := &report.Summary
	summary.Objects = len(results)
	for _, result := range results {
		summary.Warnings += len(result.Warnings)
		switch {
		case !result.Judged:
			summary.NotJudged++
		case result.Allowed:
			summary.Admitted++
		default:
			summary.Refused++
		}
	}
	return report
}

// WriteJSON writes the report as JSON.
func (r Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("failed to write the report: %w", err)
	}
	return nil
}

// locate tells where in the file the result's findings are.
func (r *Result) locate(object Object) {
	r.Line = object.Line("")
	for _, findings := range [][]Fault{r.Faults, r.Warnings, r.Notes} {
		for i := range findings {
			findings[i].Line = object.Line(findings[i].Field)
		}
	}
}

// refuse records why the object is refused.
func (r *Result) refuse(reason metav1.StatusReason, faults ...Fault) {
	r.Allowed, r.Reason = false, reason
	r.Faults = append(r.Faults, faults...)
}

// decided records what a gate said.
func (c *Checker) decided(r *Result, decision webhooks.Decision) {
	for _, warning := range decision.Warnings {
		r.Warnings = append(r.Warnings, c.faultOf(warning))
	}
	r.Warnings = append(r.Warnings, strayFields(decision.Verdicts)...)
	for _, policy := range decision.NotEvaluated {
		r.NotEvaluated = append(r.NotEvaluated, NotEvaluated{
			Policy: policy.Policy, Reason: c.lack(policy, cmp.Or(r.Namespace, c.options.Namespace)), missing: policy.Missing, partly: policy.Partly,
		})
	}
	status := decision.Response.Result
	if decision.Response.Allowed || status == nil {
		return
	}
	r.refuse(status.Reason)
	// An upstream object is judged twice, by invariants and by policies: what the
	// latter say better need not be said again.
	said := len(r.causes)
	r.causes = webhooks.Unsaid(append(r.causes, decision.Causes...))
	r.Faults = r.Faults[:len(r.Faults)-said]
	for _, cause := range r.causes {
		r.Faults = append(r.Faults, c.faultOf(cause))
	}
	if len(decision.Causes) == 0 {
		r.Faults = append(r.Faults, Fault{Message: status.Message})
	}
}

// strayFields tells whoever writes policies of fields that cannot be where the
// fault is that their rules name them for.
func strayFields(verdicts []policies.Verdict) []Fault {
	var found []Fault
	for _, verdict := range verdicts {
		for _, violation := range verdict.Violations {
			if text := violation.Strays(); text != "" {
				found = append(found, Fault{Message: text, Policy: violation.Policy})
			}
		}
	}
	return found
}

func (c *Checker) faultOf(cause webhooks.Cause) Fault {
	return Fault{
		Field: cause.Field, Message: cause.Message, Fix: cause.Fix, Policy: cause.Policy,
		Explanation: c.explanationOf(cause.Policy, cause.Explanation),
	}
}

// lack says what a policy needs to be evaluated, or to be evaluated in full.
func (c *Checker) lack(policy policies.NotEvaluated, namespace string) string {
	if policy.Partly {
		policy.Partly = false
		return "in part, as " + c.lack(policy, namespace)
	}
	switch policy.Missing {
	case policies.MissingUser:
		return "it depends on the user, who is not known: give --user and --group"
	case policies.MissingNamespaceLabels:
		return fmt.Sprintf("it depends on the labels of namespace %s, which are not known: give --namespace-file", namespace)
	case policies.MissingInventory:
		return c.lacksInventory(policy.Policy)
	case policies.MissingConditions:
		return "its matchConditions depend on what is not known offline, such as the user or what he may do"
	case policies.MissingOptions:
		return "it depends on the options of the request, such as the field manager, which are not known"
	default:
		return string(policy.Missing)
	}
}
