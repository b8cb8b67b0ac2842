package training

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// happenings are what can happen, and how often beside the others. Lost and
// doubled events are passes that do not come and that come twice; late and
// reordered ones are caches that show one thing before another.
var happenings = []struct {
	name   string
	weight int
	event  func(*world)
}{
	{"reconcile", 30, (*world).reconcile},
	{"look", 35, (*world).look},
	{"progress", 30, func(w *world) { w.somePod(w.progress) }},
	{"crash", 12, func(w *world) { w.somePod(w.crash) }},
	{"drain", 5, func(w *world) { w.somePod(w.drain) }},
	{"lose a pod", 3, func(w *world) { w.somePod(w.lose) }},
	{"lose a node", 2, (*world).loseNode},
	{"delete by hand", 4, func(w *world) { w.somePod(w.deleteByHand) }},
	{"suspend or resume", 4, (*world).toggleSuspend},
	{"scale", 4, (*world).scale},
	{"edit", 3, (*world).editLimits},
	{"restart the controller", 3, (*world).restartController},
	{"die in a pass", 4, (*world).dieInPass},
	{"admit the gang", 4, (*world).admitGang},
	{"a gang scheduler comes or goes", 2, (*world).changeSchedulers},
	{"hold still", 2, (*world).holdStill},
	{"rest suspended", 1, (*world).restSuspended},
	{"time passes", 8, func(w *world) { w.now = w.now.Add(time.Duration(w.random.IntN(90)) * time.Second) }},
}

func (w *world) names() []string { return slices.Sorted(maps.Keys(w.pods)) }

func (w *world) somePod(act func(*corev1.Pod)) {
	if names := w.names(); len(names) > 0 {
		act(w.pods[names[w.random.IntN(len(names))]])
	}
}

// policyOf returns the restart policy of a pod's role.
func (w *world) policyOf(pod *corev1.Pod) v1.RestartPolicy {
	for i := range w.job.Spec.Roles {
		if _, ok := indexOf(w.job, &w.job.Spec.Roles[i], pod.Name); ok {
			return w.job.Spec.Roles[i].RestartPolicy
		}
	}
	return ""
}

// serves says whether a pod is of a role that works for the others.
func (w *world) serves(pod *corev1.Pod) bool {
	role := v1.RolePS
	if w.job.Spec.Framework == v1.FrameworkMPI {
		role = v1.RoleWorker
	}
	_, ok := indexOf(w.job, &v1.Role{Name: role}, pod.Name)
	return ok
}

// progress takes a pod one step on its way to a good end.
func (w *world) progress(pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil:
		w.note("%s %s is gone", pod.Name, pod.UID)
		delete(w.pods, pod.Name)
	case pod.Status.Phase == corev1.PodPending:
		if pod = w.place(pod); pod.Spec.NodeName == "" {
			return
		}
		w.change(pod, fixtures.Running())
		w.note("%s %s runs", pod.Name, pod.UID)
	case pod.Status.Phase == corev1.PodRunning && pods.MainStatus(pod, "").State.Waiting != nil:
		// The kubelet restarts the container.
		w.change(pod, fixtures.RestartedInPlace(pods.MainStatus(pod, "").RestartCount+1, 1), fixtures.Running())
		w.happened++
		w.note("%s %s restarted in place", pod.Name, pod.UID)
	case pod.Status.Phase == corev1.PodRunning && !(w.settling && w.serves(pod)) && w.random.IntN(3) == 0:
		w.change(pod, fixtures.Succeeded())
		if w.serves(pod) {
			// Ended too early, perhaps.
			w.happened++
			w.permanent = w.permanent || w.policyOf(pod) == v1.RestartNever || w.policyOf(pod) == v1.RestartExitCode
		}
		if !gangRestarts(w.job) || attemptOf(pod) == attempt(&w.job.Status) {
			w.succeeded[pod.Name] = true
		}
		w.note("%s %s succeeded", pod.Name, pod.UID)
	}
}

func (w *world) crash(pod *corev1.Pod) {
	if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || pods.MainStatus(pod, "").State.Waiting != nil {
		return
	}
	code := []int32{1, 137, 137, 143}[w.random.IntN(4)]
	w.note("%s %s crashed with %d", pod.Name, pod.UID, code)
	if pods.RestartsInPlace(pod, code) {
		w.change(pod, fixtures.CrashLoop(), fixtures.RestartedInPlace(pods.MainStatus(pod, "").RestartCount, code))
		w.due++
		return
	}
	w.change(pod, fixtures.Failed(code))
	w.happened++
	policy := w.policyOf(pod)
	w.permanent = w.permanent || policy == v1.RestartNever || policy == v1.RestartExitCode && code < 128
}

// lose fails a pod through its node.
func (w *world) lose(pod *corev1.Pod) {
	if !ended(pod) && pod.DeletionTimestamp == nil {
		w.note("%s %s lost its node", pod.Name, pod.UID)
		w.change(pod, fixtures.FailedFor("Terminated", ""), fixtures.Disrupted())
	}
}

// loseNode takes every other pod: by the kubelet's shutdown, or without a word,
// when the pod garbage collector finds the node gone.
func (w *world) loseNode() {
	node, silent := w.random.IntN(2), w.random.IntN(2) == 0
	for i, name := range w.names() {
		switch {
		case i%2 != node:
		case silent:
			w.note("%s %s vanishes with its node", name, w.pods[name].UID)
			delete(w.pods, name)
		default:
			w.lose(w.pods[name])
		}
	}
}

// drain deletes a pod through the eviction API.
func (w *world) drain(pod *corev1.Pod) {
	w.note("%s %s is drained", pod.Name, pod.UID)
	w.terminate(w.change(pod, fixtures.Disrupted()))
}

func (w *world) deleteByHand(pod *corev1.Pod) {
	w.note("%s %s is deleted by hand", pod.Name, pod.UID)
	w.terminate(pod)
}

func (w *world) toggleSuspend() {
	suspend := !suspended(w.job)
	w.note("suspend: %v", suspend)
	w.edit(fixtures.RunPolicy(func(p *v1.RunPolicy) { p.Suspend = new(suspend) }))
}

func (w *world) scale() {
	if w.job.Spec.Elastic != nil {
		n := 1 + w.random.Int32N(4)
		w.note("scaled to %d", n)
		w.edit(fixtures.Scaled(n))
	}
}

// editLimits raises what people raise while a job runs.
func (w *world) editLimits() {
	w.edit(fixtures.RunPolicy(func(p *v1.RunPolicy) {
		switch {
		case w.random.IntN(2) == 0 && p.BackoffLimit != nil:
			p.BackoffLimit = new(*p.BackoffLimit + 1)
		case p.ActiveDeadlineSeconds != nil:
			p.ActiveDeadlineSeconds = new(*p.ActiveDeadlineSeconds + 30)
		default:
			p.TTLSecondsAfterFinished = new(ptr.Deref(p.TTLSecondsAfterFinished, 0) + 60)
		}
	}))
	w.note("limits are edited")
}

// dieInPass ends the controller after some of the writes of a pass.
func (w *world) dieInPass() {
	w.crashAfter = 1 + w.random.IntN(8)
	w.reconcile()
	w.crashAfter = 0
}

// holdStill lets the controller see all, and nothing else happen, until it must
// have done what is to be done.
func (w *world) holdStill() {
	for range 6 {
		w.lookAtAll()
		w.reconcile()
	}
	w.writes = 0
	w.reconcile()
	if w.writes > 0 {
		w.fail("%d writes while nothing happens", w.writes)
	}
}

// restSuspended suspends the job until nothing happens any more: nothing of it
// may be left but its status.
func (w *world) restSuspended() {
	if finished(&w.job.Status) || w.gone {
		return
	}
	was := suspended(w.job)
	w.edit(fixtures.RunPolicy(func(p *v1.RunPolicy) { p.Suspend = new(true) }))
	for range 6 {
		for _, name := range w.names() {
			if w.pods[name].DeletionTimestamp != nil {
				w.progress(w.pods[name])
			}
		}
		w.lookAtAll()
		w.reconcile()
	}
	w.note("rests suspended")
	if n := len(w.pods) + len(w.others); n > 0 && !finished(&w.job.Status) {
		w.fail("%d children are left of a suspended job", n)
	}
	w.edit(fixtures.RunPolicy(func(p *v1.RunPolicy) { p.Suspend = new(was) }))
}
