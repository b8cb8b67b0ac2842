package cel

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Asked is what an API server is to evaluate conditions on, beside creations and
// updates of whole objects.
type Asked struct {
	// Deletes tells of deletions.
	Deletes bool
	// Scales tells of writes of the subresource scale.
	Scales bool
}

// Sent gives match conditions as the API server is to evaluate them, so that they
// are about what rules are about. On a deletion, object is null there, and rules see
// the old object as the object: so does an expression that goes through a list of
// one, whose element is called object. On a write of scale, object is a Scale, of
// which neither labels nor a template are known: the API server asks in any case,
// and who is asked evaluates the condition on what is scaled.
func Sent(conditions []admissionregistrationv1.MatchCondition, asked Asked) []admissionregistrationv1.MatchCondition {
	sent := make([]admissionregistrationv1.MatchCondition, len(conditions))
	for i, condition := range conditions {
		// The lines of its own are for a comment at the end of the expression.
		if asked.Deletes {
			condition.Expression = fmt.Sprintf("[request.operation == 'DELETE' ? oldObject : object].all(object,\n%s\n)", condition.Expression)
		}
		if asked.Scales {
			condition.Expression = fmt.Sprintf("has(request.subResource) && request.subResource == 'scale' || (\n%s\n)", condition.Expression)
		}
		sent[i] = condition
	}
	return sent
}
