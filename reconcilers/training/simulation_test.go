package training

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

var (
	histories = flag.Int("histories", 2000, "number of random histories to simulate")
	firstSeed = flag.Uint64("seed", 1, "seed of the first history")
)

// TestSimulation throws random histories at Plan and checks after each event
// what must always hold, and in the end that the job came to one. A failure
// prints its seed and its history; `-histories 1 -seed N` replays it.
func TestSimulation(t *testing.T) {
	for i := range uint64(*histories) {
		seed := *firstSeed + i
		w := newWorld(seed)
		if fault := w.run(); fault != "" {
			t.Fatalf("seed %d: %s\n%s\nhistory:\n  %s", seed, fault, w, strings.Join(w.history, "\n  "))
		}
	}
}

// randomJob returns a job of a random shape.
func randomJob(r *rand.Rand) *v1.TrainingJob {
	pick := func(mods ...fixtures.JobMod) fixtures.JobMod { return mods[r.IntN(len(mods))] }
	nothing := func(*v1.TrainingJob) {}
	return fixtures.TrainingJob("a",
		pick(nothing, fixtures.Master()),
		fixtures.Workers(1+r.Int32N(3)),
		pick(nothing, nothing, fixtures.Elastic(1, 4)),
		pick(fixtures.Restart(v1.RestartExitCode), fixtures.Restart(v1.RestartOnFailure),
			fixtures.Restart(v1.RestartNever), fixtures.Restart(v1.RestartExitCode)),
		pick(nothing, fixtures.BackoffLimit(r.Int32N(5))),
		pick(nothing, nothing, fixtures.Deadline(1+r.Int64N(600))),
		pick(fixtures.CleanPods(v1.CleanPodAll), fixtures.CleanPods(v1.CleanPodRunning), fixtures.CleanPods(v1.CleanPodNone)),
		pick(nothing, fixtures.TTL(60)),
		pick(nothing, nothing, nothing, fixtures.Suspended()),
	)
}

// run plays one history: first anything happens, then events stop and the job
// must come to its end. It returns what went wrong, or nothing.
func (w *world) run() string {
	for range 40 + w.random.IntN(60) {
		w.happen()
		if fault := w.check(); fault != "" {
			return fault
		}
	}
	w.note("events stop")
	w.job.Spec.RunPolicy.Suspend = new(false)
	w.revise()
	for quiet, i := 0, 0; i < 300 && quiet < 40 && !w.gone; i++ {
		w.writes = 0
		w.settle()
		if quiet++; w.writes > 0 || w.finished == nil {
			quiet = 0
		}
		if fault := w.check(); fault != "" {
			return fault
		}
	}
	return w.checkEnd()
}

// settle lets pods do their work and the controller see everything.
func (w *world) settle() {
	for _, name := range w.names() {
		w.progress(w.pods[name])
	}
	w.now = w.now.Add(2 * time.Second)
	w.look()
	w.reconcile()
}

// happen is one random event.
func (w *world) happen() {
	events := []struct {
		weight int
		event  func()
	}{
		{30, w.reconcile},
		{25, w.look},
		{30, func() { w.somePod(w.progress) }},
		{12, func() { w.somePod(w.crash) }},
		{5, func() { w.somePod(w.drain) }},
		{4, func() { w.somePod(w.lose) }},
		{4, func() { w.somePod(w.deleteByHand) }},
		{4, w.toggleSuspend},
		{4, w.scale},
		{3, w.restartController},
		{8, func() { w.now = w.now.Add(time.Duration(w.random.IntN(90)) * time.Second) }},
	}
	total := 0
	for _, e := range events {
		total += e.weight
	}
	n := w.random.IntN(total)
	for _, e := range events {
		if n -= e.weight; n < 0 {
			e.event()
			return
		}
	}
}

// check holds the world to what must be so at any time.
func (w *world) check() string {
	if w.fault != "" {
		return w.fault
	}
	if w.finished != nil {
		then, now := final(*w.finished), final(w.job.Status)
		if !equality.Semantic.DeepEqual(then, now) {
			return "a finished job changed (-then +now):\n" + cmp.Diff(then, now)
		}
		return ""
	}
	status := &w.job.Status
	if got := ptr.Deref(status.Restarts, 0); got < w.replaced || got > w.happened {
		return fmt.Sprintf("%d restarts were counted; %d pods were replaced, %d restarts happened", got, w.replaced, w.happened)
	}
	if limit := w.job.Spec.RunPolicy.BackoffLimit; limit != nil && w.replaced > *limit {
		return fmt.Sprintf("%d pods were replaced with a backoffLimit of %d", w.replaced, *limit)
	}
	if !finished(status) {
		return ""
	}
	w.finished = status.DeepCopy()
	if status.CompletionTime == nil {
		return "the job finished without a completion time"
	}
	return w.explain()
}

// explain says whether the end of a job follows from what it has seen.
func (w *world) explain() string {
	status := &w.job.Status
	reason := outcomeOf(Plan(w.job, w.seenPods(), w.now)).Reason
	limit := w.job.Spec.RunPolicy.BackoffLimit
	switch {
	case status.Phase == v1.PhaseSucceeded:
		lead, wanted := status.Roles[0], int32(1)
		if w.job.Spec.Elastic == nil || lead.Name == v1.RoleMaster {
			wanted = *lead.Replicas
		}
		if *lead.Succeeded < wanted {
			return "the job succeeded while its leading pods had not"
		}
	case reason == v1.TrainingJobBackoffLimitExceededReason && limit == nil,
		reason == v1.TrainingJobDeadlineExceededReason && w.job.Spec.RunPolicy.ActiveDeadlineSeconds == nil,
		reason == "":
		return "the job failed for no reason: " + reason
	}
	return ""
}

// checkEnd holds the world to what must be so when nothing happens any more.
func (w *world) checkEnd() string {
	if w.finished == nil {
		return "the job did not come to an end"
	}
	if w.job.Spec.RunPolicy.TTLSecondsAfterFinished != nil && !w.gone {
		return "the job outlived its time to live"
	}
	if w.gone {
		return ""
	}
	if w.writes > 0 {
		return fmt.Sprintf("%d writes in steady state", w.writes)
	}
	switch w.job.Spec.RunPolicy.CleanPodPolicy {
	case v1.CleanPodAll:
		if len(w.pods)+len(w.services) > 0 {
			return "children were left under cleanPodPolicy All"
		}
	case v1.CleanPodRunning:
		for name, pod := range w.pods {
			if !ended(pod) {
				return "pod " + name + " was left running under cleanPodPolicy Running"
			}
		}
		// Fewer can be left: an outdated cache may show a service and not yet
		// its pod.
		if len(w.services) > len(w.pods) {
			return fmt.Sprintf("%d services were left for %d pods", len(w.services), len(w.pods))
		}
	}
	return ""
}

func (w *world) names() []string {
	names := make([]string, 0, len(w.pods))
	for name := range w.pods {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (w *world) String() string {
	lines := []string{fmt.Sprintf("job: %+v", w.job.Status)}
	for _, name := range w.names() {
		pod := w.pods[name]
		lines = append(lines, fmt.Sprintf("pod %s %s: %s", name, pod.UID, pod.Status.Phase))
	}
	return strings.Join(lines, "\n")
}
