package training

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// world is an API server with one job, the kubelets that run its pods, and a
// controller that sees all of it late. Objects in it are never changed in
// place: what changes is a copy, so a cache can share what it has seen.
type world struct {
	// random is that of the event which happens now.
	random *rand.Rand
	now    time.Time

	// job, pods and others are the truth; others are all other children, by
	// kind and name.
	job     *v1.TrainingJob
	version int
	pods    map[string]*corev1.Pod
	others  map[string]plan.Object
	gone    bool
	uids    int
	// served are the kinds of pod group that the API server knows; topologyGate
	// says whether it keeps their topology.
	served       map[schema.GroupVersionKind]bool
	topologyGate bool

	// seenJob, seenPods and seenOthers are what the controller's cache shows;
	// the job of the version seenVersion.
	seenJob     *v1.TrainingJob
	seenVersion int
	seenPods    map[string]*corev1.Pod
	seenOthers  map[string]plan.Object
	// written is the version that the controller's last status write made: it
	// does not plan from an older one. A new controller does not know it, and
	// starts from the newest.
	written int
	// patient says that the controller waits until its cache shows the pods that
	// it has made, which are in unseen. One that does not must do no harm either.
	patient bool
	unseen  map[types.UID]bool
	// crashAfter is after how many writes the controller dies in this pass.
	crashAfter int

	facts
	// settling says that events have stopped.
	settling bool
	writes   int
	// transitions are the changes of phase that were written.
	transitions map[transition]bool
	verbose     bool
	history     []string
}

// facts is what really happened since the job was started or resumed last, as
// far as its status has to be explained by it.
type facts struct {
	// happened is how many restarts can have been seen: those in place, and one
	// for each pod that failed.
	happened int32
	// due is how many restarts in place were due, whether they came or not.
	due int32
	// replaced is how many failed pods the controller has replaced one by one.
	replaced int32
	// permanent says that a pod failed in a way that its policy does not
	// restart.
	permanent bool
	// succeeded holds the pods that have succeeded, in this attempt of a gang.
	succeeded map[string]bool
	// finished is the status when the job finished.
	finished *v1.TrainingJobStatus
	fault    string
}

func newWorld(seed uint64) *world {
	w := &world{
		random: rand.New(rand.NewPCG(seed, seed)), now: fixtures.Start,
		pods: map[string]*corev1.Pod{}, others: map[string]plan.Object{}, transitions: map[transition]bool{},
		facts: facts{succeeded: map[string]bool{}}, unseen: map[types.UID]bool{},
	}
	w.job = randomJob(w.random)
	w.installSchedulers(w.random)
	w.patient = w.random.IntN(2) == 0
	w.lookAtAll()
	return w
}

func (w *world) note(format string, args ...any) {
	if w.verbose {
		w.history = append(w.history, w.now.Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
	}
}

func (w *world) fail(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, args...)
	}
}

func (w *world) uid() types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("u%03d", w.uids))
}

// look brings one part of the controller's cache up to date: the job, the pods,
// one pod, or the rest. They come by different watches, and late.
func (w *world) look() {
	switch w.random.IntN(4) {
	case 0:
		w.lookAtJob()
	case 1:
		w.seenPods = maps.Clone(w.pods)
	case 2:
		w.somePod(func(pod *corev1.Pod) { w.seenPods[pod.Name] = pod })
	default:
		w.seenOthers = maps.Clone(w.others)
	}
}

func (w *world) lookAtJob() { w.seenJob, w.seenVersion = w.job, w.version }

func (w *world) lookAtAll() {
	w.lookAtJob()
	w.seenPods, w.seenOthers = maps.Clone(w.pods), maps.Clone(w.others)
}

// restartController loses what the controller had in memory. Its new cache is
// filled by lists that are as new as everything written before.
func (w *world) restartController() {
	w.note("controller restarts")
	w.written = 0
	clear(w.unseen)
	w.lookAtAll()
}

func (w *world) observed() plan.Observed {
	observed := plan.Observed{Children: make([]plan.Object, 0, len(w.seenPods)+len(w.seenOthers)), Served: w.served}
	for _, pod := range w.seenPods {
		// A manager's cache holds no more of it.
		held := *pod
		pods.Lean(&held)
		observed.Children = append(observed.Children, &held)
	}
	for _, child := range w.seenOthers {
		observed.Children = append(observed.Children, child)
	}
	return observed
}

// awaited says whether the cache does not show yet what the controller has made.
func (w *world) awaited() bool {
	for _, pod := range w.seenPods {
		delete(w.unseen, pod.UID)
	}
	waits := false
	for _, pod := range w.pods {
		// One that is gone before the cache showed it is given up after a while.
		waits = waits || w.unseen[pod.UID]
	}
	return w.patient && waits
}

// reconcile is the loop. Without its patience it has no expectations of
// children: what they spare must be harmless all the same.
func (w *world) reconcile() {
	if w.gone || w.seenVersion < w.written || w.awaited() {
		return
	}
	result := Plan(w.seenJob, w.observed(), w.now)
	steps := make([]func() bool, 0, 16)
	for _, child := range result.Apply {
		steps = append(steps, func() bool { w.apply(child); return true })
	}
	for _, generated := range result.Generate {
		steps = append(steps, func() bool { w.generate(generated); return true })
	}
	for _, child := range result.Create {
		steps = append(steps, func() bool { w.create(child.(*corev1.Pod)); return true })
	}
	steps = append(steps, func() bool { return w.writeStatus(result.Status) })
	for _, deletion := range result.Delete {
		steps = append(steps, func() bool { w.delete(deletion); return true })
	}
	for i, step := range steps {
		if w.crashAfter > 0 && i >= w.crashAfter {
			w.note("controller dies in a pass")
			w.restartController()
			return
		}
		if !step() {
			w.note("status conflict")
			return
		}
	}
	if result.DeleteSelf && w.seenVersion == w.version {
		w.note("job deleted")
		w.gone = true
	}
}

// apply server-side applies a child, if the cache does not show it as it should
// be.
func (w *world) apply(child runtime.ApplyConfiguration) {
	if w.applyGroup(child) {
		return
	}
	named, ok := child.(interface {
		GetName() *string
		GetKind() *string
	})
	if !ok {
		w.fail("%T has no name", child)
		return
	}
	key := *named.GetKind() + "/" + *named.GetName()
	made := newChild(child, *named.GetName())
	if seen := w.seenOthers[key]; seen != nil && sameContent(seen, made) {
		return
	}
	w.writes++
	if there := w.others[key]; there != nil {
		made.SetUID(there.GetUID())
	} else {
		made.SetUID(w.uid())
	}
	w.others[key] = made
}

func newChild(child runtime.ApplyConfiguration, name string) plan.Object {
	meta := metav1.ObjectMeta{Name: name}
	switch child := child.(type) {
	case *corev1ac.ConfigMapApplyConfiguration:
		return &corev1.ConfigMap{ObjectMeta: meta, Data: child.Data}
	case *corev1ac.ServiceAccountApplyConfiguration:
		return &corev1.ServiceAccount{ObjectMeta: meta}
	case *corev1ac.ServiceApplyConfiguration:
		return &corev1.Service{ObjectMeta: meta}
	default:
		return &rbacv1.Role{ObjectMeta: meta}
	}
}

func sameContent(a, b plan.Object) bool {
	config, ok := a.(*corev1.ConfigMap)
	return !ok || maps.Equal(config.Data, b.(*corev1.ConfigMap).Data)
}

// generate creates a child with a random part; one that exists stays.
func (w *world) generate(generated plan.Generated) {
	w.writes++
	key := "Secret/" + generated.Child.GetName()
	if w.others[key] == nil {
		generated.Child.SetUID(w.uid())
		w.others[key] = generated.Child
	}
}

func (w *world) create(pod *corev1.Pod) {
	w.writes++
	if w.pods[pod.Name] != nil {
		return
	}
	w.checkCreate(pod)
	pod.UID = w.uid()
	pod.CreationTimestamp = metav1.NewTime(w.now)
	pod.Status.Phase = corev1.PodPending
	w.pods[pod.Name] = pod
	w.unseen[pod.UID] = true
	w.note("created %s %s", pod.Name, pod.UID)
}

func (w *world) writeStatus(status v1.TrainingJobStatus) bool {
	if sameStatus(&w.seenJob.Status, &status) {
		return true
	}
	if w.seenVersion != w.version {
		return false
	}
	w.writes++
	before := &w.job.Status
	if isTrue(before.Conditions, v1.TrainingJobSuspendedCondition) && !isTrue(status.Conditions, v1.TrainingJobSuspendedCondition) {
		w.resumed()
	}
	if before.Phase != status.Phase {
		w.transitions[transition{before.Phase, status.Phase}] = true
	}
	if attempt(before) != attempt(&status) {
		clear(w.succeeded)
	}
	w.note("status %s, restarts %d -> %d, attempt %d", status.Phase,
		ptr.Deref(before.Restarts, 0), ptr.Deref(status.Restarts, 0), attempt(&status))
	job := *w.job
	job.Status = status
	w.job = &job
	w.version++
	w.written = w.version
	w.lookAtJob()
	return true
}

// sameStatus says whether a status need not be written. Most are the same to
// the letter, which is found out sooner.
func sameStatus(a, b *v1.TrainingJobStatus) bool {
	return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(a, b)
}

// resumed forgets what happened before: a resumed job counts anew. What the
// cache does not show yet is still to be counted.
func (w *world) resumed() {
	finished := w.finished
	w.facts = facts{succeeded: map[string]bool{}, finished: finished, fault: w.fault}
	for name, pod := range w.pods {
		w.happened += pods.MainStatus(pod, "").RestartCount
		if seen := w.seenPods[name]; seen != nil && seen.UID == pod.UID {
			w.happened -= pods.MainStatus(seen, "").RestartCount
		}
		if pods.MainStatus(pod, "").State.Waiting != nil {
			w.due++
		}
		if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded && w.serves(pod) {
			w.happened++
			policy := w.policyOf(pod)
			w.permanent = w.permanent || policy == v1.RestartNever || policy == v1.RestartExitCode
		}
		if pod.Status.Phase == corev1.PodSucceeded {
			w.succeeded[name] = true
		}
	}
}

func (w *world) delete(deletion plan.Deletion) {
	w.writes++
	name := deletion.Child.GetName()
	if _, isPod := deletion.Child.(*corev1.Pod); !isPod {
		for key, child := range w.others {
			if child.GetUID() == deletion.UID() {
				delete(w.others, key)
			}
		}
		return
	}
	pod := w.pods[name]
	if pod == nil || pod.UID != deletion.UID() {
		return
	}
	w.note("deleted %s %s: %s", name, pod.UID, deletion.Reason)
	if deletion.Reason == "replaced by a new pod" && !pods.IsLost(pod) && pod.DeletionTimestamp == nil {
		w.replaced++
	}
	w.terminate(pod)
}

// terminate starts the deletion of a pod. One that has ended is gone at once.
func (w *world) terminate(pod *corev1.Pod) {
	if ended(pod) {
		delete(w.pods, pod.Name)
		return
	}
	if pod.DeletionTimestamp == nil {
		w.change(pod, func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(w.now)) })
	}
}

// change makes a changed copy of a pod the truth.
func (w *world) change(pod *corev1.Pod, mods ...fixtures.PodMod) *corev1.Pod {
	pod = pod.DeepCopy()
	for _, mod := range mods {
		mod(pod)
	}
	w.pods[pod.Name] = pod
	return pod
}

// edit makes a changed copy of the job the truth.
func (w *world) edit(mods ...fixtures.JobMod) {
	w.job = w.job.DeepCopy()
	for _, mod := range mods {
		mod(w.job)
	}
	w.version++
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
