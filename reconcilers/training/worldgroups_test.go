package training

import (
	"errors"
	"math/rand/v2"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	schedulingv1beta1ac "k8s.io/client-go/applyconfigurations/scheduling/v1beta1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/gangs"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// How pod groups and gang schedulers behave in the world: kube-scheduler,
// scheduler-plugins and Volcano come and go, and place no pod of a group before
// there are as many as the group says.

// gangShape asks for the pods all together, in one of the ways there are.
func gangShape(r *rand.Rand) fixtures.JobMod {
	return func(job *v1.TrainingJob) {
		job.Spec.Gang = &v1.Gang{Scheduler: []string{"", "", gangs.VolcanoName, corev1.DefaultSchedulerName, "gangs"}[r.IntN(5)]}
		if r.IntN(3) == 0 {
			job.Spec.Gang.MinAvailable = new(1 + r.Int32N(4))
		}
		if r.IntN(3) == 0 {
			job.Spec.Gang.Topology = &v1.Topology{Required: "rack"}
		}
		if r.IntN(3) == 0 {
			job.Spec.Gang.PriorityClassName = "urgent"
		}
	}
}

// installSchedulers says which kinds of pod group the API server knows.
func (w *world) installSchedulers(r *rand.Rand) {
	w.served = map[schema.GroupVersionKind]bool{}
	for _, scheduler := range gangs.Schedulers {
		if r.IntN(2) == 0 {
			w.served[scheduler.Kind()] = true
		}
	}
	w.topologyGate = r.IntN(2) == 0
}

// changeSchedulers installs a gang scheduler, or removes one with its groups.
// Kubernetes' own is there or not for good.
func (w *world) changeSchedulers() {
	kind := []schema.GroupVersionKind{gangs.PluginsKind, gangs.VolcanoKind}[w.random.IntN(2)]
	w.served[kind] = !w.served[kind]
	w.note("%s is served: %v", kind.Group, w.served[kind])
	if !w.served[kind] {
		delete(w.others, groupKey(kind))
		delete(w.seenOthers, groupKey(kind))
	}
}

func groupKey(kind schema.GroupVersionKind) string { return "PodGroup/" + kind.Group }

// admitGang has Volcano admit the job's group to its queue.
func (w *world) admitGang() {
	key := groupKey(gangs.VolcanoKind)
	if group, ok := w.others[key].(*unstructured.Unstructured); ok && gangs.PhaseOf(group) != "Inqueue" {
		group = group.DeepCopy()
		_ = unstructured.SetNestedField(group.Object, "Inqueue", "status", "phase")
		w.others[key] = group
		w.note("Volcano admits the group")
	}
}

// applyGroup server-side applies a pod group. It returns false if the child is
// something else.
func (w *world) applyGroup(child runtime.ApplyConfiguration) bool {
	var wanted plan.Object
	switch child := child.(type) {
	case plan.Fields:
		wanted = child.DeepCopy()
	case *schedulingv1beta1ac.PodGroupApplyConfiguration:
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
		typed := &schedulingv1beta1.PodGroup{}
		if err = errors.Join(err, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, typed)); err != nil {
			w.fail("a pod group that is none: %v", err)
		}
		wanted = typed
	default:
		return false
	}
	kind := gangs.KindOf(wanted)
	w.checkGroup(wanted)
	if seen := w.seenOthers[groupKey(kind)]; seen != nil && sameGroup(seen, wanted) {
		return true
	}
	w.writes++
	there := w.others[groupKey(kind)]
	w.complete(wanted, there)
	w.note("applied the pod group of %s for %d pods", kind.Group, leastOf(wanted))
	w.others[groupKey(kind)] = wanted
	return true
}

// complete does what the API server does to a pod group that is applied, given
// the one there is.
func (w *world) complete(wanted, there plan.Object) {
	if there == nil {
		wanted.SetUID(w.uid())
	} else {
		wanted.SetUID(there.GetUID())
	}
	switch wanted := wanted.(type) {
	case *schedulingv1beta1.PodGroup:
		if !w.topologyGate {
			wanted.Spec.SchedulingConstraints = nil
		}
		if wanted.Spec.DisruptionMode == nil {
			wanted.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}}
		}
		if before, ok := there.(*schedulingv1beta1.PodGroup); ok {
			now := wanted.DeepCopy()
			now.Spec.SchedulingPolicy = before.Spec.SchedulingPolicy
			if !equality.Semantic.DeepEqual(before.Spec, now.Spec) {
				w.fail("the pod group cannot change from %+v to %+v", before.Spec, now.Spec)
			}
		}
	case *unstructured.Unstructured:
		if status, ok := fieldsOf(there)["status"]; ok {
			wanted.Object["status"] = status
		}
	}
}

func fieldsOf(group plan.Object) map[string]any {
	if untyped, ok := group.(*unstructured.Unstructured); ok {
		return untyped.Object
	}
	return nil
}

// sameGroup says whether applying a group would change nothing: what the API
// server fills in is not looked at.
func sameGroup(seen, wanted plan.Object) bool {
	switch seen := seen.(type) {
	case *schedulingv1beta1.PodGroup:
		was, now := seen.Spec, wanted.(*schedulingv1beta1.PodGroup).Spec
		return equality.Semantic.DeepEqual(was.SchedulingPolicy, now.SchedulingPolicy) &&
			was.PriorityClassName == now.PriorityClassName &&
			(now.DisruptionMode == nil || equality.Semantic.DeepEqual(was.DisruptionMode, now.DisruptionMode)) &&
			(now.SchedulingConstraints == nil || equality.Semantic.DeepEqual(was.SchedulingConstraints, now.SchedulingConstraints))
	case *unstructured.Unstructured:
		return reflect.DeepEqual(seen.Object["spec"], wanted.(*unstructured.Unstructured).Object["spec"])
	}
	return false
}

// leastOf is how many pods of a group are placed together.
func leastOf(group plan.Object) int32 {
	switch group := group.(type) {
	case *schedulingv1beta1.PodGroup:
		return group.Spec.SchedulingPolicy.Gang.MinCount
	case *unstructured.Unstructured:
		n, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember")
		return int32(n)
	}
	return 0
}

// place lets the schedulers place a pod, and says whether it is placed.
func (w *world) place(pod *corev1.Pod) *corev1.Pod {
	if pod.Spec.NodeName == "" && w.placeable(pod) {
		return w.change(pod, func(pod *corev1.Pod) { pod.Spec.NodeName = "n" })
	}
	return pod
}

// placeable says whether there are as many pods as the group of a pod needs. A
// scheduler that was removed leaves its pods to others, which know no groups.
func (w *world) placeable(pod *corev1.Pod) bool {
	for _, scheduler := range gangs.Schedulers {
		if !scheduler.Joined(w.job.Name, pod) || !w.served[scheduler.Kind()] {
			continue
		}
		group := w.others[groupKey(scheduler.Kind())]
		if group == nil {
			return false
		}
		n := int32(0)
		for _, other := range w.pods {
			if scheduler.Joined(w.job.Name, other) && other.DeletionTimestamp == nil && (scheduler.Counts() || !ended(other)) {
				n++
			}
		}
		return n >= leastOf(group)
	}
	return true
}

// checkGroup holds the number of a pod group to what is wanted: in other words
// than the planner's, all pods that do not wait for others, of elastic workers
// the minimum, or what the job says. Pods that are done may be left out, and so
// may those that were made without the group, while its API was away: nobody
// would ever count them. But one of these that is not placed yet makes up for no
// pod of the group.
func (w *world) checkGroup(group plan.Object) {
	most, least, apart, apartPlaced := int32(0), int32(0), int32(0), int32(0)
	for i := range w.seenJob.Spec.Roles {
		role := &w.seenJob.Spec.Roles[i]
		n := *role.Replicas
		if role.Name == v1.RoleLauncher && mpiOf(w.seenJob).LauncherCreation != v1.LauncherAtStartup {
			continue
		}
		if elastic := w.seenJob.Spec.Elastic; elastic != nil && role.Name == v1.RoleWorker {
			n = ptr.Deref(elastic.Replicas, n)
			least += min(*elastic.MinReplicas, n) - n
		}
		most, least = most+n, least+n
		all, placed := w.apart(role, n, gangs.KindOf(group))
		apart, apartPlaced = apart+all, apartPlaced+placed
	}
	done := w.forgotten()
	for _, pod := range w.seenPods {
		if over(pod) {
			done++
		}
	}
	if given := w.seenJob.Spec.Gang.MinAvailable; given != nil {
		least = min(*given, most)
	}
	if got := leastOf(group); got < 1 || got > max(least, 1) || got < min(least-apartPlaced, most-apart)-done {
		w.fail("the pod group is for %d pods; %d of %d are placed together, %d are done, and %d were made without the group, of which %d are placed",
			got, least, most, done, apart, apartPlaced)
	}
}

// apart counts the pods of a role that live and are of no group of a kind, and
// how many of them are placed.
func (w *world) apart(role *v1.Role, replicas int32, kind schema.GroupVersionKind) (all, placed int32) {
	for name, pod := range w.seenPods {
		index, ok := indexOf(w.seenJob, role, name)
		if !ok || index >= replicas || over(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		if link := w.linkOf(pod); link != nil && link.Kind() == kind {
			continue
		}
		all++
		if pod.Spec.NodeName != "" {
			placed++
		}
	}
	return all, placed
}

// over says whether the main container of a pod has ended.
func over(pod *corev1.Pod) bool {
	return ended(pod) || pods.MainStatus(pod, "").State.Terminated != nil
}

// forgotten is how many pods are done and gone.
func (w *world) forgotten() int32 {
	n := int32(0)
	for i := range w.seenJob.Status.Roles {
		for _, span := range parseIndexes(w.seenJob.Status.Roles[i].CompletedIndexes) {
			n += span[1] - span[0] + 1
		}
	}
	return n
}

// checkLink holds a new pod to its group: there is none without, if a gang
// scheduler that may be meant is there, unless others were made before it came.
func (w *world) checkLink(pod *corev1.Pod) {
	link := w.linkOf(pod)
	if link != nil && w.seenJob.Spec.Gang == nil {
		w.fail("pod %s is of a group that the job does not ask for", pod.Name)
	}
	if w.seenJob.Spec.Gang == nil {
		return
	}
	if link != nil {
		group := w.seenOthers[groupKey(link.Kind())]
		if group == nil || !w.served[link.Kind()] {
			w.fail("pod %s comes before its group", pod.Name)
		} else if !link.Admits(group) {
			w.fail("pod %s comes before its group is admitted", pod.Name)
		}
		return
	}
	for _, other := range w.seenPods {
		there := w.linkOf(other)
		if there == nil && !ended(other) || there != nil && !w.served[there.Kind()] {
			return
		}
	}
	for _, candidate := range gangs.Candidates(w.seenJob.Spec.Gang.Scheduler) {
		if w.served[candidate.Kind()] {
			w.fail("pod %s is of no group although %s is there", pod.Name, candidate.Title())
			return
		}
	}
}

// linkOf returns the scheduler of whose group a pod is, or nil.
func (w *world) linkOf(pod *corev1.Pod) gangs.Scheduler {
	for _, scheduler := range gangs.Schedulers {
		if scheduler.Joined(w.job.Name, pod) {
			return scheduler
		}
	}
	return nil
}

// groups counts the pod groups there are.
func (w *world) groups() int {
	n := 0
	for _, child := range w.others {
		if gangs.IsPodGroup(child) {
			n++
		}
	}
	return n
}
