package controller

import (
	"context"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
)

const (
	// previewBudget is how long a preview may take in all.
	previewBudget = time.Second
	// previewPage is how many objects are read at once.
	previewPage = 250
	// previewNamespaces is how many namespaces are read one by one; where a policy
	// selects more, one list of all costs less.
	previewNamespaces = 16
	// previewsAtOnce bounds what applying many policies costs the process.
	previewsAtOnce = 2
)

// Preview tells the author of a policy what it would mean for the objects that
// are stored. It changes nothing.
type Preview struct {
	// Live reads pages of objects from the API server, Cached the namespaces;
	// Reviews creates SubjectAccessReviews.
	Live    client.Reader
	Cached  client.Reader
	Reviews client.Client
	Mapper  stored.KindMapper
	Judge   *stored.Judge
	// Engine has the inventory that policies read.
	Engine *policies.Engine
	// Deadline is how long the policy may take for one object.
	Deadline time.Duration

	slots chan struct{}
}

// NewPreview returns a preview.
func NewPreview(preview Preview) *Preview {
	preview.slots = make(chan struct{}, previewsAtOnce)
	return &preview
}

// Warnings gives the lines to show to the author of a policy that compiles:
// how many stored objects it would refuse, and some of them by name. For an edit,
// old is the policy as it is stored and only objects that come off worse count.
func (p *Preview) Warnings(ctx context.Context, author authenticationv1.UserInfo, old, policy *v1.WorkloadPolicy) []string {
	if old != nil && !stored.JudgesOtherwise(&old.Spec, &policy.Spec) {
		return nil
	}
	if !stored.JudgedBy(&policy.Spec) && (old == nil || !stored.JudgedBy(&old.Spec)) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, previewBudget)
	defer cancel()
	t := newTally(old != nil)
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return []string{"preview: not made, as others are under way: apply with --dry-run=server to see it"}
	}
	run := &previewRun{Preview: p, tally: t, access: newAccess(p.Reviews, author), entry: policies.EntryOf(&policy.Spec), selects: selects(&policy.Spec)}
	if err := run.compile(old, policy); err != nil {
		return nil
	}
	t.leaving = leaving(&policy.Spec)
	run.judgeAll(ctx, old, policy)
	return t.warnings()
}

func selects(spec *v1.WorkloadPolicySpec) bool {
	match := &spec.Match
	return match.NamespaceSelector != nil || match.ObjectSelector != nil || match.Exclude != nil || len(spec.Exceptions) > 0
}

// leaving names the fields by which a policy leaves objects out.
func leaving(spec *v1.WorkloadPolicySpec) []string {
	var names []string
	add := func(name string, is bool) {
		if is {
			names = append(names, name)
		}
	}
	add("match.namespaceSelector", spec.Match.NamespaceSelector != nil)
	add("match.objectSelector", spec.Match.ObjectSelector != nil)
	add("match.exclude", spec.Match.Exclude != nil)
	add("matchConditions", len(spec.MatchConditions) > 0)
	add("exceptions", len(spec.Exceptions) > 0)
	return names
}

// previewRun is the work of one preview.
type previewRun struct {
	*Preview
	tally *tally
	now   *policies.Snapshot
	// before is nil where there is no older policy.
	before *policies.Snapshot
	access *access
	// selects tells that something of the policy picks objects by what they are
	// called or labelled, where a slip leaves out all of them. Match conditions do not
	// count: those of policies on pods are there to leave out most.
	selects bool
	// entry and kinds are those of the policy.
	entry policies.Entry
	kinds []stored.Kind
}

func (r *previewRun) compile(old, policy *v1.WorkloadPolicy) error {
	alone := func(policy *v1.WorkloadPolicy) (*policies.Snapshot, error) {
		return r.Engine.Alone(policy, policies.Options{Deadline: r.Deadline, Concurrency: 1})
	}
	var err error
	if r.now, err = alone(policy); err != nil || old == nil {
		return err
	}
	// A stored policy that does not compile refuses nothing that counts here.
	if before, err := alone(old); err == nil {
		r.before = before
	}
	return nil
}

// page is some objects of a kind, of one namespace or of all (""), and where to
// read on.
type page struct {
	of        stored.Kind
	namespace string
	list      *unstructured.UnstructuredList
}

// judgeAll reads the first page of every kind, which tells how many objects
// there are, and judges page after page until time is up. What only the old
// policy judges is looked at too: not to be judged any more is a change.
func (r *previewRun) judgeAll(ctx context.Context, old, policy *v1.WorkloadPolicy) {
	kinds, unseen, err := stored.Kinds(&policy.Spec, r.Mapper)
	if err != nil {
		r.tally.unseen = append(r.tally.unseen, stored.UnseenKind{Kind: "all kinds", Reason: err.Error()})
		return
	}
	r.tally.unseen = unseen
	r.lacks(ctx, &policy.Spec)
	judged := len(kinds)
	r.kinds = slices.Clone(kinds)
	if r.before != nil && stored.JudgedBy(&old.Spec) {
		// What is not known of these is known of no kind of the policy.
		before, _, _ := stored.Kinds(&old.Spec, r.Mapper)
		kinds = append(kinds, slices.DeleteFunc(before, func(kind stored.Kind) bool { return slices.Contains(kinds, kind) })...)
	}
	selected := r.selected(ctx, old, policy)
	var pages []page
	for i, kind := range kinds {
		within := []string{metav1.NamespaceAll}
		if kind.Namespaced && selected != nil {
			within = selected
		}
		for _, namespace := range within {
			first, err := r.read(ctx, kind, namespace, "")
			if err != nil {
				if i < judged {
					r.unread(ctx, kind, err)
				}
				break
			}
			r.tally.total += len(first.list.Items)
			if remaining := first.list.GetRemainingItemCount(); remaining != nil {
				r.tally.total += int(*remaining)
			}
			pages = append(pages, first)
		}
	}
	for _, one := range pages {
		r.judgePages(ctx, one)
	}
}

// selected lists the namespaces that the policies select, so that what is stored
// in all others does not use up the time of a policy for a few. It is nil where
// all are to be read: they select many, or none, which is told of all objects.
func (r *previewRun) selected(ctx context.Context, policies ...*v1.WorkloadPolicy) []string {
	var names []string
	for _, policy := range policies {
		if policy == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(policy.Spec.Match.NamespaceSelector)
		if err != nil || policy.Spec.Match.NamespaceSelector == nil || selector.Empty() {
			return nil
		}
		var namespaces corev1.NamespaceList
		if err := r.Cached.List(ctx, &namespaces, client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
			return nil
		}
		for i := range namespaces.Items {
			names = append(names, namespaces.Items[i].Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > previewNamespaces {
		return nil
	}
	return names
}

// lacks notes which kinds of the inventory are not served, or may not be read: nobody looked for those
// that no policy in force reads.
func (r *previewRun) lacks(ctx context.Context, spec *v1.WorkloadPolicySpec) {
	for _, named := range spec.Inventory {
		kind := schema.FromAPIVersionAndKind(named.APIVersion, named.Kind)
		_, err := r.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case meta.IsNoMatchError(err):
			r.Engine.Inventory().Lack(kind, notServed)
		case err != nil:
		case r.forbidden(ctx, kind):
			r.Engine.Inventory().Lack(kind, forbiddenInventory)
			r.tally.unread = append(r.tally.unread, kind.Kind)
		default:
			r.Engine.Inventory().Lack(kind, "")
		}
	}
}

// forbidden reports whether Penstock may not list a kind.
func (r *previewRun) forbidden(ctx context.Context, kind schema.GroupVersionKind) bool {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return apierrors.IsForbidden(r.Live.List(ctx, list, client.Limit(1)))
}

// unread notes a kind that could not be read.
func (r *previewRun) unread(ctx context.Context, kind stored.Kind, err error) {
	why := err.Error()
	switch {
	case ctx.Err() != nil:
		r.tally.late, r.tally.vague = true, true
		return
	case apierrors.IsForbidden(err):
		why = "Penstock may not list them; a ClusterRole labelled " + stored.AggregationLabel + " grants it that"
	}
	r.tally.unseen = append(r.tally.unseen, stored.UnseenKind{Kind: kind.GroupVersionKind.GroupKind().String(), Reason: why})
}

func (r *previewRun) read(ctx context.Context, kind stored.Kind, namespace, after string) (page, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersionKind.GroupVersion().WithKind(kind.GroupVersionKind.Kind + "List"))
	err := r.Live.List(ctx, list, client.InNamespace(namespace), client.Limit(previewPage), client.Continue(after))
	return page{kind, namespace, list}, err
}

func (r *previewRun) judgePages(ctx context.Context, at page) {
	for {
		for i := range at.list.Items {
			if ctx.Err() != nil {
				r.tally.late = true
				return
			}
			r.judge(ctx, at.of, &at.list.Items[i])
		}
		after := at.list.GetContinue()
		if after == "" {
			return
		}
		next, err := r.read(ctx, at.of, at.namespace, after)
		if err != nil {
			// A page that expired means that time is up as well: there are more.
			r.tally.late = true
			return
		}
		at = next
	}
}

func (r *previewRun) judge(ctx context.Context, kind stored.Kind, object *unstructured.Unstructured) {
	// A list leaves the kind out of some of its items.
	object.SetGroupVersionKind(kind.GroupVersionKind)
	if r.selects && r.isOpen(kind, object) {
		r.tally.open++
	}
	now := r.Judge.Judge(ctx, r.now, nil, kind.Resource, object)
	var before outcome
	if r.before != nil {
		before = outcomeOf(r.Judge.Judge(ctx, r.before, nil, kind.Resource, object))
	}
	if ctx.Err() != nil {
		// What was cut is not what the policy says.
		return
	}
	found := outcomeOf(now)
	if !r.tally.add(found, before) || !r.tally.wants(found.action()) {
		return
	}
	if !r.mayName(ctx, kind, object.GetNamespace()) {
		r.tally.unnamed++
		return
	}
	r.tally.name(named{kind.GroupVersionKind.GroupKind(), object.GetNamespace(), object.GetName(), found.violations[0]})
}

// isOpen reports whether nothing but the policy itself can keep an object from being
// asked about.
func (r *previewRun) isOpen(kind stored.Kind, object *unstructured.Unstructured) bool {
	return object.GetDeletionTimestamp() == nil && slices.Contains(r.kinds, kind) &&
		r.Judge.Reach.Bars(r.entry, kind.Resource.GroupResource(), object.GetNamespace()) == ""
}

// mayName reports whether the author may list the kind where the object is.
func (r *previewRun) mayName(ctx context.Context, kind stored.Kind, namespace string) bool {
	for _, where := range []string{"", namespace} {
		// An author of whom nothing is known is told nothing.
		if may, err := r.access.mayList(ctx, kind.Resource.GroupResource(), where); err == nil && may {
			return true
		}
	}
	return false
}
