package controller

import (
	"fmt"

	"github.com/penstock-dev/penstock/policies/stored"
)

// strayFields counts the objects for which a policy names a field that cannot be
// where the fault is.
type strayFields struct {
	objects int
	// first is the first such violation, in the object's own paths.
	first stored.Violation
}

func (s *strayFields) add(o outcome) {
	counted := false
	for _, one := range o.violations {
		if one.Stray == "" {
			continue
		}
		if s.objects == 0 && !counted {
			s.first = one
		}
		counted = true
	}
	if counted {
		s.objects++
	}
}

// text is what to say of them; nothing where there are none. Of updates of such
// objects the whole spec is compared, as where no field is named.
func (s *strayFields) text() string {
	if s.objects == 0 {
		return ""
	}
	return fmt.Sprintf("for %d of these the rule names the field %s, and %s: let it name the field that is at fault, or none",
		s.objects, s.first.Path, s.first.Stray)
}
