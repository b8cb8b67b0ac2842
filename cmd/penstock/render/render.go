// Package render gives the children that a workload would have in a cluster
// where all goes well, without one: by the same plan that the reconciler makes,
// looked at pass by pass until nothing more is made.
package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
)

const (
	// maxPasses bounds how many passes are looked at. What is made last waits for
	// pods that are made second: three are enough for every kind there is.
	maxPasses = 8
	// unknownUID stands for the UID that the API server gives an object.
	unknownUID types.UID = "00000000-0000-0000-0000-000000000000"
)

// A Child is an object that a workload would have.
type Child struct {
	*unstructured.Unstructured
	// Generated tells that a part of it, left out here, is made at random.
	Generated bool
}

// Children gives the children of a workload in the order in which they are made.
// hub is the JSON of a v1 object that was admitted; scheme knows the kinds of the
// children that are not optional. Kinds that a cluster may not serve count as
// served. It gives none for a workload that is suspended or that another
// controller manages. Owner references and random names are left out.
func Children[T plan.Object, S any](kind plan.Kind[T, S], scheme *runtime.Scheme, hub []byte, now time.Time) ([]Child, error) {
	object := kind.New()
	if err := json.Unmarshal(hub, object); err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}
	if object.GetUID() == "" {
		object.SetUID(unknownUID)
	}
	if object.GetCreationTimestamp().Time.IsZero() {
		object.SetCreationTimestamp(metav1.NewTime(now))
	}
	if object.GetGeneration() == 0 {
		object.SetGeneration(1)
	}
	kind.Default(object)
	if manager := kind.ManagedBy(object); manager != nil && *manager != "" && *manager != v1.ManagedByPenstock {
		return nil, nil
	}
	cluster := &made{
		scheme: scheme, namespace: object.GetNamespace(), now: now,
		observed: plan.Observed{Served: kindsOf(kind.OwnsIfServed, scheme)},
	}
	for range maxPasses {
		result := kind.Plan(object, cluster.observed, now)
		before := len(cluster.children)
		if err := cluster.addAll(result.Apply, result.Generate, result.Create); err != nil {
			return nil, err
		}
		*kind.Status(object) = result.Status
		if len(cluster.children) == before {
			break
		}
	}
	return cluster.children, nil
}

func kindsOf(objects []plan.Object, scheme *runtime.Scheme) map[schema.GroupVersionKind]bool {
	found := map[schema.GroupVersionKind]bool{}
	for _, object := range objects {
		gvk := object.GetObjectKind().GroupVersionKind()
		if kinds, _, err := scheme.ObjectKinds(object); err == nil {
			gvk = kinds[0]
		}
		found[gvk] = true
	}
	return found
}

// made is what there is of a workload so far.
type made struct {
	scheme    *runtime.Scheme
	namespace string
	now       time.Time
	children  []Child
	observed  plan.Observed
}

// addAll has the children of one pass be there, in the order of the loop.
func (m *made) addAll(applied []runtime.ApplyConfiguration, generated []plan.Generated, created []plan.Object) error {
	for _, child := range applied {
		if err := m.add(child, false); err != nil {
			return err
		}
	}
	for _, child := range generated {
		if err := m.add(child.Child, true); err != nil {
			return err
		}
	}
	for _, child := range created {
		if err := m.add(child, false); err != nil {
			return err
		}
	}
	return nil
}

// add has a child be there, and be well, unless it is there already.
func (m *made) add(from any, generated bool) error {
	fields, err := m.fieldsOf(from)
	if err != nil {
		return err
	}
	child := &unstructured.Unstructured{Object: fields}
	if child.GetNamespace() == "" {
		child.SetNamespace(m.namespace)
	}
	delete(child.Object, "status")
	unstructured.RemoveNestedField(child.Object, "metadata", "creationTimestamp")
	for i, known := range m.children {
		if known.GroupVersionKind() == child.GroupVersionKind() && known.GetName() == child.GetName() {
			// What is applied may say more once its peers are there.
			m.children[i].Unstructured = child
			return nil
		}
	}
	m.children = append(m.children, Child{Unstructured: child, Generated: generated})
	observed, err := m.observe(child.DeepCopy())
	if err != nil {
		return err
	}
	m.observed.Children = append(m.observed.Children, observed)
	slices.SortStableFunc(m.observed.Children, func(a, b plan.Object) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return nil
}

// fieldsOf gives an object or an apply configuration with its kind set.
func (m *made) fieldsOf(from any) (map[string]any, error) {
	if dynamic, ok := from.(plan.Fields); ok {
		return dynamic.DeepCopy().Object, nil
	}
	raw, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("failed to write %T: %w", from, err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("failed to read %T: %w", from, err)
	}
	if object, ok := from.(runtime.Object); ok {
		kinds, _, err := m.scheme.ObjectKinds(object)
		if err != nil {
			return nil, fmt.Errorf("failed to find the kind of %T: %w", from, err)
		}
		fields["apiVersion"], fields["kind"] = kinds[0].GroupVersion().String(), kinds[0].Kind
	}
	return fields, nil
}

// observe gives a child as the reconciler would see it where all goes well.
func (m *made) observe(child *unstructured.Unstructured) (plan.Object, error) {
	child.SetUID(types.UID("of-" + child.GetName()))
	child.SetCreationTimestamp(metav1.NewTime(m.now))
	typed, err := m.scheme.New(child.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		return child, nil
	}
	if err != nil {
		return nil, fmt.Errorf("failed to make a %s: %w", child.GetKind(), err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(child.Object, typed); err != nil {
		return nil, fmt.Errorf("failed to read %s %s: %w", child.GetKind(), child.GetName(), err)
	}
	if pod, ok := typed.(*corev1.Pod); ok {
		run(pod, m.now)
	}
	return typed.(plan.Object), nil
}

// run has a pod run and be ready.
func run(pod *corev1.Pod, now time.Time) {
	start := metav1.NewTime(now)
	pod.Spec.NodeName = "node"
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &start, PodIP: "192.0.2.1"}
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: start,
		})
	}
	started := true
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: start}},
		})
	}
}
