package training

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/gangs"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// gangOf asks for the pods all together.
func gangOf(mods ...func(*v1.Gang)) fixtures.JobMod {
	return func(job *v1.TrainingJob) {
		job.Spec.Gang = &v1.Gang{}
		for _, mod := range mods {
			mod(job.Spec.Gang)
		}
	}
}

// gpus makes each pod ask for some.
func gpus(n string) fixtures.JobMod {
	return fixtures.Template(func(template *corev1.PodTemplateSpec) {
		template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(n), "cpu": resource.MustParse("1500m")}
	})
}

func whereServed(kinds ...schema.GroupVersionKind) plan.Observed {
	observed := plan.Observed{Served: map[schema.GroupVersionKind]bool{}}
	for _, kind := range kinds {
		observed.Served[kind] = true
	}
	return observed
}

// groupsIn returns the pod groups among what a plan applies, as the API server
// would show them.
func groupsIn(t *testing.T, result plan.Result[v1.TrainingJobStatus]) []plan.Object {
	t.Helper()
	var groups []plan.Object
	for _, child := range result.Apply {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
		if err != nil {
			t.Fatal(err)
		}
		if fields["kind"] != "PodGroup" {
			continue
		}
		group := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)}
		group.SetUID("group-uid")
		if group.GroupVersionKind() != gangs.NativeKind {
			groups = append(groups, group)
			continue
		}
		typed := &schedulingv1beta1.PodGroup{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(group.Object, typed); err != nil {
			t.Fatal(err)
		}
		groups = append(groups, typed)
	}
	return groups
}

// planGrouped plans a job twice: once for its group, and once with it there,
// changed by a function.
func planGrouped(t *testing.T, job *v1.TrainingJob, observed plan.Observed, change func(plan.Object)) (plan.Object, plan.Result[v1.TrainingJobStatus]) {
	t.Helper()
	first := Plan(job, observed, fixtures.Start)
	groups := groupsIn(t, first)
	if len(groups) != 1 || len(first.Create) > 0 {
		t.Fatalf("%d groups and %d pods come first", len(groups), len(first.Create))
	}
	if change != nil {
		change(groups[0])
	}
	job.Status = first.Status
	observed.Children = append(observed.Children, groups[0])
	return groups[0], Plan(job, observed, fixtures.Start)
}

func admitted(group plan.Object) {
	_ = unstructured.SetNestedField(group.(*unstructured.Unstructured).Object, "Inqueue", "status", "phase")
}

func TestGangGroups(t *testing.T) {
	type link struct{ Group, Label, Annotation, Task, Scheduler, Priority string }
	all := func(g *v1.Gang) {
		g.QueueName, g.PriorityClassName, g.ScheduleTimeoutSeconds = "team-a", "urgent", ptr.To[int32](60)
	}
	scheduler := func(name string) func(*v1.Gang) { return func(g *v1.Gang) { g.Scheduler = name } }
	tests := map[string]struct {
		served []schema.GroupVersionKind
		mods   []fixtures.JobMod
		spec   string
		pod    link
	}{
		"Kubernetes' own comes first": {
			served: []schema.GroupVersionKind{gangs.VolcanoKind, gangs.PluginsKind, gangs.NativeKind},
			mods:   []fixtures.JobMod{gpus("8"), gangOf(all, func(g *v1.Gang) { g.Topology = &v1.Topology{Required: "rack"} })},
			spec: `{"schedulingPolicy":{"gang":{"minCount":2}},"schedulingConstraints":{"topology":[{"key":"rack"}]},
				"priorityClassName":"urgent"}`,
			pod: link{Group: "a", Priority: "urgent"},
		},
		"the topology of the only role is the gang's": {
			served: []schema.GroupVersionKind{gangs.NativeKind},
			mods: []fixtures.JobMod{gangOf(), fixtures.EachRole(func(r *v1.Role) {
				r.Topology, r.Template.Spec.PriorityClassName = &v1.Topology{Required: "rack"}, "usual"
			})},
			spec: `{"schedulingPolicy":{"gang":{"minCount":2}},"schedulingConstraints":{"topology":[{"key":"rack"}]},"priorityClassName":"usual"}`,
			pod:  link{Group: "a", Priority: "usual"},
		},
		"then scheduler-plugins": {
			served: []schema.GroupVersionKind{gangs.VolcanoKind, gangs.PluginsKind},
			mods:   []fixtures.JobMod{gpus("8"), gangOf(all)},
			spec:   `{"minMember":2,"minResources":{"cpu":"3","nvidia.com/gpu":"16"},"scheduleTimeoutSeconds":60}`,
			pod:    link{Label: "a", Priority: "urgent"},
		},
		"then Volcano": {
			served: []schema.GroupVersionKind{gangs.VolcanoKind},
			mods:   []fixtures.JobMod{gpus("8"), gangOf(all)},
			spec:   `{"minMember":2,"minResources":{"cpu":"3","nvidia.com/gpu":"16"},"priorityClassName":"urgent","queue":"team-a"}`,
			pod:    link{Annotation: "a", Task: "worker", Scheduler: "volcano"},
		},
		"Volcano by its name": {
			served: []schema.GroupVersionKind{gangs.VolcanoKind, gangs.PluginsKind, gangs.NativeKind},
			mods:   []fixtures.JobMod{gangOf(scheduler("volcano"))},
			spec:   `{"minMember":2}`,
			pod:    link{Annotation: "a", Task: "worker", Scheduler: "volcano"},
		},
		"a second scheduler is there for its plugins": {
			served: []schema.GroupVersionKind{gangs.VolcanoKind, gangs.PluginsKind, gangs.NativeKind},
			mods:   []fixtures.JobMod{gangOf(scheduler("gangs"))},
			spec:   `{"minMember":2}`,
			pod:    link{Label: "a", Scheduler: "gangs"},
		},
		"whose pods are restarted together are disrupted together": {
			served: []schema.GroupVersionKind{gangs.NativeKind},
			mods:   []fixtures.JobMod{gangOf(), fixtures.GangRestart()},
			spec:   `{"schedulingPolicy":{"gang":{"minCount":2}},"disruptionMode":{"all":{}}}`,
			pod:    link{Group: "a"},
		},
		"whose workers may leave are disrupted one by one": {
			served: []schema.GroupVersionKind{gangs.NativeKind},
			mods:   []fixtures.JobMod{gangOf(), fixtures.GangRestart(), fixtures.Elastic(2, 3), fixtures.Scaled(2)},
			spec:   `{"schedulingPolicy":{"gang":{"minCount":2}}}`,
			pod:    link{Group: "a"},
		},
		"or a profile of kube-scheduler": {
			served: []schema.GroupVersionKind{gangs.VolcanoKind, gangs.NativeKind},
			mods:   []fixtures.JobMod{gangOf(scheduler("gangs"))},
			spec:   `{"schedulingPolicy":{"gang":{"minCount":2}}}`,
			pod:    link{Group: "a", Scheduler: "gangs"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			group, result := planGrouped(t, fixtures.TrainingJob("a", tc.mods...), whereServed(tc.served...), func(group plan.Object) {
				if gangs.KindOf(group) == gangs.VolcanoKind {
					admitted(group)
				}
			})
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(group)
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(tc.spec), &want); err != nil {
				t.Fatal(err)
			}
			got, _ := json.Marshal(fields["spec"])
			wanted, _ := json.Marshal(want)
			if diff := cmp.Diff(string(wanted), string(got)); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if len(result.Create) != 2 || group.GetName() != "a" || group.GetLabels()[v1.ManagedByLabel] != v1.ManagedByValue {
				t.Fatalf("%d pods, group %s, labels %v", len(result.Create), group.GetName(), group.GetLabels())
			}
			pod := result.Create[0].(*corev1.Pod)
			link := link{Label: pod.Labels[gangs.PluginsGroupLabel], Annotation: pod.Annotations[gangs.VolcanoGroupAnnotation],
				Task: pod.Annotations[gangs.VolcanoTaskAnnotation], Scheduler: pod.Spec.SchedulerName, Priority: pod.Spec.PriorityClassName}
			if pod.Spec.SchedulingGroup != nil {
				link.Group = *pod.Spec.SchedulingGroup.PodGroupName
			}
			if diff := cmp.Diff(tc.pod, link); diff != "" {
				t.Errorf("pod (-want +got):\n%s", diff)
			}
			if pod.Spec.Affinity != nil {
				t.Errorf("affinity %v beside the group's topology", pod.Spec.Affinity)
			}
		})
	}
}

func TestGangSize(t *testing.T) {
	least := func(n int32) fixtures.JobMod { return gangOf(func(g *v1.Gang) { g.MinAvailable = new(n) }) }
	mpi := func(creation v1.LauncherCreation) []fixtures.JobMod {
		return []fixtures.JobMod{fixtures.Workers(4), fixtures.Role(v1.RoleLauncher, 1), fixtures.Framework(v1.FrameworkMPI),
			func(job *v1.TrainingJob) { job.Spec.MPI = &v1.MPI{LauncherCreation: creation} }}
	}
	for name, tc := range map[string]struct {
		mods []fixtures.JobMod
		want int32
	}{
		"all of them":                              {[]fixtures.JobMod{fixtures.Master(), fixtures.Workers(3), gangOf()}, 4},
		"what the job says":                        {[]fixtures.JobMod{fixtures.Master(), fixtures.Workers(3), least(2)}, 2},
		"of elastic workers their minimum":         {[]fixtures.JobMod{fixtures.Elastic(2, 8), fixtures.Scaled(5), gangOf()}, 2},
		"what the job says, of elastic ones too":   {[]fixtures.JobMod{fixtures.Elastic(2, 8), fixtures.Scaled(5), least(4)}, 4},
		"an evaluator counts":                      {[]fixtures.JobMod{fixtures.Role(v1.RoleEvaluator, 1), fixtures.Workers(3), fixtures.Framework(v1.FrameworkTensorFlow), gangOf()}, 4},
		"unless the job says less":                 {[]fixtures.JobMod{fixtures.Role(v1.RoleEvaluator, 1), fixtures.Workers(3), fixtures.Framework(v1.FrameworkTensorFlow), least(3)}, 3},
		"no more than there are after scaling":     {[]fixtures.JobMod{fixtures.Elastic(2, 8), fixtures.Scaled(3), least(4)}, 3},
		"without the launcher that waits":          {append(mpi(v1.LauncherWaitForWorkersReady), gangOf()), 4},
		"without it whatever the job says":         {append(mpi(v1.LauncherWaitForWorkersReady), least(5)), 4},
		"with a launcher that does not":            {append(mpi(v1.LauncherAtStartup), gangOf()), 5},
		"roles of no pods count for nothing":       {[]fixtures.JobMod{fixtures.Role(v1.RoleMaster, 1), fixtures.Workers(0), gangOf()}, 1},
		"elastic workers beside a master":          {[]fixtures.JobMod{fixtures.Master(), fixtures.Elastic(2, 8), fixtures.Scaled(5), gangOf()}, 3},
		"an elastic job without a minimum said so": {[]fixtures.JobMod{fixtures.Elastic(1, 8), fixtures.Scaled(5), gangOf()}, 1},
	} {
		group, _ := planGrouped(t, fixtures.TrainingJob("a", tc.mods...), whereServed(gangs.NativeKind), nil)
		if got := group.(*schedulingv1beta1.PodGroup).Spec.SchedulingPolicy.Gang.MinCount; got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// What must be free is summed in the framework's order of roles, not in that of
// priorities.
func TestMinResources(t *testing.T) {
	job := fixtures.TrainingJob("a", fixtures.Workers(3), fixtures.Master(), gangOf(func(g *v1.Gang) { g.MinAvailable = ptr.To[int32](2) }),
		fixtures.EachRole(func(r *v1.Role) {
			cpu := "4"
			if r.Name == v1.RoleMaster {
				cpu, r.Template.Spec.PriorityClassName = "1", "lowest"
			}
			r.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
		}))
	group, _ := planGrouped(t, job, whereServed(gangs.PluginsKind), nil)
	got, _, _ := unstructured.NestedStringMap(group.(*unstructured.Unstructured).Object, "spec", "minResources")
	if diff := cmp.Diff(map[string]string{"cpu": "5"}, got); diff != "" {
		t.Errorf("minResources (-want +got):\n%s", diff)
	}
}

func TestGangCondition(t *testing.T) {
	onNode := func(pod *corev1.Pod) { pod.Spec.NodeName = "n" }
	grouped := func(pod *corev1.Pod) { pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("a")} }
	worker := func(i int32, mods ...fixtures.PodMod) *corev1.Pod { return fixtures.Pod("a-worker-"+itoa(i), mods...) }
	group := func(mods ...func(*schedulingv1beta1.PodGroup)) *schedulingv1beta1.PodGroup {
		g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "g"}}
		for _, mod := range mods {
			mod(g)
		}
		return g
	}
	unschedulable := func(g *schedulingv1beta1.PodGroup) {
		g.Status.Conditions = []metav1.Condition{{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse,
			Reason: "Unschedulable", Message: "0/4 nodes are available"}}
	}
	type want struct {
		Status  metav1.ConditionStatus
		Reason  string
		Message string
		Created int
		// MinCount is the group's, 0 where there is none.
		MinCount int32
	}
	const title = "; kube-scheduler places them when it can place 3"
	named := func(name string) func(*v1.Gang) { return func(g *v1.Gang) { g.Scheduler = name } }
	ofScheduler := func(name string) fixtures.JobMod {
		return func(job *v1.TrainingJob) {
			for i := range job.Spec.Roles {
				if job.Spec.Roles[i].Name == v1.RoleWorker {
					job.Spec.Roles[i].Template.Spec.SchedulerName = name
				}
			}
		}
	}
	tests := map[string]struct {
		mods     []fixtures.JobMod
		children []plan.Object
		unserved bool
		want     want
	}{
		"no pod before the group":       {want: want{"False", v1.GangPendingReason, "0 of 3 pods are placed" + title, 0, 3}},
		"pods with it":                  {children: []plan.Object{group()}, want: want{"False", v1.GangPendingReason, "0 of 3 pods are placed" + title, 3, 3}},
		"no pods while an old one goes": {children: []plan.Object{group(func(g *schedulingv1beta1.PodGroup) { g.DeletionTimestamp = new(metav1.NewTime(fixtures.Start)) })}, want: want{"False", v1.GangPendingReason, "0 of 3 pods are placed" + title, 0, 3}},
		"waits and says why": {children: []plan.Object{group(unschedulable), worker(0, grouped), worker(1, grouped), worker(2, grouped)},
			want: want{"False", v1.GangPendingReason, "0 of 3 pods are placed" + title + ": 0/4 nodes are available", 0, 3}},
		"is placed": {children: []plan.Object{group(), worker(0, grouped, onNode), worker(1, grouped, onNode), worker(2, grouped, onNode, fixtures.Running())},
			want: want{"True", v1.GangScheduledReason, "3 of 3 pods are placed" + title, 0, 3}},
		"lacks a pod that was lost": {children: []plan.Object{group(), worker(0, grouped, onNode), worker(1, grouped, onNode)},
			want: want{"False", v1.GangPendingReason, "2 of 3 pods are placed" + title, 1, 3}},
		"does not wait for a pod that is done": {mods: []fixtures.JobMod{fixtures.Restart(v1.RestartExitCode)},
			children: []plan.Object{group(), worker(0, grouped, onNode, fixtures.Succeeded()), worker(1, grouped, onNode, fixtures.Running()), worker(2, grouped)},
			want:     want{"False", v1.GangPendingReason, "2 of 3 pods are placed" + title, 0, 2}},
		"and says three again once all are placed": {mods: []fixtures.JobMod{fixtures.Restart(v1.RestartExitCode)},
			children: []plan.Object{group(), worker(0, grouped, onNode, fixtures.Succeeded()), worker(1, grouped, onNode, fixtures.Running()), worker(2, grouped, onNode)},
			want:     want{"True", v1.GangScheduledReason, "3 of 3 pods are placed" + title, 0, 3}},
		"no scheduler is there": {unserved: true, want: want{"False", v1.GangUnsupportedReason, "no gang scheduler is there, so the pods are placed one by one: turn on PodGroups in Kubernetes " +
			"(feature gate GenericWorkload and scheduling.k8s.io/v1beta1), or install scheduler-plugins or Volcano", 3, 0}},
		"nor is anything known of the one that is named": {unserved: true, mods: []fixtures.JobMod{gangOf(named("nobody"))},
			want: want{"False", v1.GangUnsupportedReason, "no gang scheduler is there, and the pods wait for scheduler nobody, " +
				"of which nothing is known, and which places them one by one if it runs: turn on PodGroups", 3, 0}},
		"nor of the one that only the pods name": {unserved: true, mods: []fixtures.JobMod{gangOf(), ofScheduler("own")},
			want: want{"False", v1.GangUnsupportedReason, "no gang scheduler is there, and the pods wait for scheduler own, of which nothing is known", 3, 0}},
		"some pods wait and others do not": {unserved: true, mods: []fixtures.JobMod{fixtures.Master(), gangOf(), ofScheduler("own")},
			want: want{"False", v1.GangUnsupportedReason, "no gang scheduler is there: some pods are placed one by one, and others wait for scheduler own, of which nothing is known", 4, 0}},
		"Kubernetes' own by its name": {unserved: true, mods: []fixtures.JobMod{gangOf(named("default-scheduler"))},
			want: want{"False", v1.GangUnsupportedReason, "no gang scheduler is there, so the pods are placed one by one: ", 3, 0}},
		"one of which nothing is known may never come": {mods: []fixtures.JobMod{gangOf(named("nobody"))}, children: []plan.Object{group()},
			want: want{"False", v1.GangPendingReason, "0 of 3 pods are placed; scheduler nobody is to place them, by a pod group of kube-scheduler, when it can place 3; " +
				"the pods wait for scheduler nobody, and nothing is known of whether it runs", 3, 3}},
		"and runs if it tells something": {mods: []fixtures.JobMod{gangOf(named("second"))}, children: []plan.Object{group(unschedulable), worker(0, grouped), worker(1, grouped), worker(2, grouped)},
			want: want{"False", v1.GangPendingReason, "by a pod group of kube-scheduler, when it can place 3: 0/4 nodes are available", 0, 3}},
		"or has placed a pod": {mods: []fixtures.JobMod{gangOf(named("second"))}, children: []plan.Object{group(), worker(0, grouped, onNode), worker(1, grouped, onNode), worker(2, grouped, onNode)},
			want: want{"True", v1.GangScheduledReason, "3 of 3 pods are placed; scheduler second is to place them, by a pod group of kube-scheduler, when it can place 3", 0, 3}},
		"one that is named is not there": {mods: []fixtures.JobMod{gangOf(func(g *v1.Gang) { g.Scheduler = "volcano" })},
			want: want{"False", v1.GangUnsupportedReason, "Volcano is not there (no PodGroup of scheduling.volcano.sh/v1beta1), and the pods wait for scheduler volcano: install it, or leave out gang.scheduler", 3, 0}},
		"pods that came before it stay alone": {children: []plan.Object{worker(0, onNode), worker(1)},
			want: want{"False", v1.GangUngroupedReason, "the pods are of no pod group", 1, 0}},
		"a queue that means nothing": {mods: []fixtures.JobMod{gangOf(func(g *v1.Gang) { g.QueueName = "q" })},
			want: want{"False", v1.GangPendingReason, "it has no queues, so queueName q means nothing", 0, 3}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := fixtures.TrainingJob("a", append([]fixtures.JobMod{fixtures.Workers(3), gangOf()}, tc.mods...)...)
			observed := whereServed(gangs.NativeKind)
			if tc.unserved {
				observed = whereServed()
			}
			observed.Children = tc.children
			result := Plan(job, observed, fixtures.Start)
			c := ptr.Deref(meta.FindStatusCondition(result.Status.Conditions, v1.TrainingJobGangScheduledCondition), metav1.Condition{})
			got := want{c.Status, c.Reason, c.Message, len(result.Create), 0}
			if strings.Contains(c.Message, tc.want.Message) {
				got.Message = tc.want.Message
			}
			for _, group := range groupsIn(t, result) {
				got.MinCount = group.(*schedulingv1beta1.PodGroup).Spec.SchedulingPolicy.Gang.MinCount
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An API server without the topology gate leaves the constraint out: affinity
// does what it can, and the group is not applied again and again.
func TestGangTopologyByAffinity(t *testing.T) {
	job := fixtures.TrainingJob("a", gangOf(func(g *v1.Gang) { g.Topology = &v1.Topology{Required: "rack"} }))
	observed := whereServed(gangs.NativeKind)
	group, result := planGrouped(t, job, observed, func(group plan.Object) {
		group.(*schedulingv1beta1.PodGroup).Spec.SchedulingConstraints = nil
	})
	if diff := cmp.Diff([]plan.Object{group}, groupsIn(t, result)); diff != "" {
		t.Errorf("applied again (-observed +wanted):\n%s", diff)
	}
	affinity := result.Create[0].(*corev1.Pod).Spec.Affinity
	if affinity == nil || len(affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Errorf("affinity %v", affinity)
	}
}

// What a group has already and cannot change stays, whatever the job says now.
func TestGangKeepsWhatCannotChange(t *testing.T) {
	job := fixtures.TrainingJob("a", gangOf(), fixtures.GangRestart())
	group, result := planGrouped(t, job, whereServed(gangs.NativeKind), func(group plan.Object) {
		spec := &group.(*schedulingv1beta1.PodGroup).Spec
		spec.PriorityClassName, spec.DisruptionMode = "usual", nil
	})
	if diff := cmp.Diff([]plan.Object{group}, groupsIn(t, result)); diff != "" {
		t.Errorf("applied again (-observed +wanted):\n%s", diff)
	}
}

// A pod that is to be placed must not wait for peers that its scheduler does
// not count.
func TestGangWaitsForNobodyWhoCannotCome(t *testing.T) {
	onNode := func(pod *corev1.Pod) { pod.Spec.NodeName = "n" }
	ofVolcano := func(pod *corev1.Pod) { pod.Annotations = map[string]string{gangs.VolcanoGroupAnnotation: "a"} }
	worker := func(i int32, mods ...fixtures.PodMod) *corev1.Pod { return fixtures.Pod("a-worker-"+itoa(i), mods...) }
	done := func(job *v1.TrainingJob) {
		job.Status.Roles = []v1.RoleStatus{{Name: v1.RoleWorker, CompletedIndexes: "0"}}
	}
	least := func(n int32) fixtures.JobMod { return gangOf(func(g *v1.Gang) { g.MinAvailable = &n }) }
	runs, waits := worker(1, ofVolcano, onNode, fixtures.Running()), worker(2, ofVolcano)
	for name, tc := range map[string]struct {
		mod  fixtures.JobMod
		pods []plan.Object
		want int64
	}{
		"Volcano counts a pod that is done":                {nil, []plan.Object{worker(0, ofVolcano, onNode, fixtures.Succeeded()), runs, waits}, 3},
		"but not one that is done and gone":                {done, []plan.Object{runs, waits}, 2},
		"nor one that is done and of no group":             {nil, []plan.Object{worker(0, onNode, fixtures.Succeeded()), runs, waits}, 2},
		"nor one that runs and is of no group":             {nil, []plan.Object{worker(0, onNode, fixtures.Running()), runs, waits}, 2},
		"nor one of no group, back while there was no API": {nil, []plan.Object{worker(0), worker(1, ofVolcano), waits}, 2},
		"which is one less to come once it is placed":      {least(2), []plan.Object{worker(0, onNode), worker(1, ofVolcano), waits}, 1},
		"but not before, as it may never be":               {least(2), []plan.Object{worker(0), worker(1, ofVolcano), waits}, 2},
		"nor are more waited for than can be counted":      {least(2), []plan.Object{worker(0), worker(1), waits}, 1},
		"and nothing is lowered once all are placed":       {nil, []plan.Object{worker(0, onNode, fixtures.Running()), runs, worker(2, ofVolcano, onNode)}, 3},
	} {
		job := fixtures.TrainingJob("a", fixtures.Workers(3), fixtures.Restart(v1.RestartExitCode), gpus("8"), gangOf())
		if tc.mod != nil {
			tc.mod(job)
		}
		observed := whereServed(gangs.VolcanoKind)
		observed.Children = tc.pods
		groups := groupsIn(t, Plan(job, observed, fixtures.Start))
		if len(groups) != 1 {
			t.Fatalf("%s: %d groups", name, len(groups))
		}
		spec := groups[0].(*unstructured.Unstructured).Object["spec"].(map[string]any)
		want := map[string]any{"minMember": tc.want, "minResources": map[string]any{
			"cpu": resource.NewMilliQuantity(1500*tc.want, resource.DecimalSI).String(), "nvidia.com/gpu": itoa(8 * int32(tc.want))}}
		if diff := cmp.Diff(want, spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestVolcanoAdmitsFirst(t *testing.T) {
	job := fixtures.TrainingJob("a", gangOf())
	_, result := planGrouped(t, job, whereServed(gangs.VolcanoKind), func(group plan.Object) {
		_ = unstructured.SetNestedField(group.(*unstructured.Unstructured).Object, "Pending", "status", "phase")
	})
	c := meta.FindStatusCondition(result.Status.Conditions, v1.TrainingJobGangScheduledCondition)
	if len(result.Create) > 0 || !strings.Contains(c.Message, "its queue has not admitted the group yet") {
		t.Errorf("%d pods, %+v", len(result.Create), c)
	}
}

// The group goes with the end of the job and with its suspension.
func TestGangGroupGoes(t *testing.T) {
	for name, mod := range map[string]fixtures.JobMod{
		"suspended": fixtures.Suspended(),
		"no gang":   func(job *v1.TrainingJob) { job.Spec.Gang = nil },
		"finished": func(job *v1.TrainingJob) {
			meta.SetStatusCondition(&job.Status.Conditions, metav1.Condition{Type: v1.TrainingJobSucceededCondition, Status: metav1.ConditionTrue})
		},
		"of another scheduler": gangOf(func(g *v1.Gang) { g.Scheduler = "volcano" }),
	} {
		group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "g"}}
		observed := whereServed(gangs.NativeKind, gangs.VolcanoKind)
		observed.Children = []plan.Object{group}
		result := Plan(fixtures.TrainingJob("a", gangOf(), mod), observed, fixtures.Start)
		if len(result.Delete) != 1 || result.Delete[0].Child != plan.Object(group) {
			t.Errorf("%s: deletes %v", name, result.Delete)
		}
	}
}

func TestPodRequests(t *testing.T) {
	container := func(cpu string, mods ...func(*corev1.Container)) corev1.Container {
		c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}
		for _, mod := range mods {
			mod(&c)
		}
		return c
	}
	sidecar := func(c *corev1.Container) { c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways) }
	limited := func(c *corev1.Container) {
		c.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("3")}}
	}
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"containers together":        {corev1.PodSpec{Containers: []corev1.Container{container("1"), container("500m")}}, "1500m"},
		"a limit is a request":       {corev1.PodSpec{Containers: []corev1.Container{container("1", limited)}}, "3"},
		"a larger init container":    {corev1.PodSpec{Containers: []corev1.Container{container("1")}, InitContainers: []corev1.Container{container("4"), container("2")}}, "4"},
		"sidecars run on":            {corev1.PodSpec{Containers: []corev1.Container{container("1")}, InitContainers: []corev1.Container{container("2", sidecar)}}, "3"},
		"sidecars beside init ones":  {corev1.PodSpec{Containers: []corev1.Container{container("1")}, InitContainers: []corev1.Container{container("2", sidecar), container("4")}}, "6"},
		"and what the runtime takes": {corev1.PodSpec{Containers: []corev1.Container{container("1")}, Overhead: corev1.ResourceList{"cpu": resource.MustParse("250m")}}, "1250m"},
	} {
		requests := pods.Requests(&tc.spec)
		if got := requests.Cpu().String(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
