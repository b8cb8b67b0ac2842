package policies

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// A faultSite is an object that a rule finds faults in.
type faultSite struct {
	object ast.Value
	// reads are what the rule reads of it.
	reads *objectReads
	// fields is that of the request.
	fields func(path string) (known, sure bool)
}

// What is said of a field that cannot be where a fault is.
const (
	strayPath   = "it is no path of a field, such as spec.containers[0].image"
	strayField  = "objects of the kind have no such field"
	strayUnread = "the rule does not look at it"
	strayVague  = "the object does not have it, and which fields the rule looks at is not known"
)

// stray says why a field cannot be where a fault is, nothing if it can. A field
// that is absent may well be: that it is may be the fault. Then the kind has such
// a field, as far as its schema is known, and the rule looks at it. Of what a rule
// does not look at, it has nothing to say.
func (s *faultSite) stray(path string) string {
	steps, ok := splitPath(path)
	if !ok || steps[0].bracketed {
		return strayPath
	}
	there, known, sure := valueAtSteps(s.object, steps) != nil, false, false
	if !there && s.fields != nil {
		if known, sure = s.fields(path); sure && !known {
			return strayField
		}
	}
	keys := make([]string, len(steps))
	for i, step := range steps {
		keys[i] = step.key
	}
	switch s.reads.reaches(keys) {
	case reachNone:
		return strayUnread
	case reachLost:
		if !there && !known {
			return strayVague
		}
	}
	return ""
}
