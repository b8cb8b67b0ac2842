package training

import (
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// transition is a change of a job's phase; from nothing for a new job.
type transition struct{ from, to v1.Phase }

// documentedTransitions reads the table of transitions in docs/training.md.
func documentedTransitions(t *testing.T) map[transition]bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/training.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Transitions\n")
	if !found {
		t.Fatal("docs/training.md has no section Transitions")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	table := map[transition]bool{}
	for line := range strings.SplitSeq(section, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), "|")
		if len(cells) != 3 || !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| from") || strings.HasPrefix(line, "| ---") {
			continue
		}
		from := strings.TrimSpace(cells[0])
		if from == "(new)" {
			from = ""
		}
		to := v1.Phase(strings.TrimSpace(cells[1]))
		if table[transition{v1.Phase(from), to}] {
			t.Errorf("the table names %s -> %s twice", from, to)
		}
		table[transition{v1.Phase(from), to}] = true
	}
	return table
}

// TestTransitions holds the simulation to the table in docs/training.md: no
// other change of phase is ever written, and each one in it can be seen. The
// phase Pending is not in random histories, whose jobs always want pods; it is
// reached here.
func TestTransitions(t *testing.T) {
	table, seen := documentedTransitions(t), map[transition]bool{}
	for seed := range uint64(3000) {
		w, fault := play(seed, randomHistory(seed), false)
		if fault != "" {
			t.Fatalf("seed %d: %s", seed, fault)
		}
		maps.Copy(seen, w.transitions)
	}
	maps.Copy(seen, transitionsOfPending())
	for step := range seen {
		if !table[step] {
			t.Errorf("a job went from %q to %q, which the table does not have", step.from, step.to)
		}
	}
	for step := range table {
		if !seen[step] {
			t.Errorf("no job went from %q to %q, as the table says", step.from, step.to)
		}
	}
}

// transitionsOfPending scales a job to no workers, and back.
func transitionsOfPending() map[transition]bool {
	seen := map[transition]bool{}
	job := fixtures.TrainingJob("a", fixtures.Elastic(0, 2), fixtures.Scaled(0), fixtures.Deadline(600))
	steps := []struct {
		workers int32
		suspend bool
		after   time.Duration
		pods    plan.Observed
	}{
		{workers: 0}, {workers: 1}, {workers: 0}, {workers: 0, suspend: true}, {workers: 0},
		{workers: 1, pods: somePods(fixtures.Pod("a-worker-0", fixtures.Running()))}, {workers: 0}, {workers: 0, after: time.Hour},
	}
	for _, step := range steps {
		job.Spec.Elastic.Replicas, job.Spec.RunPolicy.Suspend = new(step.workers), new(step.suspend)
		status := Plan(job, step.pods, fixtures.Start.Add(step.after)).Status
		if status.Phase != job.Status.Phase {
			seen[transition{job.Status.Phase, status.Phase}] = true
		}
		job.Status = status
	}
	return seen
}
