package reconcilers

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// maxNote is the length that the API server allows for the text of an event.
const maxNote = 1024

// emit tells people what was decided.
func (p *pass[T, S]) emit(events ...plan.Event) {
	for _, event := range events {
		p.emitFor(p.object, event)
	}
}

func (l *loop[T, S]) emitFor(object T, e plan.Event) {
	var related runtime.Object
	if e.Related != nil {
		related = e.Related
	}
	l.recorder.Eventf(object, related, e.Type, e.Reason, e.Action, "%s", truncate(e.Message, maxNote))
}

func handedOver(manager string) plan.Event {
	return plan.Event{
		Type: corev1.EventTypeNormal, Reason: "HandedOver", Action: "HandOver",
		Message: fmt.Sprintf("Left to %s, which spec.runPolicy.managedBy names", manager),
	}
}

func childRefused(reason, message string) plan.Event {
	return plan.Event{Type: corev1.EventTypeWarning, Reason: reason, Action: "CreateChild", Message: message}
}

func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "..."
	cut := limit - len(ellipsis)
	// Not in the middle of a character.
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + ellipsis
}
