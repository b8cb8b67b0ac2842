package training

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// world is an API server with one job, the kubelets that run its pods, and a
// controller that sees all of it late.
type world struct {
	random *rand.Rand
	now    time.Time

	// job, pods and services are the truth.
	job      *v1.TrainingJob
	version  int
	pods     map[string]*corev1.Pod
	services map[string]types.UID
	gone     bool
	uids     int

	// seenJob, seen and seenServices are what the controller's cache shows, of
	// the version seenVersion.
	seenJob      *v1.TrainingJob
	seenVersion  int
	seen         map[string]*corev1.Pod
	seenServices map[string]types.UID
	// written is the version that the controller's last status write made: it
	// does not plan from an older one. A new controller does not know it, and
	// starts from the newest.
	written int

	// happened is how many restarts can have been seen since the job was
	// started or resumed: those in place, and one for each pod that failed.
	// replaced is how many failed pods the controller has replaced.
	happened, replaced int32
	// finished is the status when the job finished.
	finished *v1.TrainingJobStatus
	writes   int
	fault    string
	history  []string
}

func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, seed))
	w := &world{
		random: r, now: fixtures.Start, job: randomJob(r),
		pods: map[string]*corev1.Pod{}, services: map[string]types.UID{},
	}
	w.look()
	return w
}

func (w *world) note(format string, args ...any) {
	w.history = append(w.history, w.now.Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
}

func (w *world) uid() types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("u%03d", w.uids))
}

// look brings the controller's cache up to date: the job, the pods, or both,
// since they come by different watches.
func (w *world) look() {
	which := w.random.IntN(3)
	if which != 0 {
		w.seenJob, w.seenVersion = w.job.DeepCopy(), w.version
	}
	if which != 1 {
		w.seen, w.seenServices = map[string]*corev1.Pod{}, map[string]types.UID{}
		for name, pod := range w.pods {
			w.seen[name] = pod.DeepCopy()
		}
		maps.Copy(w.seenServices, w.services)
	}
}

func (w *world) seenPods() plan.Observed {
	var observed plan.Observed
	for _, pod := range w.seen {
		observed.Children = append(observed.Children, pod)
	}
	for name, uid := range w.seenServices {
		observed.Children = append(observed.Children, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}})
	}
	return observed
}

// restartController loses what the controller had in memory. Its new cache is
// filled by lists that are as new as everything written before.
func (w *world) restartController() {
	w.note("controller restarts")
	w.written = 0
	w.seenJob, w.seenVersion = nil, 0
	for w.seenJob == nil || w.seenVersion != w.version {
		w.look()
	}
	w.seen = map[string]*corev1.Pod{}
	for name, pod := range w.pods {
		w.seen[name] = pod.DeepCopy()
	}
	w.seenServices = map[string]types.UID{}
	maps.Copy(w.seenServices, w.services)
}

// reconcile is the loop without its expectations of children: what they spare
// must be harmless all the same.
func (w *world) reconcile() {
	if w.gone || w.seenJob == nil || w.seenVersion < w.written {
		return
	}
	result := Plan(w.seenJob, w.seenPods(), w.now)
	for _, child := range result.Apply {
		w.apply(child.(*corev1ac.ServiceApplyConfiguration))
	}
	for _, child := range result.Create {
		w.create(child.(*corev1.Pod))
	}
	if !w.writeStatus(result.Status) {
		w.note("status conflict")
		return
	}
	for _, deletion := range result.Delete {
		w.delete(deletion)
	}
	if result.DeleteSelf && w.seenVersion == w.version {
		w.note("job deleted")
		w.gone = true
	}
}

func (w *world) apply(service *corev1ac.ServiceApplyConfiguration) {
	if _, ok := w.seenServices[*service.Name]; ok {
		return
	}
	w.writes++
	if _, ok := w.services[*service.Name]; !ok {
		w.services[*service.Name] = w.uid()
	}
}

func (w *world) create(pod *corev1.Pod) {
	w.writes++
	if w.pods[pod.Name] != nil {
		return
	}
	pod.UID = w.uid()
	pod.CreationTimestamp = metav1.NewTime(w.now)
	pod.Status.Phase = corev1.PodPending
	w.pods[pod.Name] = pod
	w.note("created %s %s", pod.Name, pod.UID)
}

func (w *world) writeStatus(status v1.TrainingJobStatus) bool {
	if equality.Semantic.DeepEqual(w.seenJob.Status, status) {
		return true
	}
	if w.seenVersion != w.version {
		return false
	}
	w.writes++
	if isTrue(w.job.Status.Conditions, v1.TrainingJobSuspendedCondition) && !isTrue(status.Conditions, v1.TrainingJobSuspendedCondition) {
		// A resumed job counts anew.
		w.happened, w.replaced = 0, 0
		for _, pod := range w.pods {
			w.happened += mainStatus(pod, "").RestartCount - seenRestarts(w.seen[pod.Name], pod)
			if pod.Status.Phase == corev1.PodFailed {
				w.happened++
			}
		}
	}
	before := ptr.Deref(w.job.Status.Restarts, 0)
	w.job.Status = status
	w.revise()
	w.written, w.seenJob, w.seenVersion = w.version, w.job.DeepCopy(), w.version
	w.note("status %s, restarts %d -> %d", status.Phase, before, ptr.Deref(status.Restarts, 0))
	return true
}

// seenRestarts is how many restarts of a pod the cache shows.
func seenRestarts(seen, pod *corev1.Pod) int32 {
	if seen == nil || seen.UID != pod.UID {
		return 0
	}
	return mainStatus(seen, "").RestartCount
}

func (w *world) revise() { w.version++ }

func (w *world) delete(deletion plan.Deletion) {
	w.writes++
	name := deletion.Child.GetName()
	if _, ok := deletion.Child.(*corev1.Service); ok {
		if w.services[name] == deletion.UID() {
			delete(w.services, name)
		}
		return
	}
	pod := w.pods[name]
	if pod == nil || pod.UID != deletion.UID() {
		return
	}
	w.note("deleted %s %s: %s", name, pod.UID, deletion.Reason)
	if deletion.Reason == "replaced by a new pod" && !isLost(pod) && pod.DeletionTimestamp == nil {
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
	pod.DeletionTimestamp = new(metav1.NewTime(w.now))
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// The kubelets and the people.

func (w *world) somePod(act func(*corev1.Pod)) {
	if names := w.names(); len(names) > 0 {
		act(w.pods[names[w.random.IntN(len(names))]])
	}
}

// progress takes a pod one step on its way to a good end.
func (w *world) progress(pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil:
		w.note("%s %s is gone", pod.Name, pod.UID)
		delete(w.pods, pod.Name)
	case pod.Status.Phase == corev1.PodPending:
		fixtures.Running()(pod)
	case pod.Status.Phase == corev1.PodRunning && mainStatus(pod, "").State.Waiting != nil:
		// The kubelet restarts the container.
		fixtures.RestartedInPlace(mainStatus(pod, "").RestartCount+1, 1)(pod)
		fixtures.Running()(pod)
		w.happened++
		w.note("%s %s restarted in place", pod.Name, pod.UID)
	case pod.Status.Phase == corev1.PodRunning && w.random.IntN(3) == 0:
		fixtures.Succeeded()(pod)
		w.note("%s %s succeeded", pod.Name, pod.UID)
	}
}

func (w *world) crash(pod *corev1.Pod) {
	if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || mainStatus(pod, "").State.Waiting != nil {
		return
	}
	code := []int32{1, 137, 137, 143}[w.random.IntN(4)]
	w.note("%s %s crashed with %d", pod.Name, pod.UID, code)
	if restartsInPlace(pod, code) {
		n := mainStatus(pod, "").RestartCount
		fixtures.CrashLoop()(pod)
		fixtures.RestartedInPlace(n, code)(pod)
		return
	}
	fixtures.Failed(code)(pod)
	w.happened++
}

// lose fails a pod through its node.
func (w *world) lose(pod *corev1.Pod) {
	if !ended(pod) && pod.DeletionTimestamp == nil {
		w.note("%s %s lost its node", pod.Name, pod.UID)
		fixtures.FailedFor("Terminated", "")(pod)
		fixtures.Disrupted()(pod)
	}
}

// drain deletes a pod through the eviction API.
func (w *world) drain(pod *corev1.Pod) {
	w.note("%s %s is drained", pod.Name, pod.UID)
	fixtures.Disrupted()(pod)
	w.terminate(pod)
}

func (w *world) deleteByHand(pod *corev1.Pod) {
	w.note("%s %s is deleted by hand", pod.Name, pod.UID)
	w.terminate(pod)
}

func (w *world) toggleSuspend() {
	suspend := !suspended(w.job)
	w.note("suspend: %v", suspend)
	w.job.Spec.RunPolicy.Suspend = new(suspend)
	w.revise()
}

func (w *world) scale() {
	if elastic := w.job.Spec.Elastic; elastic != nil {
		elastic.Replicas = new(1 + w.random.Int32N(4))
		w.note("scaled to %d", *elastic.Replicas)
		w.revise()
	}
}
