package policies

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// expiryNotice is how long before its end an exception begins to warn.
const expiryNotice = 7 * 24 * time.Hour

// validateExceptions refuses exceptions that would never or always count.
func validateExceptions(exceptions []v1.PolicyException, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	for i, exception := range exceptions {
		if len(exception.Namespaces) == 0 && len(exception.Names) == 0 {
			faults = append(faults, field.Required(path.Index(i).Child("namespaces"),
				"name the namespaces that the exception is for, or cluster-scoped objects by names; to let everything pass, set action to Warn or Audit"))
		}
		if exception.Until.IsZero() {
			faults = append(faults, field.Required(path.Index(i).Child("until"), "say when the exception ends"))
		}
	}
	return faults
}

// exceptionFor returns the exception that the request passes by at its own
// time, the one that ends last if there are several, or nil. One without
// namespaces is for cluster-scoped objects. A Namespace is one of these, whose
// requests are made in the namespace that it is.
func exceptionFor(exceptions []v1.PolicyException, request *Request) *v1.PolicyException {
	if i := ExceptionOf(exceptions, request); i >= 0 {
		return &exceptions[i]
	}
	return nil
}

// ExceptionOf gives the index of the exception by which a request passes, -1 if it
// does by none.
func ExceptionOf(exceptions []v1.PolicyException, request *Request) int {
	found := -1
	kind := request.Kind
	placed := request.Namespace != "" && (kind.Group != "" || kind.Kind != "Namespace")
	for i := range exceptions {
		exception := &exceptions[i]
		switch {
		case !request.Now.Before(exception.Until.Time):
		case request.Namespace == "" && len(exception.Namespaces) > 0:
		case len(exception.Namespaces) == 0 && placed:
		case len(exception.Namespaces) > 0 && !matchesOneOf(exception.Namespaces, request.Namespace):
		case len(exception.Names) > 0 && !matchesOneOf(exception.Names, request.Name):
		case found < 0 || exception.Until.After(exceptions[found].Until.Time):
			found = i
		}
	}
	return found
}

// endsSoon reports whether an exception is in its last week.
func endsSoon(exception *v1.PolicyException, now time.Time) bool {
	return exception.Until.Sub(now) <= expiryNotice
}
