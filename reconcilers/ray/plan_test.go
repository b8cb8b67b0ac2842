package ray

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// later is when the clusters of these tests are planned.
var later = fixtures.Start.Add(time.Hour)

// scene is a cluster and its pods, as they come to be by planning.
type scene struct {
	cluster *v1.RayCluster
	pods    map[string]*corev1.Pod
	others  []plan.Object
	now     time.Time
	uids    int
}

// running returns a cluster all of whose pods run and are ready, and whose
// status says so.
func running(mods ...fixtures.ClusterMod) *scene {
	s := &scene{cluster: fixtures.RayCluster("a", mods...), pods: map[string]*corev1.Pod{}, now: fixtures.Start}
	for range 2 {
		s.carryOut(s.plan())
		s.each(fixtures.Running())
	}
	s.carryOut(s.plan())
	s.now = later
	return s
}

func (s *scene) plan() plan.Result[v1.RayClusterStatus] {
	observed := plan.Observed{Children: slices.Clone(s.others)}
	for _, name := range s.names() {
		observed.Children = append(observed.Children, s.pods[name])
	}
	return Plan(s.cluster, observed, s.now)
}

// carryOut makes and deletes as planned; what is deleted is gone at once.
func (s *scene) carryOut(result plan.Result[v1.RayClusterStatus]) {
	for _, child := range result.Create {
		if pod, ok := child.(*corev1.Pod); ok {
			pod = pod.DeepCopy()
			s.uids++
			pod.UID, pod.CreationTimestamp = types.UID(fmt.Sprintf("u%d", s.uids)), metav1.NewTime(s.now)
			pod.Status.Phase = corev1.PodPending
			s.pods[pod.Name] = pod
		}
	}
	for _, deletion := range result.Delete {
		delete(s.pods, deletion.Child.GetName())
	}
	s.cluster.Status = result.Status
}

func (s *scene) names() []string {
	names := make([]string, 0, len(s.pods))
	for name := range s.pods {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// each changes every pod that has not been changed.
func (s *scene) each(mods ...fixtures.PodMod) {
	for _, pod := range s.pods {
		if pod.Status.Phase == corev1.PodPending {
			for _, mod := range mods {
				mod(pod)
			}
		}
	}
}

func (s *scene) pod(name string, mods ...fixtures.PodMod) *scene {
	for _, mod := range mods {
		mod(s.pods[name])
	}
	return s
}

func (s *scene) edit(mods ...fixtures.ClusterMod) *scene {
	for _, mod := range mods {
		mod(s.cluster)
	}
	s.cluster.Generation++
	return s
}

func (s *scene) without(names ...string) *scene {
	for _, name := range names {
		delete(s.pods, name)
	}
	return s
}

// notReady lets a pod run and not be ready.
func notReady(pod *corev1.Pod) { pod.Status.Conditions = nil }

// born says when a pod was created, in seconds after the start.
func born(seconds int) fixtures.PodMod {
	return func(pod *corev1.Pod) {
		pod.CreationTimestamp = metav1.NewTime(fixtures.Start.Add(time.Duration(seconds) * time.Second))
	}
}

// outcome is what matters of a plan.
type outcome struct {
	Created, Deleted string
	Phase            v1.Phase
	Ready            string
	// Reason is that of the condition Ready.
	Reason string
}

func outcomeOf(result plan.Result[v1.RayClusterStatus]) outcome {
	o := outcome{Phase: result.Status.Phase, Ready: result.Status.RolesReady}
	var created, deleted []string
	for _, child := range result.Create {
		created = append(created, child.GetName())
	}
	for _, deletion := range result.Delete {
		deleted = append(deleted, deletion.Child.GetName())
	}
	slices.Sort(created)
	slices.Sort(deleted)
	o.Created, o.Deleted = strings.Join(created, " "), strings.Join(deleted, " ")
	if c := meta.FindStatusCondition(result.Status.Conditions, v1.RayClusterReadyCondition); c != nil {
		o.Reason = c.Reason
	}
	return o
}

func small(mods ...func(*v1.RayRole)) fixtures.ClusterMod { return fixtures.RayGroup("small", mods...) }

func TestScaling(t *testing.T) {
	never := fixtures.RayRestart(v1.RestartNever)
	tests := map[string]struct {
		scene *scene
		want  outcome
	}{
		"a new cluster": {
			scene: &scene{cluster: fixtures.RayCluster("a"), now: later},
			want:  outcome{Created: "a-head a-small-0-0 a-small-1-0", Phase: v1.PhaseCreating, Ready: "0/3", Reason: v1.RayClusterHeadNotFoundReason},
		},
		"nothing to do": {
			scene: running(),
			want:  outcome{Phase: v1.PhaseRunning, Ready: "3/3", Reason: v1.RayClusterAllPodsReadyReason},
		},
		"replicas beyond the bounds are kept within them": {
			scene: running().edit(small(fixtures.Replicas(9), fixtures.Between(1, 3))),
			want:  outcome{Created: "a-small-2-0", Phase: v1.PhaseScaling, Ready: "3/4", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"below them, too": {
			scene: running().edit(small(fixtures.Replicas(0), fixtures.Between(3, 9))),
			want:  outcome{Created: "a-small-2-0", Phase: v1.PhaseScaling, Ready: "3/4", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"without a number there are as few as may be": {
			scene: running().edit(small(func(r *v1.RayRole) { r.Replicas = nil }, fixtures.Between(1, 9))),
			want:  outcome{Deleted: "a-small-1-0", Phase: v1.PhaseScaling, Ready: "2/2", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"not ready goes first": {
			scene: running().pod("a-small-0-0", notReady).edit(small(fixtures.Replicas(1))),
			want:  outcome{Deleted: "a-small-0-0", Phase: v1.PhaseScaling, Ready: "2/2", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"then the youngest": {
			scene: running().pod("a-small-0-0", born(9)).edit(small(fixtures.Replicas(1))),
			want:  outcome{Deleted: "a-small-0-0", Phase: v1.PhaseScaling, Ready: "2/2", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"then the highest index": {
			scene: running().edit(small(fixtures.Replicas(1))),
			want:  outcome{Deleted: "a-small-1-0", Phase: v1.PhaseScaling, Ready: "2/2", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"pitfall 9: what is named goes before the difference is counted": {
			scene: running().edit(small(fixtures.Replicas(1), fixtures.WorkersToDelete("a-small-0-0"))),
			want:  outcome{Deleted: "a-small-0-0", Phase: v1.PhaseScaling, Ready: "2/2", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"pitfall 11: a name that is not of the group means nothing": {
			scene: running(fixtures.RayGroup("other")).edit(small(fixtures.WorkersToDelete("a-head", "a-other-0-0", "b-small-0-0", "postgres-0", "a-small-7-0", "a-small-0-1", "", "a-small--1-0"))),
			want:  outcome{Phase: v1.PhaseRunning, Ready: "4/4", Reason: v1.RayClusterAllPodsReadyReason},
		},
		"a name that is not taken back is not used anew": {
			scene: running().without("a-small-0-0").edit(small(fixtures.WorkersToDelete("a-small-0-0"))),
			want:  outcome{Created: "a-small-2-0", Phase: v1.PhaseScaling, Ready: "2/3", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"pitfall 10: under the autoscaler a lower number alone deletes nothing, and is what the cluster is ready with": {
			scene: running(fixtures.Autoscaled(v1.RayAutoscalerV2)).edit(small(fixtures.Replicas(1))),
			want:  outcome{Phase: v1.PhaseRunning, Ready: "3/3", Reason: v1.RayClusterAllPodsReadyReason},
		},
		"under the autoscaler what is named goes": {
			scene: running(fixtures.Autoscaled(v1.RayAutoscalerV2)).edit(small(fixtures.Replicas(1), fixtures.WorkersToDelete("a-small-0-0"))),
			want:  outcome{Deleted: "a-small-0-0", Phase: v1.PhaseScaling, Ready: "2/2", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"under the autoscaler a higher number makes more": {
			scene: running(fixtures.Autoscaled(v1.RayAutoscalerV1)).edit(small(fixtures.Replicas(3))),
			want:  outcome{Created: "a-small-2-0", Phase: v1.PhaseScaling, Ready: "3/4", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"pitfall 4: a removed group goes and counts for nothing": {
			scene: running(fixtures.RayGroup("other", fixtures.Replicas(2))).edit(fixtures.WithoutGroup("other")),
			want:  outcome{Deleted: "a-other-0-0 a-other-1-0", Phase: v1.PhaseScaling, Ready: "3/3", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"a group is suspended": {
			scene: running(fixtures.RayGroup("other")).edit(fixtures.RayGroup("other", func(r *v1.RayRole) { r.Suspend = new(true) })),
			want:  outcome{Deleted: "a-other-0-0", Phase: v1.PhaseScaling, Ready: "3/3", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"a failed worker is replaced, in its own group only": {
			scene: running(small(never), fixtures.RayGroup("other")).pod("a-small-0-0", fixtures.Failed(1)),
			want:  outcome{Deleted: "a-small-0-0", Phase: v1.PhaseScaling, Ready: "3/4", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"other groups are not held up by that": {
			scene: running(small(never), fixtures.RayGroup("other")).pod("a-small-0-0", fixtures.Failed(1)).edit(fixtures.RayGroup("other", fixtures.Replicas(2))),
			want:  outcome{Created: "a-other-1-0", Deleted: "a-small-0-0", Phase: v1.PhaseScaling, Ready: "3/5", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"one that ended well is replaced as well": {
			scene: running(small(never)).pod("a-small-0-0", fixtures.Succeeded()),
			want:  outcome{Deleted: "a-small-0-0", Phase: v1.PhaseScaling, Ready: "2/3", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"a container that ended for good ends its pod": {
			scene: running(small(never)).pod("a-small-0-0", fixtures.Exited(0)),
			want:  outcome{Deleted: "a-small-0-0", Phase: v1.PhaseScaling, Ready: "2/3", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"the kubelet restarts others": {
			scene: running(small(fixtures.RayRestart(v1.RestartAlways))).pod("a-small-0-0", fixtures.Exited(1), notReady),
			want:  outcome{Phase: v1.PhaseScaling, Ready: "2/3", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"a pod that is being deleted keeps its name": {
			scene: running().pod("a-small-0-0", fixtures.Terminating()),
			want:  outcome{Phase: v1.PhaseScaling, Ready: "2/3", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"B06: ready is withdrawn when a pod is not": {
			scene: running().pod("a-small-1-0", notReady),
			want:  outcome{Phase: v1.PhaseScaling, Ready: "2/3", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"several hosts come whole": {
			scene: &scene{cluster: fixtures.RayCluster("a", small(fixtures.Hosts(2), fixtures.Replicas(1))), now: later},
			want:  outcome{Created: "a-head a-small-0-0 a-small-0-1", Phase: v1.PhaseCreating, Ready: "0/3", Reason: v1.RayClusterHeadNotFoundReason},
		},
		"pitfall 25: one dead host takes its replica": {
			scene: running(small(never, fixtures.Hosts(2))).pod("a-small-1-1", fixtures.Failed(1)),
			want:  outcome{Deleted: "a-small-1-0 a-small-1-1", Phase: v1.PhaseScaling, Ready: "3/5", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"a missing host as well": {
			scene: running(small(fixtures.Hosts(2))).without("a-small-1-1"),
			want:  outcome{Deleted: "a-small-1-0", Phase: v1.PhaseScaling, Ready: "3/5", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"one host in workersToDelete takes its replica": {
			scene: running(small(fixtures.Hosts(2))).edit(small(fixtures.Replicas(1), fixtures.WorkersToDelete("a-small-0-1"))),
			want:  outcome{Deleted: "a-small-0-0 a-small-0-1", Phase: v1.PhaseScaling, Ready: "3/3", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"replicas of another number of hosts are replaced": {
			scene: running(small(fixtures.Hosts(2), fixtures.Replicas(1))).edit(small(fixtures.Hosts(1))),
			want:  outcome{Deleted: "a-small-0-0 a-small-0-1", Phase: v1.PhaseScaling, Ready: "1/2", Reason: v1.RayClusterWorkersNotReadyReason},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, outcomeOf(tc.scene.plan())); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// TestIncompleteWhileRefused: a quota that lets in one host of two must not make
// the one that came go and come for ever.
func TestIncompleteWhileRefused(t *testing.T) {
	s := running(small(fixtures.Hosts(2), fixtures.Replicas(1))).without("a-small-0-1")
	meta.SetStatusCondition(&s.cluster.Status.Conditions, metav1.Condition{
		Type: v1.InvalidCondition, Status: metav1.ConditionTrue, Reason: v1.ChildForbiddenReason,
	})
	want := outcome{Created: "a-small-0-1", Phase: v1.PhaseScaling, Ready: "2/3", Reason: v1.RayClusterWorkersNotReadyReason}
	if diff := cmp.Diff(want, outcomeOf(s.plan())); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// TestHead: B05, and what the loss of a head means for its workers.
func TestHead(t *testing.T) {
	never := func(cluster *v1.RayCluster) {
		for i := range cluster.Spec.Roles {
			cluster.Spec.Roles[i].RestartPolicy = v1.RestartNever
		}
	}
	refused := func(s *scene) *scene {
		meta.SetStatusCondition(&s.cluster.Status.Conditions, metav1.Condition{
			Type: v1.InvalidCondition, Status: metav1.ConditionTrue, Reason: v1.ChildForbiddenReason,
			Message: `the API server forbids a Pod: pods "a-head" is forbidden: exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2`,
		})
		return s
	}
	lost := outcome{Phase: v1.PhaseRestarting, Reason: v1.RayClusterHeadNotFoundReason, Ready: "2/3"}
	with := func(created, deleted, ready string) outcome {
		o := lost
		o.Created, o.Deleted, o.Ready = created, deleted, ready
		return o
	}
	for name, tc := range map[string]struct {
		scene *scene
		want  outcome
	}{
		"deleted: one new head, and workers that restart in place stay": {running().without("a-head"), with("a-head", "", "2/3")},
		"no second head while the old one goes":                         {running().pod("a-head", fixtures.Terminating()), with("", "", "2/3")},
		"failed under Never: it goes with its workers":                  {running(never).pod("a-head", fixtures.Failed(1)), with("", "a-head a-small-0-0 a-small-1-0", "0/3")},
		"gone under Never: its workers go in the pass that makes it":    {running(never).without("a-head"), with("a-head", "a-small-0-0 a-small-1-0", "0/3")},
		"with fault tolerance they stay":                                {running(never, fixtures.InRedis()).without("a-head"), with("a-head", "", "2/3")},
		"a quota refuses it: a worker makes room":                       {refused(running().without("a-head")), with("a-head", "a-small-1-0", "1/3")},
		"one at a time": {
			refused(running().without("a-head").pod("a-small-1-0", fixtures.Terminating())), with("a-head", "", "1/3"),
		},
		"workers of an earlier head, whose deletion was interrupted": {
			running(never).pod("a-head", born(60)),
			outcome{Deleted: "a-small-0-0 a-small-1-0", Phase: v1.PhaseScaling, Ready: "1/3", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"restarted in place": {
			running().pod("a-head", fixtures.CrashLoop(), notReady),
			outcome{Phase: v1.PhaseRestarting, Ready: "2/3", Reason: v1.RayClusterHeadNotReadyReason},
		},
	} {
		if diff := cmp.Diff(tc.want, outcomeOf(tc.scene.plan())); diff != "" {
			t.Errorf("%s: outcome (-want +got):\n%s", name, diff)
		}
	}
}

func TestUpgrades(t *testing.T) {
	next := fixtures.RayImage("ray:next")
	rolling := func(n intstr.IntOrString) fixtures.ClusterMod { return fixtures.Upgrades(v1.UpgradeRollingUpdate, n) }
	two, half := intstr.FromInt32(2), intstr.FromString("50%")
	upgrading := func(deleted, ready string) outcome {
		return outcome{Deleted: deleted, Phase: v1.PhaseUpgrading, Ready: ready, Reason: v1.RayClusterUpgradingReason}
	}
	done := outcome{Phase: v1.PhaseRunning, Ready: "3/3", Reason: v1.RayClusterAllPodsReadyReason}
	for name, tc := range map[string]struct {
		scene *scene
		want  outcome
	}{
		"None is the default":   {running().edit(small(next)), done},
		"None":                  {running(fixtures.Upgrades(v1.UpgradeNone)).edit(small(next)), done},
		"Recreate takes all":    {running(fixtures.Upgrades(v1.UpgradeRecreate)).edit(small(next)), upgrading("a-head a-small-0-0 a-small-1-0", "0/3")},
		"one at a time":         {running(fixtures.Upgrades(v1.UpgradeRollingUpdate)).edit(small(next)), upgrading("a-small-0-0", "2/3")},
		"as many as allowed":    {running(rolling(two)).edit(small(next)), upgrading("a-small-0-0 a-small-1-0", "1/3")},
		"a share of them":       {running(rolling(half), small(fixtures.Replicas(4))).edit(small(next)), upgrading("a-small-0-0 a-small-1-0", "3/5")},
		"not ready goes anyway": {running(fixtures.Upgrades(v1.UpgradeRollingUpdate)).pod("a-small-1-0", notReady).edit(small(next)), upgrading("a-small-1-0", "2/3")},
		"a missing one counts": {
			running(fixtures.Upgrades(v1.UpgradeRollingUpdate)).pod("a-small-1-0", fixtures.Terminating()).edit(small(next)), upgrading("", "2/3"),
		},
		"the head first, workers stay": {
			running(fixtures.Upgrades(v1.UpgradeRollingUpdate)).edit(fixtures.RayGroup(v1.RoleHead, next), small(next)), upgrading("a-head", "2/3"),
		},
		"groups wait for the head": {
			running(fixtures.Upgrades(v1.UpgradeRollingUpdate)).pod("a-head", notReady).edit(small(next)), upgrading("", "2/3"),
		},
		"a replica is a unit": {
			running(fixtures.Upgrades(v1.UpgradeRollingUpdate), small(fixtures.Hosts(2))).edit(small(next)), upgrading("a-small-0-0 a-small-0-1", "3/5"),
		},
		"a new group is no upgrade": {
			running(fixtures.Upgrades(v1.UpgradeRecreate)).edit(fixtures.RayGroup("more")),
			outcome{Created: "a-more-0-0", Phase: v1.PhaseScaling, Ready: "3/4", Reason: v1.RayClusterWorkersNotReadyReason},
		},
		"neither is another number": {
			running(fixtures.Upgrades(v1.UpgradeRecreate)).edit(small(fixtures.Replicas(3), fixtures.Between(1, 3), fixtures.WorkersToDelete("x"))),
			outcome{Created: "a-small-2-0", Phase: v1.PhaseScaling, Ready: "3/4", Reason: v1.RayClusterWorkersNotReadyReason},
		},
	} {
		if diff := cmp.Diff(tc.want, outcomeOf(tc.scene.plan())); diff != "" {
			t.Errorf("%s: outcome (-want +got):\n%s", name, diff)
		}
	}
}

// TestUpgradeToItsEnd goes through a whole upgrade, and expects that it is said
// to go on until the new pods are ready.
func TestUpgradeToItsEnd(t *testing.T) {
	for _, kind := range []v1.UpgradeType{v1.UpgradeRecreate, v1.UpgradeRollingUpdate} {
		s := running(fixtures.Upgrades(kind)).edit(fixtures.RayGroup(v1.RoleHead, fixtures.RayImage("ray:next")), small(fixtures.RayImage("ray:next")))
		for range 12 {
			result := s.plan()
			s.carryOut(result)
			if result.Status.Phase == v1.PhaseRunning {
				break
			}
			if result.Status.Phase != v1.PhaseUpgrading {
				t.Fatalf("%s: phase %s", kind, result.Status.Phase)
			}
			s.each(fixtures.Running())
		}
		for name, pod := range s.pods {
			if got := pod.Spec.Containers[0].Image; got != "ray:next" {
				t.Errorf("%s: %s runs %s", kind, name, got)
			}
		}
		if len(s.pods) != 3 || s.cluster.Status.Phase != v1.PhaseRunning || isTrue(s.cluster.Status.Conditions, v1.RayClusterUpgradingCondition) {
			t.Errorf("%s: %d pods, phase %s", kind, len(s.pods), s.cluster.Status.Phase)
		}
	}
}

func TestSuspend(t *testing.T) {
	s := running().edit(fixtures.ClusterSuspended(true))
	result := s.plan()
	want := outcome{Deleted: "a-head a-small-0-0 a-small-1-0", Phase: v1.PhaseScaling, Ready: "0/3", Reason: v1.RayClusterSuspendedReason}
	if diff := cmp.Diff(want, outcomeOf(result)); diff != "" {
		t.Errorf("suspending (-want +got):\n%s", diff)
	}
	if len(result.Apply) != 1 {
		t.Errorf("%d children are kept, want the service", len(result.Apply))
	}
	// Pitfall 6: resumed at once, it is suspended to the end first.
	s.cluster.Status = result.Status
	s.pod("a-head", fixtures.Terminating()).edit(fixtures.ClusterSuspended(false))
	want = outcome{Deleted: "a-small-0-0 a-small-1-0", Phase: v1.PhaseScaling, Ready: "0/3", Reason: v1.RayClusterSuspendedReason}
	if diff := cmp.Diff(want, outcomeOf(s.plan())); diff != "" {
		t.Errorf("resumed too soon (-want +got):\n%s", diff)
	}
	clear(s.pods)
	result = s.plan()
	want = outcome{Created: "a-head a-small-0-0 a-small-1-0", Phase: v1.PhaseCreating, Ready: "0/3", Reason: v1.RayClusterHeadNotFoundReason}
	if diff := cmp.Diff(want, outcomeOf(result)); diff != "" {
		t.Errorf("resumed (-want +got):\n%s", diff)
	}

	s.edit(fixtures.ClusterSuspended(true))
	if got := s.plan().Status; got.Phase != v1.PhaseSuspended || !isTrue(got.Conditions, v1.RayClusterSuspendedCondition) {
		t.Errorf("without pods it is %s", got.Phase)
	}
	s.cluster.Status = s.plan().Status
	// Not as upstream: taking the field away resumes it.
	s.cluster.Spec.RunPolicy = nil
	if got := outcomeOf(s.plan()); got.Created == "" {
		t.Errorf("without the field it stays suspended: %v", got)
	}
}

// TestHeadComesFirst: under a quota the workers would leave it no room.
func TestHeadComesFirst(t *testing.T) {
	fresh := Plan(fixtures.RayCluster("a"), plan.Observed{}, fixtures.Start)
	if fresh.Leading != 1 || fresh.Create[0].GetName() != "a-head" || len(fresh.Create) != 3 {
		t.Errorf("%d of %d lead, the first is %s", fresh.Leading, len(fresh.Create), fresh.Create[0].GetName())
	}
	if grown := running().without("a-small-0-0").plan(); grown.Leading != 0 || len(grown.Create) != 1 {
		t.Errorf("%d of %d lead where the head is there", grown.Leading, len(grown.Create))
	}
}

// TestLabelsAreRestored: by labels services find the head, and the autoscaler the
// workers.
func TestLabelsAreRestored(t *testing.T) {
	relabelled := func(s *scene) []string {
		var names []string
		for _, child := range s.plan().Apply {
			if pod, ok := child.(*corev1ac.PodApplyConfiguration); ok {
				names = append(names, *pod.Name+" of "+string(*pod.UID))
			}
		}
		return names
	}
	edit := func(key, value string) fixtures.PodMod {
		return func(pod *corev1.Pod) { pod.Labels[key] = value }
	}
	head, worker := string(running().pods["a-head"].UID), string(running().pods["a-small-1-0"].UID)
	for name, tc := range map[string]struct {
		scene *scene
		want  []string
	}{
		"nothing was edited":     {running(), nil},
		"labels of the author's": {running().pod("a-head", edit("team", "x")), nil},
		"the cluster":            {running().pod("a-head", edit(v1.ClusterNameLabel, "x")), []string{"a-head of " + head}},
		"Ray's cluster":          {running().pod("a-small-1-0", edit(rayClusterLabel, "")), []string{"a-small-1-0 of " + worker}},
		"the group":              {running().pod("a-small-1-0", edit(rayGroupLabel, "x")), []string{"a-small-1-0 of " + worker}},
		"it is going":            {running().pod("a-head", edit(v1.ClusterNameLabel, "x"), fixtures.Terminating()), nil},
	} {
		if diff := cmp.Diff(tc.want, relabelled(tc.scene)); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}

// TestTokenIsRenewed: whoever deletes the secret of the token gets another one,
// which pods that hold the old one do not take.
func TestTokenIsRenewed(t *testing.T) {
	authenticated := func(cluster *v1.RayCluster) { cluster.Spec.Auth = &v1.RayAuth{Mode: v1.RayAuthToken} }
	secret := func(seconds int) plan.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name: "a", UID: "secret", CreationTimestamp: metav1.NewTime(fixtures.Start.Add(time.Duration(seconds) * time.Second)),
		}}
	}
	under := func(secret plan.Object, mods ...fixtures.ClusterMod) *scene {
		s := running(mods...)
		for name := range s.pods {
			s.pod(name, born(5))
		}
		s.others = []plan.Object{secret}
		return s
	}
	done := outcome{Phase: v1.PhaseRunning, Ready: "3/3", Reason: v1.RayClusterAllPodsReadyReason}
	all := outcome{Deleted: "a-head a-small-0-0 a-small-1-0", Phase: v1.PhaseRestarting, Ready: "0/3", Reason: v1.RayClusterHeadNotFoundReason}
	for name, tc := range map[string]struct {
		scene *scene
		want  outcome
	}{
		"made with the pods":       {under(secret(5), authenticated), done},
		"made before them":         {under(secret(0), authenticated), done},
		"made after them":          {under(secret(6), authenticated), all},
		"with none before":         {under(secret(6)).edit(authenticated), done},
		"somebody else's":          {under(secret(6), func(c *v1.RayCluster) { authenticated(c); c.Spec.Auth.SecretName = new("a") }), done},
		"a worker is an older one": {under(secret(6), authenticated).pod("a-head", born(7)).pod("a-small-1-0", born(7)), all},
	} {
		if diff := cmp.Diff(tc.want, outcomeOf(tc.scene.plan())); diff != "" {
			t.Errorf("%s: outcome (-want +got):\n%s", name, diff)
		}
	}
}

// TestOutdatedPodsAreTold: None leaves pods of an older template alone, and says
// so until they are gone.
func TestOutdatedPodsAreTold(t *testing.T) {
	told := func(s *scene) string {
		result := s.plan()
		s.carryOut(result)
		c := meta.FindStatusCondition(result.Status.Conditions, v1.RayClusterUpgradingCondition)
		if c == nil {
			return ""
		}
		return string(c.Status) + " " + c.Reason
	}
	s := running()
	for i, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, ""},
		{func() { s.edit(small(fixtures.RayImage("ray:next"))) }, "False PodsOutdated"},
		{func() { s.without("a-small-0-0").without("a-small-1-0") }, "False UpgradeComplete"},
		{func() { s.edit(small(fixtures.RayImage("ray:after"))) }, "False PodsOutdated"},
		{func() { s.edit(fixtures.ClusterSuspended(true)) }, "False ClusterSuspended"},
	} {
		step.do()
		s.each(fixtures.Running())
		if got := told(s); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

// TestHeadWithoutAutoscaler: a head that was made before there was an autoscaler
// does not run it, so nobody else scales down.
func TestHeadWithoutAutoscaler(t *testing.T) {
	down := small(fixtures.Replicas(1))
	s := running().edit(fixtures.Autoscaled(v1.RayAutoscalerV1), down)
	result := s.plan()
	if got := outcomeOf(result).Deleted; got != "a-small-1-0" {
		t.Errorf("deletes %q", got)
	}
	c := meta.FindStatusCondition(result.Status.Conditions, v1.RayClusterUpgradingCondition)
	if c == nil || !strings.Contains(c.Message, "without the autoscaler") {
		t.Errorf("condition %+v", c)
	}
	if got := outcomeOf(running(fixtures.Autoscaled(v1.RayAutoscalerV1)).edit(down).plan()).Deleted; got != "" {
		t.Errorf("with an autoscaler it deletes %q", got)
	}
}
