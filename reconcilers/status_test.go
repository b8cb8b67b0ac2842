package reconcilers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// What a job lacked when it ended it has never got: nobody mended that.
func TestLoopTellsHowAFaultEnds(t *testing.T) {
	type end struct {
		Phase   v1.Phase
		Status  metav1.ConditionStatus
		Reason  string
		Message string
	}
	const quota = `the API server forbids a Pod: pods "a-worker-0" is forbidden: exceeded quota`
	tests := map[string]struct {
		then func(*bench)
		want end
	}{
		"the job goes on without": {then: func(*bench) {}, want: end{v1.PhaseCreating, "True", v1.ChildForbiddenReason, quota}},
		"the quota was raised":    {then: func(b *bench) { b.refuse = nil }, want: end{v1.PhaseCreating, "False", v1.ValidReason, "the fault is mended"}},
		"the job fails": {
			then: func(b *bench) { b.clock.SetTime(fixtures.Start.Add(61 * time.Second)) },
			want: end{v1.PhaseFailed, "True", v1.ChildForbiddenReason, quota},
		},
		"the job is suspended": {
			then: func(b *bench) {
				job := b.job()
				fixtures.Suspended()(job)
				if err := b.client.Update(t.Context(), job); err != nil {
					b.Fatal(err)
				}
			},
			want: end{v1.PhaseSuspended, "False", v1.ValidReason, "nothing has to be made"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(1), fixtures.Deadline(60)))
			b.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a-worker-0", errors.New("exceeded quota"))
			b.reconcile()
			tc.then(b)
			for range 3 {
				b.reconcile()
			}
			c := b.condition(v1.InvalidCondition)
			if diff := cmp.Diff(tc.want, end{b.job().Status.Phase, c.Status, c.Reason, c.Message}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoopTellsOfEachFaultOnce(t *testing.T) {
	tests := map[string]struct {
		refusal error
		others  bool
		want    string
	}{
		"forbidden": {refusal: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a-worker-0", errors.New("exceeded quota")),
			want: "Warning ChildForbidden the API server forbids a Pod: "},
		"rejected": {refusal: apierrors.NewBadRequest("no"), want: "Warning ChildRejected the API server refuses a Pod: no"},
		"not owned": {others: true,
			want: "Warning ChildNotOwned Service a-worker-0 exists and does not belong to this trainingjob"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(8)))
			if tc.others {
				other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a-worker-0", Namespace: fixtures.Namespace}}
				if err := b.client.Create(t.Context(), other); err != nil {
					t.Fatal(err)
				}
			}
			b.refuse = tc.refusal
			for range 3 {
				b.reconcile()
			}
			var told []string
			for len(b.recorder.Events) > 0 {
				if e := <-b.recorder.Events; strings.HasPrefix(e, "Warning") {
					told = append(told, e)
				}
			}
			if len(told) != 1 || !strings.HasPrefix(told[0], tc.want) {
				t.Errorf("events %q", told)
			}
		})
	}
}
