package ray

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

var (
	histories = flag.Uint64("histories", 3_000, "number of random histories to simulate")
	firstSeed = flag.Uint64("seed", 1, "seed of the first history")
)

// TestSimulation throws random histories at Plan and checks after each event
// what must always hold, and in the end that the cluster is what its spec says,
// or gone. A failure prints its seed and the shortest history found that still
// fails; `-histories 1 -seed N` replays it.
func TestSimulation(t *testing.T) {
	seen := map[v1.Phase]int{}
	for seed := *firstSeed; seed < *firstSeed+*histories; seed++ {
		history := randomHistory(seed)
		w, fault := play(seed, history, false)
		if fault == "" {
			seen[w.cluster.Status.Phase]++
			continue
		}
		short := shrink(history, func(h []happening) bool { _, fault := play(seed, h, false); return fault != "" })
		w, fault = play(seed, short, true)
		t.Fatalf("seed %d: %s\n%s\nhistory:\n  %s", seed, fault, w, strings.Join(w.history, "\n  "))
	}
	t.Logf("phases at the end: %v", seen)
}

// happening is one event of a history: what, and the seed of its own choices.
type happening struct {
	what int
	seed uint64
}

var happenings = []struct {
	name   string
	weight int
	event  func(w *world)
}{
	{"look", 30, (*world).look},
	{"look at all", 20, (*world).lookAtAll},
	{"reconcile", 60, (*world).reconcile},
	{"progress", 40, func(w *world) { w.somePod(w.progress) }},
	{"time", 10, func(w *world) { w.now = w.now.Add(time.Duration(1+w.random.IntN(90)) * time.Second) }},
	{"fail", 6, func(w *world) {
		w.somePod(func(pod *corev1.Pod) {
			w.update(pod, fixtures.Failed(1), notReady)
			w.note("%s fails", pod.Name)
		})
	}},
	{"end", 2, func(w *world) { w.somePod(func(pod *corev1.Pod) { w.update(pod, fixtures.Succeeded(), notReady) }) }},
	{"unready", 4, func(w *world) {
		w.somePod(func(pod *corev1.Pod) {
			if pod.Status.Phase == corev1.PodRunning {
				w.update(pod, notReady)
			}
		})
	}},
	{"deleted by somebody", 6, func(w *world) {
		w.somePod(func(pod *corev1.Pod) { w.note("somebody deletes %s", pod.Name); w.terminate(pod) })
	}},
	{"head deleted", 3, func(w *world) {
		if pod := w.pods["a-head"]; pod != nil {
			w.note("somebody deletes the head")
			w.terminate(pod)
		}
	}},
	{"replicas", 8, func(w *world) { w.edit(w.someGroup(fixtures.Replicas(w.random.Int32N(6)))) }},
	{"bounds", 3, func(w *world) { w.edit(w.someGroup(fixtures.Between(w.random.Int32N(2), 1+w.random.Int32N(4)))) }},
	{"hosts", 1, func(w *world) { w.edit(w.someGroup(fixtures.Hosts(1 + w.random.Int32N(3)))) }},
	{"add a group", 2, func(w *world) {
		w.edit(fixtures.RayGroup("new", fixtures.Replicas(w.random.Int32N(3))))
	}},
	{"remove a group", 2, func(w *world) {
		w.edit(fixtures.WithoutGroup([]v1.RoleName{"new", "other-group", "small"}[w.random.IntN(3)]))
	}},
	{"suspend a group", 1, func(w *world) {
		if !autoscales(w.cluster) {
			w.edit(w.someGroup(func(r *v1.RayRole) { r.Suspend = new(w.random.IntN(2) == 0) }))
		}
	}},
	{"template", 4, func(w *world) { w.edit(w.someGroup(fixtures.RayImage(fmt.Sprintf("ray:%d", w.random.IntN(3))))) }},
	{"head template", 2, func(w *world) {
		w.edit(fixtures.RayGroup(v1.RoleHead, fixtures.RayImage(fmt.Sprintf("ray:%d", w.random.IntN(3)))))
	}},
	{"strategy", 1, func(w *world) {
		w.edit(fixtures.Upgrades([]v1.UpgradeType{v1.UpgradeNone, v1.UpgradeRecreate, v1.UpgradeRollingUpdate}[w.random.IntN(3)]))
	}},
	{"suspend", 4, func(w *world) { w.edit(fixtures.ClusterSuspended(w.random.IntN(2) == 0)) }},
	{"autoscaler", 8, (*world).autoscale},
	{"quota", 2, func(w *world) { w.quota = !w.quota; w.note("quota %v", w.quota) }},
	{"controller restarts", 2, (*world).restartController},
	{"controller dies in a pass", 4, func(w *world) {
		w.crashAfter = 1 + w.random.IntN(6)
		w.reconcile()
		w.crashAfter = 0
	}},
	{"delete the cluster", 1, func(w *world) {
		if w.cluster.DeletionTimestamp == nil && w.random.IntN(6) == 0 {
			w.note("the cluster is deleted")
			w.edit(func(cluster *v1.RayCluster) { cluster.DeletionTimestamp = new(metav1.NewTime(w.now)) })
			w.collect()
		}
	}},
	{"cleanup", 2, (*world).runCleanup},
}

// someGroup changes a group that there is.
func (w *world) someGroup(mods ...func(*v1.RayRole)) fixtures.ClusterMod {
	return func(cluster *v1.RayCluster) {
		if n := len(cluster.Spec.Roles) - 1; n > 0 {
			fixtures.RayGroup(cluster.Spec.Roles[1+w.random.IntN(n)].Name, mods...)(cluster)
		}
	}
}

// autoscale does what Ray's autoscaler does: it asks for more, or names pods and
// asks for as many fewer; it takes back names once their pods are gone, and
// decides nothing while one is not.
func (w *world) autoscale() {
	if !autoscales(w.cluster) || len(w.cluster.Spec.Roles) < 2 {
		return
	}
	role := w.cluster.Spec.Roles[1+w.random.IntN(len(w.cluster.Spec.Roles)-1)]
	if role.Scaling != nil {
		for _, name := range role.Scaling.WorkersToDelete {
			if w.pods[name] != nil {
				return
			}
		}
	}
	replicas := wantedReplicas(&role)
	var names []string
	if w.random.IntN(2) == 0 {
		replicas++
	} else {
		w.somePod(func(pod *corev1.Pod) {
			if pod.Labels[rayGroupLabel] == string(role.Name) {
				names, replicas = []string{pod.Name}, max(replicas-1, 0)
			}
		})
	}
	w.note("autoscaler wants %d of %s, without %v", replicas, role.Name, names)
	w.edit(fixtures.RayGroup(role.Name, fixtures.Replicas(replicas), fixtures.WorkersToDelete(names...)))
}

// runCleanup ends the job that cleans Redis, well or not, or not at all.
func (w *world) runCleanup() {
	if w.job == nil || hasFinished(w.job) {
		return
	}
	w.job = w.job.DeepCopy()
	kind := []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed}[w.random.IntN(2)]
	w.job.Status.Conditions = append(w.job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue})
}

func randomHistory(seed uint64) []happening {
	r := rand.New(rand.NewPCG(seed, 2))
	total := 0
	for _, h := range happenings {
		total += h.weight
	}
	history := make([]happening, 60+r.IntN(100))
	for i := range history {
		n := r.IntN(total)
		for what, h := range happenings {
			if n -= h.weight; n < 0 {
				history[i] = happening{what: what, seed: r.Uint64()}
				break
			}
		}
	}
	return history
}

// play plays a history: first its events happen, then they stop and the cluster
// must become what its spec says.
func play(seed uint64, history []happening, verbose bool) (*world, string) {
	w := newWorld(seed)
	w.verbose = verbose
	for _, h := range history {
		if w.gone {
			break
		}
		w.random = rand.New(rand.NewPCG(h.seed, 3))
		happenings[h.what].event(w)
		if w.fault != "" {
			return w, w.fault
		}
	}
	w.note("events stop")
	w.quota = false
	if w.cluster.DeletionTimestamp == nil {
		w.edit(fixtures.ClusterSuspended(false))
	}
	for quiet, i := 0, 0; i < 300 && quiet < 5 && !w.gone && w.fault == ""; i++ {
		w.writes = 0
		for _, name := range w.names() {
			w.progress(w.pods[name])
		}
		w.now = w.now.Add(10 * time.Second)
		w.lookAtAll()
		w.reconcile()
		if quiet++; w.writes > 0 || w.cluster.DeletionTimestamp != nil {
			quiet = 0
		}
	}
	w.checkEnd()
	return w, w.fault
}

// shrink leaves out of a failing history what it fails without.
func shrink(history []happening, fails func([]happening) bool) []happening {
	for size := len(history) / 2; size > 0; {
		spared := false
		for at := 0; at+size <= len(history); {
			if shorter := slices.Delete(slices.Clone(history), at, at+size); fails(shorter) {
				history, spared = shorter, true
			} else {
				at += size
			}
		}
		if !spared || size > len(history) {
			size = min(size/2, len(history))
		}
	}
	return history
}

// checkCreate holds a new pod against what the controller knew: never two heads,
// never more of a group than its bounds allow, nothing while suspended.
func (w *world) checkCreate(pod *corev1.Pod) {
	if suspended(w.seenCluster) || w.seenCluster.DeletionTimestamp != nil {
		w.fail("%s is made for a cluster that is suspended or deleted", pod.Name)
	}
	if c := meta.FindStatusCondition(w.seenCluster.Status.Conditions, v1.RayClusterSuspendedCondition); c != nil &&
		c.Reason == v1.RayClusterSuspendingReason && len(w.seenPods) > 0 {
		w.fail("%s is made before the suspension that began has come to its end", pod.Name)
	}
	heads, units := 0, map[string]int{}
	for _, other := range w.pods {
		if other.Labels[rayNodeTypeLabel] == headNodeType {
			heads++
		}
		if other.Labels[rayGroupLabel] == pod.Labels[rayGroupLabel] {
			units[other.Labels[v1.ReplicaLabel]]++
		}
	}
	if heads > 1 {
		w.fail("%d heads", heads)
	}
	for i := range w.seenCluster.Spec.Roles {
		role := &w.seenCluster.Spec.Roles[i]
		if string(role.Name) == pod.Labels[rayGroupLabel] && units[pod.Labels[v1.ReplicaLabel]] == 1 && len(units) > int(wantedReplicas(role)) {
			w.fail("%d replicas of %s, of which %d are wanted", len(units), role.Name, wantedReplicas(role))
		}
	}
}

// checkCleanup holds that the state is removed only when nothing can write to it.
func (w *world) checkCleanup() {
	if w.cluster.DeletionTimestamp == nil || w.pods["a-head"] != nil {
		w.fail("Redis is cleaned while there is a head")
	}
}

// checkStatus holds a status against what is so.
func (w *world) checkStatus(status *v1.RayClusterStatus) {
	if isTrue(status.Conditions, v1.RayClusterSuspendedCondition) && len(w.pods) > 0 {
		w.fail("it is said to be suspended with %d pods", len(w.pods))
	}
	ready := isTrue(status.Conditions, v1.RayClusterReadyCondition)
	if ready != (status.Phase == v1.PhaseRunning) {
		w.fail("ready is %v in phase %s", ready, status.Phase)
	}
	if ready {
		for _, pod := range w.seenPods {
			if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning || len(pod.Status.Conditions) == 0 {
				w.fail("it is said to be ready while %s is not", pod.Name)
			}
		}
	}
}

// checkEnd holds that the cluster is what its spec says, and nothing is left over.
func (w *world) checkEnd() {
	switch {
	case w.cluster.DeletionTimestamp != nil:
		if !w.gone {
			w.fail("the cluster is not gone")
		}
		if w.jobs > 1 {
			w.fail("Redis is cleaned %d times", w.jobs)
		}
		return
	case w.cluster.Status.Phase != v1.PhaseRunning:
		c := meta.FindStatusCondition(w.cluster.Status.Conditions, v1.RayClusterReadyCondition)
		w.fail("it ends in phase %s: %v", w.cluster.Status.Phase, c)
	}
	want := map[string]int{headGroup: 1}
	for i := range w.cluster.Spec.Roles {
		role := &w.cluster.Spec.Roles[i]
		if role.Name != v1.RoleHead {
			want[string(role.Name)] = int(wantedReplicas(role) * hostsOf(role))
		}
		for _, pod := range w.pods {
			if pod.Labels[v1.RoleLabel] == strings.ToLower(string(role.Name)) && strategyOf(w.cluster) != v1.UpgradeNone &&
				pod.Labels[v1.TemplateHashLabel] != templateHash(w.cluster, role) {
				w.fail("%s is of an old template", pod.Name)
			}
		}
	}
	got := map[string]int{}
	for _, pod := range w.pods {
		got[pod.Labels[rayGroupLabel]]++
	}
	for group, n := range got {
		if n < want[group] || n > want[group] && !autoscales(w.cluster) || want[group] == 0 && w.isOrphan(group) {
			w.fail("%d pods of %s, want %d", n, group, want[group])
		}
	}
	for group, n := range want {
		if got[group] < n {
			w.fail("%d pods of %s, want %d", got[group], group, n)
		}
	}
}

// isOrphan says whether a group is not in the spec.
func (w *world) isOrphan(group string) bool {
	return group != headGroup && !slices.ContainsFunc(w.cluster.Spec.Roles, func(r v1.RayRole) bool { return string(r.Name) == group })
}
