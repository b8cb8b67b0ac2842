// Package plan is the contract between the shared loop and the kinds: what a
// kind registers, what it is shown, and what it answers.
//
// It is step 9 of the flow. A Plan is pure: it reads the object, what was
// observed and the time it is given, and nothing else. So this package, and
// every package that plans, imports no client and no controller-runtime; the
// loop in package reconcilers is alone in talking to the API server.
package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// Object is an API object, a workload or a child of one.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind is all that the loop knows of one workload kind T with status S.
type Kind[T Object, S any] struct {
	// Name of the kind in lower case; it names the controller.
	Name string
	// New returns an empty object.
	New func() T
	// Owns holds an empty object of every child kind, to be watched.
	Owns []Object
	// OwnsIfServed holds one of every child kind that the API server may not
	// know, as others bring it: typed where the scheme has the type, else
	// unstructured with its kind set. Each is watched while it is served, and
	// Observed.Served says which are.
	OwnsIfServed []Object

	// Finalizer keeps an object from going without a plan of its deletion: it is
	// put on an object whose plan says so, by Result.Finalize. Empty where nothing
	// has to be done that the garbage collector does not do.
	Finalizer string

	// Lean drops of an observed child, in place, what Plan never reads of it, so
	// that it is neither held nor copied at each pass. It keeps all that Apply can
	// ask for. Nil keeps everything.
	Lean func(child Object)

	// Default fills in what was left out of an object.
	Default func(object T)
	// Validate returns what makes an object meaningless.
	Validate func(object T) field.ErrorList
	// Plan decides what should be. It must not change its arguments. An object
	// that is being deleted is planned while it has the kind's finalizer; it may be
	// invalid, and its status is not written any more.
	Plan func(object T, observed Observed, now time.Time) Result[S]
	// PlanInvalid is Plan for an object whose spec is not valid: perhaps nobody
	// asked the webhooks, or a newer Penstock is stricter. Nothing can be made from
	// it, and nothing is, but its status tells what is observed, and one that is
	// suspended gives up its pods all the same. Only Delete, Status and RequeueAfter
	// of the result are looked at.
	PlanInvalid func(object T, observed Observed, now time.Time) Result[S]
	// Generators fill in what a plan cannot know, by the name that a Generated
	// child gives.
	Generators map[string]Generator

	// Status returns the status within an object.
	Status func(object T) *S
	// Common returns the fields of a status that every kind has.
	Common func(status *S) Common
	// ManagedBy returns the controller that an object names, or nil.
	ManagedBy func(object T) *string
	// Finished says whether a status is final. A finished object is planned
	// even if its spec has become invalid: nothing is made from it any more,
	// and it must still be cleaned up.
	Finished func(status *S) bool
	// CountsOnly says whether two statuses differ in nothing but counts of
	// pods, so that writing the newer one can wait for more of them.
	CountsOnly func(before, after *S) bool
}

// Generator fills in the random part of a child: a key. It is the one thing
// that a pure Plan cannot do, so Plan only names it; the loop calls it, once,
// right before it creates the child.
type Generator func(child Object) error

// Generated is a child with a part that is made at random, once.
type Generated struct {
	// Child is all that is known of it beforehand.
	Child Object
	// Generator names the one that fills in the rest.
	Generator string
}

// Common points to the fields of a status that every kind has.
type Common struct {
	Conditions         *[]metav1.Condition
	Phase              *v1.Phase
	ObservedGeneration *int64
}

// Observed is what there is: the children whose controller is the object, in
// the order of their names.
type Observed struct {
	Children []Object
	// Served holds the kinds of Kind.OwnsIfServed that the API server knows now.
	Served map[schema.GroupVersionKind]bool
}

// ChildrenOf returns the observed children of type C.
func ChildrenOf[C Object](observed Observed) []C {
	var children []C
	for _, child := range observed.Children {
		if typed, ok := child.(C); ok {
			children = append(children, typed)
		}
	}
	return children
}

// Fields is an apply configuration of a kind that has no Go type.
type Fields struct{ *unstructured.Unstructured }

// IsApplyConfiguration makes it one.
func (Fields) IsApplyConfiguration() {}

// Result is what should be.
type Result[S any] struct {
	// Apply holds the children that should be as they are given here, as typed
	// apply configurations: objects would claim every field that has no value.
	// They are server-side applied when they differ, in this order.
	Apply []runtime.ApplyConfiguration
	// Generate holds children that are to be generated and created, before those
	// of Create, which may need them. Only the ones that were not observed are
	// in it. What was generated is never logged, compared or written again: for
	// a new one the old must be deleted.
	Generate []Generated
	// Create holds the children that should exist and never change: pods. Only
	// the ones that were not observed are in it.
	Create []Object
	// Leading is how many of Create, from the first, the others are of no use
	// without: while one of them cannot be made, the others are not tried, so that
	// under a quota the room goes to it.
	Leading int
	// Delete holds the children that should go. They go after the status was
	// written, so that what the status counts of them is never lost.
	Delete []Deletion
	// Finalize says that the object must not go without a plan of its deletion,
	// or, while it is being deleted, that there is still something to do. Only
	// while there is, the status of such an object is written.
	Finalize bool
	// Confirm says that what was decided is final and rests on what has not
	// happened: that pods have not ended in time. A cache may not show yet that
	// they have, so it is decided once more, by what the API server has.
	Confirm bool
	// DeleteSelf says that the object itself should go.
	DeleteSelf bool
	// Status is what the status should be.
	Status S
	// RequeueAfter is when to plan again if nothing happens before; 0 means
	// that only an event can change the plan.
	RequeueAfter time.Duration
	// Events tell people what was decided, after the status was written.
	Events []Event
}

// Deletion asks that one child goes.
type Deletion struct {
	// Child is the object as it was observed.
	Child Object
	// Reason says why, for the log.
	Reason string
}

// UID returns the UID without which the deletion must not happen.
func (d Deletion) UID() types.UID { return d.Child.GetUID() }

// Event is something to tell people about an object.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason in the past tense: PodsCreated.
	Reason string
	// Action that the controller took: CreatePods.
	Action string
	// Message for people.
	Message string
	// Related is what else the event is about; nil for nothing. Events that differ
	// in it are not folded into one.
	Related Object
}

// Sooner returns the earlier of two delays, in which 0 means never.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
