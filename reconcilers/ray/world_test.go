package ray

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// world is an API server with one cluster, the kubelets that run its pods, and a
// controller that sees all of it late. Objects in it are never changed in place.
type world struct {
	random *rand.Rand
	now    time.Time

	// cluster, pods and job are the truth.
	cluster *v1.RayCluster
	version int
	pods    map[string]*corev1.Pod
	job     *batchv1.Job
	gone    bool
	uids    int
	// quota says that no pod can be made.
	quota bool

	// seenCluster, seenPods and seenJob are what the controller's cache shows.
	seenCluster *v1.RayCluster
	seenVersion int
	seenPods    map[string]*corev1.Pod
	seenJob     *batchv1.Job
	// written is the version that the controller's last write made; made and
	// deleted are the pods that it waits to see come and go.
	written       int
	made, deleted map[types.UID]bool
	// crashAfter is after how many writes the controller dies in this pass.
	crashAfter int

	writes, jobs int
	fault        string
	verbose      bool
	history      []string
}

func newWorld(seed uint64) *world {
	w := &world{
		random: rand.New(rand.NewPCG(seed, seed)), now: fixtures.Start,
		pods: map[string]*corev1.Pod{}, made: map[types.UID]bool{}, deleted: map[types.UID]bool{},
	}
	w.cluster = randomCluster(w.random)
	w.lookAtAll()
	return w
}

func randomCluster(r *rand.Rand) *v1.RayCluster {
	pick := func(mods ...fixtures.ClusterMod) fixtures.ClusterMod { return mods[r.IntN(len(mods))] }
	nothing := func(*v1.RayCluster) {}
	policy := []v1.RestartPolicy{v1.RestartAlways, v1.RestartNever, v1.RestartOnFailure, ""}[r.IntN(4)]
	return fixtures.RayCluster("a",
		small(fixtures.Replicas(r.Int32N(4)), fixtures.Between(r.Int32N(2), 1+r.Int32N(4)), fixtures.Hosts(1+r.Int32N(2))),
		pick(nothing, fixtures.RayGroup("other-group")),
		func(cluster *v1.RayCluster) {
			for i := range cluster.Spec.Roles {
				cluster.Spec.Roles[i].RestartPolicy = policy
			}
		},
		pick(nothing, nothing, fixtures.Autoscaled(v1.RayAutoscalerV1), fixtures.Autoscaled(v1.RayAutoscalerV2)),
		pick(nothing, fixtures.InRedis()),
		pick(fixtures.Upgrades(v1.UpgradeNone), fixtures.Upgrades(v1.UpgradeRecreate), fixtures.Upgrades(v1.UpgradeRollingUpdate)),
		pick(nothing, nothing, fixtures.ClusterSuspended(true)),
	)
}

func (w *world) note(format string, args ...any) {
	if w.verbose {
		w.history = append(w.history, w.now.Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
	}
}

func (w *world) fail(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, args...)
		w.note("FAULT %s", w.fault)
	}
}

// look brings one part of the controller's cache up to date.
func (w *world) look() {
	switch w.random.IntN(3) {
	case 0:
		w.seenCluster, w.seenVersion = w.cluster, w.version
	case 1:
		w.seenPods = maps.Clone(w.pods)
	default:
		w.seenJob = w.job
	}
}

func (w *world) lookAtAll() {
	w.seenCluster, w.seenVersion, w.seenPods, w.seenJob = w.cluster, w.version, maps.Clone(w.pods), w.job
}

// awaits says whether the cache does not show yet what the controller did.
func (w *world) awaits() bool {
	alive := map[types.UID]bool{}
	for _, pod := range w.seenPods {
		delete(w.made, pod.UID)
		alive[pod.UID] = pod.DeletionTimestamp == nil
	}
	maps.DeleteFunc(w.deleted, func(uid types.UID, _ bool) bool { return !alive[uid] })
	// What is gone before the cache showed it is given up after a while.
	maps.DeleteFunc(w.made, func(uid types.UID, _ bool) bool {
		return !slices.ContainsFunc(slices.Collect(maps.Values(w.pods)), func(p *corev1.Pod) bool { return p.UID == uid })
	})
	return w.seenVersion < w.written || len(w.made) > 0 || len(w.deleted) > 0
}

// reconcile is the loop.
func (w *world) reconcile() {
	if w.gone || w.awaits() {
		return
	}
	cluster := w.seenCluster
	if cluster.DeletionTimestamp != nil && !w.isHeld(cluster) {
		return
	}
	result := Plan(cluster, w.observed(), w.now)
	steps := []func() bool{func() bool { return w.hold(result.Finalize) }}
	refused := false
	for _, child := range result.Create {
		steps = append(steps, func() bool {
			refused = refused || !w.create(child)
			return true
		})
	}
	steps = append(steps, func() bool { return w.writeStatus(result.Status, refused) })
	for _, deletion := range result.Delete {
		steps = append(steps, func() bool { w.delete(deletion); return true })
	}
	steps = append(steps, func() bool { return w.release(result.Finalize) })
	for i, step := range steps {
		if w.crashAfter > 0 && i >= w.crashAfter {
			w.restartController()
			return
		}
		if !step() {
			w.note("conflict")
			return
		}
	}
}

func (w *world) observed() plan.Observed {
	var observed plan.Observed
	for _, name := range slices.Sorted(maps.Keys(w.seenPods)) {
		observed.Children = append(observed.Children, w.seenPods[name])
	}
	if w.seenJob != nil {
		observed.Children = append(observed.Children, w.seenJob)
	}
	return observed
}

// restartController loses what the controller had in memory. Its new cache is
// filled by lists that are as new as everything written before.
func (w *world) restartController() {
	w.note("controller restarts")
	w.written = 0
	clear(w.made)
	clear(w.deleted)
	w.lookAtAll()
}

func (w *world) isHeld(cluster *v1.RayCluster) bool {
	return slices.Contains(cluster.Finalizers, v1.RedisCleanupFinalizer)
}

// change makes a changed copy of the cluster the truth; it returns false if the
// controller has seen an older one.
func (w *world) change(mod func(*v1.RayCluster)) bool {
	if w.seenVersion != w.version {
		return false
	}
	w.edit(mod)
	w.writes++
	w.written = w.version
	w.seenCluster, w.seenVersion = w.cluster, w.version
	return true
}

func (w *world) edit(mods ...fixtures.ClusterMod) {
	w.cluster = w.cluster.DeepCopy()
	for _, mod := range mods {
		mod(w.cluster)
	}
	w.version++
}

func (w *world) hold(finalize bool) bool {
	if !finalize || w.isHeld(w.seenCluster) || w.seenCluster.DeletionTimestamp != nil {
		return true
	}
	return w.change(func(cluster *v1.RayCluster) { cluster.Finalizers = []string{v1.RedisCleanupFinalizer} })
}

func (w *world) release(finalize bool) bool {
	if finalize || !w.isHeld(w.seenCluster) {
		return true
	}
	if !w.change(func(cluster *v1.RayCluster) { cluster.Finalizers = nil }) {
		return false
	}
	w.collect()
	return true
}

// collect is the garbage collector.
func (w *world) collect() {
	if w.cluster.DeletionTimestamp != nil && !w.isHeld(w.cluster) {
		w.note("cluster is gone")
		w.gone = true
		clear(w.pods)
	}
}

func (w *world) create(child plan.Object) bool {
	w.writes++
	if job, ok := child.(*batchv1.Job); ok {
		if w.job == nil {
			w.jobs++
			w.job = job
			w.checkCleanup()
		}
		return true
	}
	pod := child.(*corev1.Pod)
	if w.pods[pod.Name] != nil {
		return true
	}
	if w.quota {
		return false
	}
	w.uids++
	pod.UID = types.UID(fmt.Sprintf("u%03d", w.uids))
	pod.CreationTimestamp = metav1.NewTime(w.now)
	pod.Status.Phase = corev1.PodPending
	w.pods[pod.Name] = pod
	w.made[pod.UID] = true
	w.note("created %s %s", pod.Name, pod.UID)
	w.checkCreate(pod)
	return true
}

func (w *world) writeStatus(status v1.RayClusterStatus, refused bool) bool {
	if w.seenCluster.DeletionTimestamp != nil {
		return true
	}
	condition := metav1.Condition{Type: v1.InvalidCondition, Status: metav1.ConditionFalse, Reason: v1.ValidReason, LastTransitionTime: metav1.NewTime(w.now)}
	if refused {
		condition.Status, condition.Reason = metav1.ConditionTrue, v1.ChildForbiddenReason
	}
	if refused || isTrue(status.Conditions, v1.InvalidCondition) {
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	if equality.Semantic.DeepEqual(w.seenCluster.Status, status) {
		return true
	}
	w.checkStatus(&status)
	w.note("status %s %s", status.Phase, status.RolesReady)
	return w.change(func(cluster *v1.RayCluster) { cluster.Status = status })
}

func (w *world) delete(deletion plan.Deletion) {
	pod := w.pods[deletion.Child.GetName()]
	if pod == nil || pod.UID != deletion.UID() {
		return
	}
	w.writes++
	w.note("deleted %s %s: %s", pod.Name, pod.UID, deletion.Reason)
	w.deleted[pod.UID] = true
	w.terminate(pod)
}

// terminate starts the deletion of a pod. One that has ended is gone at once.
func (w *world) terminate(pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		delete(w.pods, pod.Name)
		return
	}
	if pod.DeletionTimestamp == nil {
		w.update(pod, func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(w.now)) })
	}
}

func (w *world) update(pod *corev1.Pod, mods ...fixtures.PodMod) {
	pod = pod.DeepCopy()
	for _, mod := range mods {
		mod(pod)
	}
	w.pods[pod.Name] = pod
}

// progress takes a pod a step on, as its kubelet does.
func (w *world) progress(pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil:
		delete(w.pods, pod.Name)
	case pod.Status.Phase == corev1.PodPending, pod.Status.Phase == corev1.PodRunning && len(pod.Status.Conditions) == 0:
		w.update(pod, fixtures.Running())
	}
}

func (w *world) names() []string { return slices.Sorted(maps.Keys(w.pods)) }

func (w *world) somePod(do func(*corev1.Pod)) {
	if names := w.names(); len(names) > 0 {
		do(w.pods[names[w.random.IntN(len(names))]])
	}
}

// String shows the cluster and its pods.
func (w *world) String() string {
	lines := []string{fmt.Sprintf("phase %s, %s, strategy %s, autoscaled %v, suspended %v",
		w.cluster.Status.Phase, w.cluster.Status.RolesReady, strategyOf(w.cluster), autoscales(w.cluster), suspended(w.cluster))}
	for _, role := range w.cluster.Spec.Roles {
		if role.Name != v1.RoleHead {
			lines = append(lines, fmt.Sprintf("group %s: %d replicas of %d hosts", role.Name, wantedReplicas(&role), hostsOf(&role)))
		}
	}
	for _, c := range w.cluster.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	for _, name := range w.names() {
		pod := w.pods[name]
		lines = append(lines, fmt.Sprintf("pod %s %s: %s, deleting %v", name, pod.UID, pod.Status.Phase, pod.DeletionTimestamp != nil))
	}
	return strings.Join(lines, "\n")
}
