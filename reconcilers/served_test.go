package reconcilers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// What is planned depends on what is served: nothing is before that is known.
func TestLoopFollowsWhatIsServed(t *testing.T) {
	group := servedKind{object: &schedulingv1beta1.PodGroup{}, gvk: schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup")}
	var served []servedKind
	known := false
	b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(1), func(job *v1.TrainingJob) { job.Spec.Gang = &v1.Gang{} }))
	b.loop.served = func() ([]servedKind, bool) { return served, known }
	group.reader = b.client

	if result, writes := b.reconcile(); result.RequeueAfter != 200*time.Millisecond || writes != nil {
		t.Errorf("before it is known: after %v, writes %v", result.RequeueAfter, writes)
	}
	known, served = true, []servedKind{group}
	type pass struct {
		Writes []string
		Pods   []string
		Status metav1.ConditionStatus
		Reason string
	}
	for _, want := range []pass{
		// The service and the group, and then the pod.
		{[]string{"apply", "apply", "status"}, []string{}, "False", v1.GangPendingReason},
		{[]string{"create"}, []string{"a-worker-0"}, "False", v1.GangPendingReason},
		{nil, []string{"a-worker-0"}, "False", v1.GangPendingReason},
	} {
		_, writes := b.reconcile()
		c := b.condition(v1.TrainingJobGangScheduledCondition)
		if diff := cmp.Diff(want, pass{writes, b.pods(), c.Status, c.Reason}); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}

	// Without the kind its objects are not looked for, and nothing fails.
	served = nil
	if _, writes := b.reconcile(); cmp.Diff([]string{"status"}, writes) != "" {
		t.Errorf("writes %v", writes)
	}
	if got := b.condition(v1.TrainingJobGangScheduledCondition).Reason; got != v1.GangUnsupportedReason {
		t.Errorf("reason %s", got)
	}
}
