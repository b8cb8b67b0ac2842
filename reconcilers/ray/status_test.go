package ray

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// unschedulable lets a pod wait for a node.
func unschedulable(pod *corev1.Pod) {
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
	}}
}

// TestNotReadySaysWhatIsInTheWay: of several pods that cannot start, the last is
// named.
func TestNotReadySaysWhatIsInTheWay(t *testing.T) {
	group := fixtures.RayGroup("gpu", fixtures.Replicas(3))
	for name, tc := range map[string]struct {
		scene       *scene
		ready, head string
	}{
		"workers": {
			running(group).pod("a-gpu-0-0", unschedulable).pod("a-gpu-1-0", unschedulable),
			"1 of 3 replicas of group gpu are ready: no node takes pod a-gpu-1-0: kubectl describe pod a-gpu-1-0 says why",
			"the head runs and is ready",
		},
		"a worker that runs": {running(group).pod("a-gpu-1-0", notReady), "2 of 3 replicas of group gpu are ready", "the head runs and is ready"},
		"the head": {
			running(group).pod("a-head", unschedulable),
			"the head's pod is not ready: no node takes pod a-head: kubectl describe pod a-head says why",
			"the head's pod is not ready: no node takes pod a-head: kubectl describe pod a-head says why",
		},
	} {
		t.Run(name, func(t *testing.T) {
			conditions := tc.scene.plan().Status.Conditions
			for kind, want := range map[string]string{v1.RayClusterReadyCondition: tc.ready, v1.RayClusterHeadReadyCondition: tc.head} {
				if c := meta.FindStatusCondition(conditions, kind); c == nil || c.Message != want {
					t.Errorf("%s: got %+v, want %q", kind, c, want)
				}
			}
		})
	}
}
