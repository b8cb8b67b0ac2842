package training

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// check holds the world to what must be so at any time.
func (w *world) check() string {
	if w.fault != "" {
		return w.fault
	}
	status := &w.job.Status
	if w.finished != nil {
		if then, now := final(*w.finished), final(*status); !sameStatus(&then, &now) {
			return "a finished job changed (-then +now):\n" + cmp.Diff(then, now)
		}
		return ""
	}
	got := ptr.Deref(status.Restarts, 0)
	if got < w.replaced || got > w.happened {
		return fmt.Sprintf("%d restarts were counted; %d pods were replaced, %d restarts happened", got, w.replaced, w.happened)
	}
	limit := w.job.Spec.RunPolicy.BackoffLimit
	switch {
	case limit != nil && w.replaced > *limit:
		return fmt.Sprintf("%d pods were replaced with a backoffLimit of %d", w.replaced, *limit)
	case limit != nil && gangRestarts(w.job) && got > *limit:
		return fmt.Sprintf("the gang was restarted %d times with a backoffLimit of %d", got, *limit)
	case !finished(status) && (status.CompletionTime != nil || status.Phase == v1.PhaseSucceeded || status.Phase == v1.PhaseFailed):
		return "a job that goes on looks finished: " + string(status.Phase)
	case !finished(status):
		return ""
	}
	w.finished = status.DeepCopy()
	if status.CompletionTime == nil {
		return "the job finished without a completion time"
	}
	return w.explain()
}

// explain says whether the end of a job follows from what has happened.
func (w *world) explain() string {
	status, policy := &w.job.Status, w.job.Spec.RunPolicy
	if status.Phase == v1.PhaseSucceeded {
		return w.explainSuccess()
	}
	switch reason := meta.FindStatusCondition(status.Conditions, v1.TrainingJobFailedCondition).Reason; {
	case reason == v1.TrainingJobPodFailedReason && w.permanent:
	case reason == v1.TrainingJobBackoffLimitExceededReason && policy.BackoffLimit != nil && w.happened+w.due > *policy.BackoffLimit:
	case reason == v1.TrainingJobDeadlineExceededReason && policy.ActiveDeadlineSeconds != nil &&
		!w.now.Before(status.StartTime.Add(time.Duration(*policy.ActiveDeadlineSeconds)*time.Second)):
	default:
		return "the job failed for no reason: " + reason
	}
	return ""
}

// explainSuccess is told in other words than the frameworks use: which pods
// must have succeeded.
func (w *world) explainSuccess() string {
	role, all := v1.RoleWorker, true
	for i := range w.job.Spec.Roles {
		if name := w.job.Spec.Roles[i].Name; w.job.Spec.Framework.Leads(name) {
			role = name
		}
	}
	least := int32(1)
	if role == v1.RoleWorker {
		tensorflow := ptr.Deref(w.job.Spec.TensorFlow, v1.TensorFlow{})
		all = w.job.Spec.Elastic == nil && tensorflow.Workers != v1.WorkersDynamic
		if w.job.Spec.Framework == v1.FrameworkTensorFlow && tensorflow.SuccessPolicy == v1.SuccessWorker0 {
			role, all = v1.RoleWorker, false
			if !w.succeeded[childName(w.job, role, 0)] {
				return "the job succeeded while worker 0 had not"
			}
		}
	}
	if all {
		for i := range w.job.Spec.Roles {
			if w.job.Spec.Roles[i].Name == role {
				least = *w.job.Spec.Roles[i].Replicas
			}
		}
	}
	n := int32(0)
	for name := range w.succeeded {
		if _, ok := indexOf(w.job, &v1.Role{Name: role}, name); ok {
			n++
		}
	}
	if n < least {
		return fmt.Sprintf("the job succeeded while %d of at least %d pods of %s had", n, least, role)
	}
	return ""
}

// checkCreate holds the creation of a pod to what the controller can know.
func (w *world) checkCreate(pod *corev1.Pod) {
	if w.seenVersion == w.version && finished(&w.job.Status) {
		w.fail("a finished job creates pod %s", pod.Name)
	}
	w.checkLink(pod)
	for name, other := range w.pods {
		// A controller without patience can only know of pods that it sees.
		if gangRestarts(w.job) && attemptOf(other) != attemptOf(pod) && (w.patient || w.seenPods[name] == other) {
			w.fail("pod %s of attempt %d comes while %s of attempt %d is there", pod.Name, attemptOf(pod), name, attemptOf(other))
		}
	}
	if w.seenVersion != w.version {
		return
	}
	for i := range w.job.Status.Roles {
		role := &w.job.Status.Roles[i]
		index, ok := indexOf(w.job, &v1.Role{Name: role.Name}, pod.Name)
		for _, span := range parseIndexes(role.CompletedIndexes) {
			if ok && index >= span[0] && index <= span[1] {
				w.fail("pod %s is made again although index %d is done", pod.Name, index)
			}
		}
	}
	if launcher, ok := indexOf(w.job, &v1.Role{Name: v1.RoleLauncher}, pod.Name); ok && launcher == 0 && w.earlyLauncher() {
		w.fail("the launcher comes before its workers are ready")
	}
}

// earlyLauncher says whether a launcher has less ready workers in the
// controller's sight than it has to wait for.
func (w *world) earlyLauncher() bool {
	if mpiOf(w.job).LauncherCreation == v1.LauncherAtStartup {
		return false
	}
	least, n := int32(1), int32(0)
	for i := range w.job.Spec.Roles {
		if role := &w.job.Spec.Roles[i]; role.Name == v1.RoleWorker && w.job.Spec.Elastic == nil {
			least = *role.Replicas
		}
	}
	for name, pod := range w.seenPods {
		if _, ok := indexOf(w.job, &v1.Role{Name: v1.RoleWorker}, name); ok && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n < least
}

// checkEnd holds the world to what must be so when nothing happens any more.
func (w *world) checkEnd() string {
	policy := w.job.Spec.RunPolicy
	switch {
	case w.finished == nil:
		return "the job did not come to an end"
	case w.gone:
		return ""
	case policy.TTLSecondsAfterFinished != nil:
		return "the job outlived its time to live"
	case w.writes > 0:
		return fmt.Sprintf("%d writes in steady state", w.writes)
	case w.groups() > 0:
		return "a pod group outlived the job"
	}
	switch policy.CleanPodPolicy {
	case v1.CleanPodAll:
		if len(w.pods)+len(w.others) > 0 {
			return fmt.Sprintf("%d pods and %d other children were left under cleanPodPolicy All", len(w.pods), len(w.others))
		}
	case v1.CleanPodRunning:
		for name, pod := range w.pods {
			if !ended(pod) {
				return "pod " + name + " was left running under cleanPodPolicy Running"
			}
		}
		// Fewer can be left: an outdated cache may show a service and not yet
		// its pod.
		if len(w.others) > len(w.pods) {
			return fmt.Sprintf("%d children were left for %d pods", len(w.others), len(w.pods))
		}
	}
	return ""
}
