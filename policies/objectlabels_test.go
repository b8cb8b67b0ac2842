package policies_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

func strictly(spec *v1.WorkloadPolicySpec) {
	spec.Match.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"strict": "1"}}
}

func unlessFree(spec *v1.WorkloadPolicySpec) {
	spec.Match.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "free", Operator: metav1.LabelSelectorOpDoesNotExist}}}
}

// onScale is of the scale of widgets, of which at most three are to be.
func onScale(name string, mods ...func(*v1.WorkloadPolicySpec)) *v1.WorkloadPolicy {
	on := func(spec *v1.WorkloadPolicySpec) {
		spec.Match.Resources = []v1.PolicyResources{{Group: "acme.io", Kinds: []string{"Widget"}, Subresources: []string{"", "scale"}}}
	}
	return policy(name, `package p
violation contains {"msg": "too many", "field": "spec.replicas"} if input.object.spec.replicas > 3`, append(mods, on)...)
}

// scaleRequest scales a widget from some replicas to four.
func scaleRequest(labels func() (map[string]string, error), old string) policies.Request {
	request := updateRequest([]byte(`{"metadata":{"labels":{"strict":"1","free":"1"}},"spec":{"replicas":`+old+`}}`),
		[]byte(`{"metadata":{"labels":{"strict":"1","free":"1"}},"spec":{"replicas":4}}`))
	request.Kind = metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	request.Resource = metav1.GroupVersionResource{Group: "acme.io", Version: "v1", Resource: "widgets"}
	request.SubResource, request.MatchKind = "scale", schema.GroupKind{Group: "acme.io", Kind: "Widget"}
	request.ParentLabels = labels
	return request
}

func TestLabelsOfTheParent(t *testing.T) {
	labelled := func(name string) func() (map[string]string, error) {
		return func() (map[string]string, error) { return map[string]string{name: "1"}, nil }
	}
	failing := func() (map[string]string, error) { return nil, errors.New("it is gone") }
	offline := func(r *policies.Request) { r.Offline = true }
	for name, tc := range map[string]struct {
		selector func(*v1.WorkloadPolicySpec)
		labels   func() (map[string]string, error)
		old      string
		mod      func(*policies.Request)
		failure  func(*v1.WorkloadPolicySpec)
		// refused, warned and error are what is said, missing what is told.
		refused, warned, missing bool
		err                      string
	}{
		"a label of the parent brings it in":      {selector: strictly, labels: labelled("strict"), refused: true},
		"one of the scale does not":               {selector: strictly, labels: labelled("other")},
		"nor does a parent without labels":        {selector: strictly, labels: func() (map[string]string, error) { return nil, nil }},
		"a label of the parent leaves it out":     {selector: unlessFree, labels: labelled("free")},
		"one of the scale leaves nothing out":     {selector: unlessFree, labels: labelled("other"), refused: true},
		"what was there before is let be":         {selector: strictly, labels: labelled("strict"), old: "4"},
		"what is not known is an error":           {selector: strictly, labels: failing, refused: true, err: "its objectSelector looks at the labels of Widget train, which are not known: it is gone"},
		"and a warning under failurePolicy":       {selector: strictly, labels: failing, failure: ignoreFailure, warned: true, err: "it is gone"},
		"as it is where nobody can tell":          {selector: unlessFree, refused: true, err: "nobody gave them"},
		"offline it is told that it is not known": {selector: strictly, mod: offline, missing: true},
		"a write of the kind has labels of its own": {selector: strictly, labels: labelled("other"), refused: true, mod: func(r *policies.Request) {
			r.Kind = metav1.GroupVersionKind{Group: "acme.io", Version: "v1", Kind: "Widget"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			mods := []func(*v1.WorkloadPolicySpec){tc.selector}
			if tc.failure != nil {
				mods = append(mods, tc.failure)
			}
			old := tc.old
			if old == "" {
				old = "3"
			}
			request := scaleRequest(tc.labels, old)
			if tc.mod != nil {
				tc.mod(&request)
			}
			verdict := judge(t, onScale("p", mods...), request)
			if verdict.Allowed() == tc.refused || (len(verdict.Warnings()) > 0) != tc.warned {
				t.Errorf("refused is %t and warned %q, want %t and %t: %+v", !verdict.Allowed(), verdict.Warnings(), tc.refused, tc.warned, verdict)
			}
			if got := len(verdict.NotEvaluated) == 1 && verdict.NotEvaluated[0].Missing == policies.MissingParent; got != tc.missing {
				t.Errorf("told as missing is %t, want %t: %+v", got, tc.missing, verdict)
			}
			switch {
			case tc.err == "":
				if len(verdict.Errors) > 0 {
					t.Errorf("errors: %v", verdict.Errors)
				}
			case len(verdict.Errors) != 1 || verdict.Errors[0].Reason != policies.ReasonParent || !strings.Contains(verdict.Errors[0].Message, tc.err):
				t.Errorf("errors %v, want %q", verdict.Errors, tc.err)
			}
		})
	}
}

func TestLabelsOfTheParentAreReadOnceIfNeeded(t *testing.T) {
	for name, tc := range map[string]struct {
		policies []*v1.WorkloadPolicy
		want     int
	}{
		"no policy looks at them": {policies: []*v1.WorkloadPolicy{onScale("a"), onScale("b")}},
		"several do":              {policies: []*v1.WorkloadPolicy{onScale("a", strictly), onScale("b", unlessFree), onScale("c")}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			read := 0
			request := scaleRequest(func() (map[string]string, error) { read++; return map[string]string{}, nil }, "3")
			verdict := engineWith(t, policies.Options{}, tc.policies...).Snapshot().Judge(t.Context(), request)
			if read != tc.want || len(verdict.Denied()) != 2 {
				t.Errorf("read %d times, want %d: %+v", read, tc.want, verdict)
			}
		})
	}
}
