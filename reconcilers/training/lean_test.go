package training

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/gangs"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// TestLean plans from pods as they are and as a cache holds them, for pods of
// every framework, gang and end: nothing that is planned may differ. The
// simulation plans from lean pods, too.
func TestLean(t *testing.T) {
	ends := map[string][]fixtures.PodMod{
		"pending": {}, "running": {fixtures.Running()}, "succeeded": {fixtures.Succeeded()}, "killed": {fixtures.Failed(137)},
		"restarted": {fixtures.Running(), fixtures.RestartedInPlace(2, 1)}, "crashing": {fixtures.CrashLoop()},
		"lost": {fixtures.FailedFor("Terminated", ""), fixtures.Disrupted()}, "leaving": {fixtures.Running(), fixtures.Terminating()},
		"beside a sidecar": {fixtures.PodRestart(corev1.RestartPolicyNever), fixtures.Exited(0), fixtures.Sidecar(0)},
	}
	for _, framework := range []v1.Framework{v1.FrameworkPyTorch, v1.FrameworkMPI, v1.FrameworkJAX} {
		for name, mods := range ends {
			job := fixtures.TrainingJob("a", fixtures.Workers(2), fixtures.Framework(framework), fixtures.Restart(v1.RestartExitCode), gangOf())
			if framework == v1.FrameworkMPI {
				job = fixtures.TrainingJob("a", fixtures.Workers(2), fixtures.Role(v1.RoleLauncher, 1), fixtures.Framework(framework), gangOf())
			}
			observed := whereServed(gangs.NativeKind)
			group, first := planGrouped(t, job, observed, nil)
			observed.Children = []plan.Object{group}
			held := plan.Observed{Served: observed.Served, Children: []plan.Object{group}}
			for _, child := range first.Create {
				pod := child.(*corev1.Pod).DeepCopy()
				pod.UID, pod.Spec.NodeName = "uid", "n"
				for _, mod := range mods {
					mod(pod)
				}
				slim := pod.DeepCopy()
				pods.Lean(slim)
				if len(slim.Spec.Containers[0].Env)+len(slim.Spec.Volumes) > 0 {
					t.Fatalf("%s of %s is held with what nobody reads", name, framework)
				}
				observed.Children, held.Children = append(observed.Children, pod), append(held.Children, slim)
			}
			want, got := Plan(job, observed, later), Plan(job, held, later)
			if diff := cmp.Diff(want.Status, got.Status); diff != "" {
				t.Errorf("%s of %s: status from the whole pods, and from the lean (-whole +lean):\n%s", name, framework, diff)
			}
			if diff := cmp.Diff(deleted(want), deleted(got)); diff != "" {
				t.Errorf("%s of %s: deleted (-whole +lean):\n%s", name, framework, diff)
			}
			if len(want.Create) != len(got.Create) || len(want.Apply) != len(got.Apply) || want.RequeueAfter != got.RequeueAfter {
				t.Errorf("%s of %s: makes %d and %d, from the lean %d and %d", name, framework,
					len(want.Create), len(want.Apply), len(got.Create), len(got.Apply))
			}
		}
	}
}
