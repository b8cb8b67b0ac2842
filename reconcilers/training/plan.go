// Package training plans TrainingJobs: which pods, services and autoscaler a
// job needs now, what its status is, and when to look again.
//
// It is step 9 of the flow and pure: it must not import a client or
// controller-runtime, and must not read the clock. Everything that frameworks
// have in common is here once; a framework is one file that says which roles
// there are, what their pods need, and when the job has succeeded.
package training

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/gangs"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// Plan decides what a training job needs, given its children and the time. The
// job must have been defaulted and validated. It is deterministic and changes
// none of its arguments.
//
// A finished job stays finished whatever is observed later. A suspended one
// loses all its children and keeps its status.
func Plan(job *v1.TrainingJob, observed plan.Observed, now time.Time) plan.Result[v1.TrainingJobStatus] {
	p := newPlanner(job, observed, now)
	switch {
	case finished(&job.Status):
		p.planFinished()
	case suspended(job) || p.leaving():
		p.planSuspended()
	default:
		p.planActive()
	}
	p.status.ObservedGeneration = job.Generation
	p.result.Status = *p.status
	return p.result
}

// planner holds one planning: what is known, and the result as it grows.
type planner struct {
	job       *v1.TrainingJob
	framework framework
	observed  plan.Observed
	census    *census
	now       metav1.Time

	// status is a copy that becomes the status of the result.
	status *v1.TrainingJobStatus
	result plan.Result[v1.TrainingJobStatus]
	// deleting holds what the result deletes.
	deleting map[types.UID]bool
	// gangRestarting says that all pods are being replaced.
	gangRestarting bool
	// gang is how the pods are placed all together; nil where they are not.
	gang *gangs.Gang
	// ungrouped says that the job asks for that, and its pods were made without.
	ungrouped bool
}

func newPlanner(job *v1.TrainingJob, observed plan.Observed, now time.Time) *planner {
	f := frameworks[job.Spec.Framework]
	return &planner{
		job:       job,
		framework: f,
		observed:  observed,
		census:    takeCensus(job, f, plan.ChildrenOf[*corev1.Pod](observed), now),
		// Stored times have no fractions of a second; a time that has one would
		// differ from itself after a round trip.
		now:      metav1.NewTime(now.Truncate(time.Second)),
		status:   job.Status.DeepCopy(),
		deleting: map[types.UID]bool{},
	}
}

// planActive plans a job that shall run.
func (p *planner) planActive() {
	p.chooseGang()
	p.start()
	p.countRestartsInPlace()
	if v := p.judge(); v != nil {
		p.finish(v)
		return
	}
	p.planServices()
	p.planSupplies()
	p.planGang()
	p.planPods()
	p.reportGang()
	p.planAutoscaler()
	p.setCounts()
	p.setProgress()
	p.wakeAtDeadline()
}

// remove deletes children that are not being deleted yet.
func (p *planner) remove(child plan.Object, reason string) {
	if child.GetDeletionTimestamp() != nil || p.deleting[child.GetUID()] {
		return
	}
	p.deleting[child.GetUID()] = true
	p.result.Delete = append(p.result.Delete, plan.Deletion{Child: child, Reason: reason})
}

// wakeAt asks for another planning at a time that has not come yet.
func (p *planner) wakeAt(t time.Time) {
	p.result.RequeueAfter = plan.Sooner(p.result.RequeueAfter, max(t.Sub(p.now.Time), time.Second))
}

// runPolicy returns the job's run policy, empty when it has none.
func runPolicy(job *v1.TrainingJob) v1.RunPolicy {
	return ptr.Deref(job.Spec.RunPolicy, v1.RunPolicy{})
}
