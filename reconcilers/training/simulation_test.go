package training

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/gangs"
	"github.com/penstock-dev/penstock/test/fixtures"
)

var (
	histories = flag.Uint64("histories", 10_000, "number of random histories to simulate")
	firstSeed = flag.Uint64("seed", 1, "seed of the first history")
)

// TestSimulation throws random histories at Plan and checks after each event
// what must always hold, and in the end that the job came to one. A failure
// prints its seed and the shortest history found that still fails;
// `-histories 1 -seed N` replays it.
func TestSimulation(t *testing.T) {
	// Histories make much garbage and keep little.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	began := time.Now()
	var next, failed atomic.Uint64
	failed.Store(^uint64(0))
	var group sync.WaitGroup
	var mu sync.Mutex
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < *histories && i < failed.Load(); i = next.Add(1) - 1 {
				if _, fault := play(*firstSeed+i, randomHistory(*firstSeed+i), false); fault != "" {
					mu.Lock()
					failed.Store(min(i, failed.Load()))
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d histories, %.0f a second", min(*histories, next.Load()), float64(min(*histories, next.Load()))/time.Since(began).Seconds())
	if i := failed.Load(); i != ^uint64(0) {
		seed := *firstSeed + i
		t.Fatal(report(seed, shrink(randomHistory(seed), func(h []happening) bool {
			_, fault := play(seed, h, false)
			return fault != ""
		})))
	}
}

// happening is one event of a history: what, and the seed of its own choices,
// so that leaving another one out does not change it.
type happening struct {
	what int
	seed uint64
}

func randomHistory(seed uint64) []happening {
	r := rand.New(rand.NewPCG(seed, 2))
	total := 0
	for _, h := range happenings {
		total += h.weight
	}
	history := make([]happening, 40+r.IntN(60))
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

// play plays a history: first its events happen, then they stop and the job
// must come to its end. It returns what went wrong, or nothing.
func play(seed uint64, history []happening, verbose bool) (*world, string) {
	w := newWorld(seed)
	w.verbose = verbose
	for _, h := range history {
		w.random = rand.New(rand.NewPCG(h.seed, 3))
		happenings[h.what].event(w)
		if fault := w.check(); fault != "" {
			return w, fault
		}
	}
	w.note("events stop")
	w.settling = true
	w.random = rand.New(rand.NewPCG(seed, 4))
	w.edit(fixtures.RunPolicy(func(p *v1.RunPolicy) { p.Suspend = new(false) }))
	for quiet, i := 0, 0; i < 400 && quiet < 8 && !w.gone; i++ {
		w.writes = 0
		w.settle()
		if quiet++; w.writes > 0 || w.finished == nil {
			quiet = 0
		}
		if fault := w.check(); fault != "" {
			return w, fault
		}
		if w.finished != nil && quiet == 7 {
			// What still waits is its time to live.
			w.now = w.now.Add(time.Hour)
			w.reconcile()
		}
	}
	return w, w.checkEnd()
}

// settle lets pods do their work and the controller see everything.
func (w *world) settle() {
	w.admitGang()
	for _, name := range w.names() {
		w.progress(w.pods[name])
	}
	w.now = w.now.Add(5 * time.Second)
	w.lookAtAll()
	w.reconcile()
}

// shrink leaves out of a failing history what it fails without: ever smaller
// parts, until not a single event can be spared.
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

// report plays a history again and tells what happened.
func report(seed uint64, history []happening) string {
	w, fault := play(seed, history, true)
	names := make([]string, len(history))
	for i, h := range history {
		names[i] = happenings[h.what].name
	}
	return fmt.Sprintf("seed %d: %s\n%s\n%d events: %s\nhistory:\n  %s",
		seed, fault, w, len(history), strings.Join(names, ", "), strings.Join(w.history, "\n  "))
}

// TestShrink breaks the world on purpose: a fault that needs two events of
// some kinds, in order, must come out as these two.
func TestShrink(t *testing.T) {
	what := func(h happening) string { return happenings[h.what].name }
	fails := func(history []happening) bool {
		drained := false
		for _, h := range history {
			if drained && what(h) == "crash" {
				return true
			}
			drained = drained || what(h) == "drain"
		}
		return false
	}
	found := 0
	for seed := range uint64(50) {
		history := randomHistory(seed)
		if !fails(history) {
			continue
		}
		found++
		if short := shrink(history, fails); len(short) != 2 || what(short[0]) != "drain" || what(short[1]) != "crash" {
			t.Errorf("seed %d shrinks to %v", seed, short)
		}
	}
	if found == 0 {
		t.Error("no history has a drain and then a crash")
	}
}

// randomJob returns a job of a random framework and shape.
func randomJob(r *rand.Rand) *v1.TrainingJob {
	pick := func(mods ...fixtures.JobMod) fixtures.JobMod { return mods[r.IntN(len(mods))] }
	nothing := func(*v1.TrainingJob) {}
	elastic := pick(nothing, nothing, fixtures.Elastic(1, 4))
	mods := []fixtures.JobMod{fixtures.Workers(1 + r.Int32N(3))}
	switch r.IntN(7) {
	case 0:
		mods = append(mods, pick(nothing, fixtures.Role(v1.RolePS, 1)), pick(nothing, fixtures.Role(v1.RoleEvaluator, 1)),
			pick(nothing, fixtures.Role(v1.RoleChief, 1)), fixtures.Framework(v1.FrameworkTensorFlow), tfShape(r), pick(elastic))
	case 1, 2:
		mods = append(mods, fixtures.Role(v1.RoleLauncher, 1), fixtures.Framework(v1.FrameworkMPI), mpiShape(r), elastic)
	case 3:
		mods = append(mods, pick(nothing, fixtures.Master()), fixtures.Framework(v1.FrameworkPaddlePaddle))
	case 4:
		mods = append(mods, fixtures.Master(), fixtures.Framework(v1.FrameworkXGBoost))
	case 5:
		mods = append(mods, fixtures.Framework(v1.FrameworkJAX), elastic)
	default:
		mods = append(mods, pick(nothing, fixtures.Master()), elastic)
	}
	return fixtures.TrainingJob("a", append(mods,
		pick(fixtures.Restart(v1.RestartExitCode), fixtures.Restart(v1.RestartOnFailure),
			fixtures.Restart(v1.RestartNever), fixtures.Restart(v1.RestartExitCode)),
		pick(nothing, nothing, fixtures.GangRestart()),
		pick(nothing, gangShape(r)),
		pick(nothing, fixtures.BackoffLimit(r.Int32N(5))),
		pick(nothing, nothing, fixtures.Deadline(1+r.Int64N(600))),
		pick(fixtures.CleanPods(v1.CleanPodAll), fixtures.CleanPods(v1.CleanPodRunning), fixtures.CleanPods(v1.CleanPodNone)),
		pick(nothing, fixtures.TTL(60)),
		pick(nothing, nothing, nothing, fixtures.Suspended()),
	)...)
}

func tfShape(r *rand.Rand) fixtures.JobMod {
	return func(job *v1.TrainingJob) {
		job.Spec.TensorFlow = &v1.TensorFlow{
			SuccessPolicy: []v1.SuccessPolicy{v1.SuccessWorker0, v1.SuccessAllWorkers}[r.IntN(2)],
			Workers:       []v1.WorkerMembership{v1.WorkersStatic, v1.WorkersDynamic}[r.IntN(2)],
		}
	}
}

func mpiShape(r *rand.Rand) fixtures.JobMod {
	return func(job *v1.TrainingJob) {
		job.Spec.MPI = &v1.MPI{
			LauncherCreation: []v1.LauncherCreation{v1.LauncherWaitForWorkersReady, v1.LauncherWaitForWorkersReady, v1.LauncherAtStartup}[r.IntN(3)],
			Launcher:         []v1.LauncherPlacement{v1.LauncherOnly, v1.LauncherAsWorker}[r.IntN(2)],
			Transport:        []v1.MPITransport{v1.MPISSH, v1.MPISSH, v1.MPIExec}[r.IntN(3)],
		}
	}
}

// String shows the job as its author would see it, and its children.
func (w *world) String() string {
	shown := *w.job
	// The same container in every role tells nothing.
	shown.Spec.Roles = slices.Clone(shown.Spec.Roles)
	for i := range shown.Spec.Roles {
		shown.Spec.Roles[i].Template = corev1.PodTemplateSpec{}
	}
	text, err := yaml.Marshal(map[string]any{"spec": shown.Spec, "status": shown.Status})
	if err != nil {
		return err.Error()
	}
	lines := []string{strings.TrimSpace(string(text))}
	for _, kind := range gangs.Schedulers {
		lines = append(lines, fmt.Sprintf("%s is served: %v", kind.Kind().Group, w.served[kind.Kind()]))
	}
	for _, key := range slices.Sorted(maps.Keys(w.others)) {
		if child := w.others[key]; gangs.IsPodGroup(child) {
			lines = append(lines, fmt.Sprintf("pod group of %s for %d pods", gangs.KindOf(child).Group, leastOf(child)))
		}
	}
	for _, name := range w.names() {
		lines = append(lines, w.describe(w.pods[name]))
	}
	return strings.Join(lines, "\n")
}

// describe tells in a line what matters of a pod.
func (w *world) describe(pod *corev1.Pod) string {
	line := fmt.Sprintf("pod %s %s: %s", pod.Name, pod.UID, pod.Status.Phase)
	if pod.Spec.NodeName == "" {
		line += ", not placed"
	}
	if link := w.linkOf(pod); link != nil {
		line += ", of the pod group of " + link.Kind().Group
	} else if w.job.Spec.Gang != nil {
		line += ", of no pod group"
	}
	if pod.DeletionTimestamp != nil {
		line += ", being deleted"
	}
	return line
}
