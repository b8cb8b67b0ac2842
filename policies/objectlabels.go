package policies

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
)

// objectLabels are the labels that objectSelectors look at, read when the first
// does.
type objectLabels struct {
	judgement *judgement
	in        *input

	known             bool
	object, oldObject labels.Set
	err               error
}

// selectedBy reports whether a policy selects what is written. It is an error if that
// depends on labels that are not known.
func (l *objectLabels) selectedBy(policy *Policy) (bool, error) {
	selector := policy.matcher.objectSelector
	if selector.Empty() {
		return true, nil
	}
	if !l.known {
		l.read()
		l.known = true
	}
	if l.err != nil {
		return false, l.err
	}
	// An update must not slip out of a policy by its labels.
	return l.oldObject != nil && selector.Matches(l.oldObject) || selector.Matches(l.object), nil
}

// read finds the labels: those of the parent where what is written has none of
// its own that count, as a Scale has none, and an Eviction what its author likes.
func (l *objectLabels) read() {
	request := l.judgement.request
	if !request.ofParent() {
		l.object = labelsOf(l.in.object)
		if l.in.oldObject != nil {
			l.oldObject = labelsOf(l.in.oldObject)
		}
		return
	}
	err := errors.New("nobody gave them")
	if request.ParentLabels != nil {
		l.object, err = request.ParentLabels()
	}
	if err != nil {
		l.err = fmt.Errorf("its objectSelector looks at the labels of %s %s, which are not known: %w", request.matchKind().Kind, request.Name, err)
	}
}
