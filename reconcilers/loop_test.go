package reconcilers

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/training"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// bench is the loop in front of a fake API server, whose cache is never behind.
type bench struct {
	*testing.T
	client   client.WithWatch
	loop     *loop[*v1.TrainingJob, v1.TrainingJobStatus]
	recorder *events.FakeRecorder
	clock    *clocktesting.FakePassiveClock
	// writes are the calls that change something. Children are created several
	// at once.
	mu     sync.Mutex
	writes []string
	// onWrite, if set, is called on each of them with its context.
	onWrite func(context.Context) error
	// refuse is what creating a pod returns.
	refuse error
	// invalid makes every spec so.
	invalid bool
	// behind makes the cache show no pods; outdated is the job it shows.
	behind   bool
	outdated *v1.TrainingJob
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{T: t, recorder: events.NewFakeRecorder(100), clock: clocktesting.NewFakePassiveClock(fixtures.Start)}
	kind := training.Kind(func(*v1.TrainingJob) {}, func(job *v1.TrainingJob) field.ErrorList {
		if len(job.Spec.Roles) == 0 || b.invalid {
			return field.ErrorList{field.Required(field.NewPath("spec", "roles"), "name at least one role")}
		}
		return nil
	})
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1.TrainingJob{}).WithObjects(objects...)
	for _, child := range append(kind.Owns, &schedulingv1beta1.PodGroup{}) {
		builder = builder.WithIndex(child, ownerIndex(kind.Name), ownerUID(v1.TrainingJobKind))
	}
	b.client = builder.WithInterceptorFuncs(b.watchWrites()).Build()
	b.loop = newLoop(kind, b.client, b.client, Options{Clock: b.clock})
	b.loop.recorder = b.recorder
	return b
}

func (b *bench) watchWrites() interceptor.Funcs {
	return interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*corev1.PodList); ok && b.behind {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if job, ok := o.(*v1.TrainingJob); ok && b.outdated != nil {
				b.outdated.DeepCopyInto(job)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if b.refuse != nil {
				return b.refuse
			}
			o.SetUID(fixtures.Pod(o.GetName()).UID)
			if err := b.wrote(ctx, "create"); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := b.wrote(ctx, "delete"); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if err := b.wrote(ctx, "apply"); err != nil {
				return err
			}
			return c.Apply(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := b.wrote(ctx, "patch"); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := b.wrote(ctx, "status"); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

func (b *bench) wrote(ctx context.Context, verb string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes = append(b.writes, verb)
	if b.onWrite != nil {
		return b.onWrite(ctx)
	}
	return nil
}

// reconcile runs one pass for job a and returns what it asks for and wrote.
func (b *bench) reconcile() (ctrl.Result, []string) {
	b.Helper()
	b.writes = nil
	result, err := b.loop.Reconcile(b.Context(), ctrl.Request{NamespacedName: key("a")})
	if err != nil {
		b.Fatal(err)
	}
	return result, b.writes
}

func (b *bench) job() *v1.TrainingJob {
	b.Helper()
	job := &v1.TrainingJob{}
	if err := b.client.Get(b.Context(), key("a"), job); err != nil {
		b.Fatal(err)
	}
	return job
}

func (b *bench) condition(kind string) metav1.Condition {
	b.Helper()
	return ptr.Deref(meta.FindStatusCondition(b.job().Status.Conditions, kind), metav1.Condition{})
}

func (b *bench) pods() []string {
	b.Helper()
	list := &corev1.PodList{}
	if err := b.client.List(b.Context(), list); err != nil {
		b.Fatal(err)
	}
	names := []string{}
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names
}

// setPod changes the status of a pod.
func (b *bench) setPod(name string, mods ...fixtures.PodMod) {
	b.Helper()
	pod := &corev1.Pod{}
	if err := b.client.Get(b.Context(), key(name), pod); err != nil {
		b.Fatal(err)
	}
	for _, mod := range mods {
		mod(pod)
	}
	if err := b.client.Status().Update(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) deletePod(name string) {
	b.Helper()
	if err := b.client.Delete(b.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fixtures.Namespace, Name: name}}); err != nil {
		b.Fatal(err)
	}
}

func key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: fixtures.Namespace, Name: name}
}

func TestLoopRunsAJob(t *testing.T) {
	b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(1), fixtures.TTL(60), fixtures.CleanPods(v1.CleanPodAll)))
	steps := []struct {
		name       string
		before     func()
		wantWrites []string
		wantPhase  v1.Phase
		wantAfter  time.Duration
	}{
		{"creates the children", func() {}, []string{"apply", "create", "status"}, v1.PhaseCreating, 5 * time.Minute},
		{"writes nothing in steady state", func() {}, nil, v1.PhaseCreating, 5 * time.Minute},
		{"tells that the job runs", func() { b.setPod("a-worker-0", fixtures.Running()) }, []string{"status"}, v1.PhaseRunning, 5 * time.Minute},
		{"finishes, then cleans up", func() { b.setPod("a-worker-0", fixtures.Succeeded()) }, []string{"status", "delete", "delete"}, v1.PhaseSucceeded, time.Minute},
		{"rests", func() {}, nil, v1.PhaseSucceeded, time.Minute},
	}
	for _, step := range steps {
		step.before()
		result, writes := b.reconcile()
		got := []any{writes, b.job().Status.Phase, result.RequeueAfter}
		if diff := cmp.Diff([]any{step.wantWrites, step.wantPhase, step.wantAfter}, got); diff != "" {
			t.Errorf("%s: writes, phase, requeue mismatch (-want +got):\n%s", step.name, diff)
		}
	}
	b.clock.SetTime(fixtures.Start.Add(time.Minute))
	b.reconcile()
	if err := b.client.Get(t.Context(), key("a"), &v1.TrainingJob{}); !apierrors.IsNotFound(err) {
		t.Errorf("the job outlived its time to live: %v", err)
	}
}

func TestLoopOwnsChildren(t *testing.T) {
	b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(1)))
	b.reconcile()
	for _, child := range []client.Object{&corev1.Pod{}, &corev1.Service{}} {
		if err := b.client.Get(t.Context(), key("a-worker-0"), child); err != nil {
			t.Fatal(err)
		}
		owner := metav1.GetControllerOf(child)
		if owner == nil || owner.UID != "a-uid" || !ptr.Deref(owner.BlockOwnerDeletion, false) || child.GetLabels()[v1.ManagedByLabel] != v1.ManagedByValue {
			t.Errorf("%T: owner %+v, labels %v", child, owner, child.GetLabels())
		}
	}
}

func TestLoopHealsDrift(t *testing.T) {
	b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(1)))
	b.reconcile()
	service := &corev1.Service{}
	if err := b.client.Get(t.Context(), key("a-worker-0"), service); err != nil {
		t.Fatal(err)
	}
	service.Spec.Selector[v1.IndexLabel] = "7"
	if err := b.client.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	if _, writes := b.reconcile(); !cmp.Equal(writes, []string{"apply"}) {
		t.Errorf("writes %v", writes)
	}
	if err := b.client.Get(t.Context(), key("a-worker-0"), service); err != nil || service.Spec.Selector[v1.IndexLabel] != "0" {
		t.Errorf("selector %v, err %v", service.Spec.Selector, err)
	}
}

func TestLoopCountsBeforeItDeletes(t *testing.T) {
	b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(1), fixtures.Restart(v1.RestartExitCode)))
	b.reconcile()
	b.setPod("a-worker-0", fixtures.Failed(137))
	if _, writes := b.reconcile(); !cmp.Equal(writes, []string{"status", "delete"}) {
		t.Errorf("writes %v, want the status first", writes)
	}
	if got := ptr.Deref(b.job().Status.Restarts, 0); got != 1 {
		t.Errorf("restarts = %d", got)
	}
}

// A manager that is told to stop cancels what is under way; a deletion that the
// API server gives up half-way would leave a pod that nobody finishes.
func TestLoopFinishesItsWritesWhenStopped(t *testing.T) {
	b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(1), fixtures.Restart(v1.RestartExitCode)))
	b.reconcile()
	b.setPod("a-worker-0", fixtures.Failed(137))
	ctx, stop := context.WithCancel(t.Context())
	b.onWrite = func(during context.Context) error {
		stop()
		return during.Err()
	}
	if _, err := b.loop.Reconcile(ctx, ctrl.Request{NamespacedName: key("a")}); err != nil {
		t.Fatal(err)
	}
	if got := b.pods(); len(got) != 0 {
		t.Errorf("pods %v are left", got)
	}
}

func TestLoopLeavesOthersPodsAlone(t *testing.T) {
	other := fixtures.Pod("a-worker-0")
	b := newBench(t, fixtures.TrainingJob("a"), other)
	result, _ := b.reconcile()
	c := b.condition(v1.InvalidCondition)
	if c.Status != metav1.ConditionTrue || c.Reason != v1.ChildNotOwnedReason || !strings.Contains(c.Message, "Pod a-worker-0") {
		t.Errorf("condition %+v", c)
	}
	if result.RequeueAfter != notOwnedRetry {
		t.Errorf("requeue after %v", result.RequeueAfter)
	}
	if err := b.client.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	b.reconcile()
	if c := b.condition(v1.InvalidCondition); c.Status != metav1.ConditionFalse {
		t.Errorf("condition when the name is free: %+v", c)
	}
	if diff := cmp.Diff([]string{"a-worker-0", "a-worker-1"}, b.pods()); diff != "" {
		t.Errorf("pods mismatch (-want +got):\n%s", diff)
	}
}

func TestLoopLeavesOthersServicesAlone(t *testing.T) {
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a-worker-0", Namespace: fixtures.Namespace}}
	b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(1)), other)
	if _, writes := b.reconcile(); cmp.Equal(writes, []string{"apply", "create", "status"}) {
		t.Errorf("writes %v", writes)
	}
	if c := b.condition(v1.InvalidCondition); c.Reason != v1.ChildNotOwnedReason || !strings.Contains(c.Message, "Service a-worker-0") {
		t.Errorf("condition %+v", c)
	}
}

func TestLoopRefusesInvalidObjects(t *testing.T) {
	b := newBench(t, fixtures.TrainingJob("a", func(job *v1.TrainingJob) { job.Spec.Roles = nil }))
	for range 2 {
		b.reconcile()
	}
	c := b.condition(v1.InvalidCondition)
	if c.Status != metav1.ConditionTrue || c.Message != "spec.roles: Required value: name at least one role" {
		t.Errorf("condition %+v", c)
	}
	if _, writes := b.reconcile(); writes != nil || len(b.pods()) > 0 {
		t.Errorf("writes %v, pods %v", writes, b.pods())
	}
}

// TestLoopTellsOfInvalidObjects: of a job that ran and whose spec has become
// invalid nothing is made, and its status stays true.
func TestLoopTellsOfInvalidObjects(t *testing.T) {
	type told struct {
		Phase               v1.Phase
		Running, RolesReady string
		Pods                []string
	}
	b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(2)))
	edit := func(mod func(*v1.TrainingJob)) {
		job := b.job()
		mod(job)
		if err := b.client.Update(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	steps := []struct {
		name   string
		before func()
		want   told
	}{
		{"runs", func() {
			b.reconcile()
			b.setPod("a-worker-0", fixtures.Running())
			b.setPod("a-worker-1", fixtures.Running())
		}, told{v1.PhaseRunning, "True", "2/2", []string{"a-worker-0", "a-worker-1"}}},
		{"becomes invalid", func() { b.invalid = true }, told{v1.PhaseRunning, "True", "2/2", []string{"a-worker-0", "a-worker-1"}}},
		{"loses a pod", func() { b.deletePod("a-worker-0") }, told{v1.PhaseRunning, "True", "1/2", []string{"a-worker-1"}}},
		{"loses all", func() { b.deletePod("a-worker-1") }, told{v1.PhasePending, "False", "0/2", []string{}}},
		{"is mended", func() { b.invalid = false }, told{v1.PhaseCreating, "False", "0/2", []string{"a-worker-0", "a-worker-1"}}},
		{"is suspended while it is invalid", func() {
			b.invalid = true
			edit(func(job *v1.TrainingJob) { job.Spec.RunPolicy = &v1.RunPolicy{Suspend: new(true)} })
		}, told{v1.PhaseSuspended, "False", "0/2", []string{}}},
		{"waits to be mended", func() { edit(func(job *v1.TrainingJob) { job.Spec.RunPolicy = nil }) }, told{v1.PhaseSuspended, "False", "0/2", []string{}}},
		{"starts again", func() { b.invalid = false }, told{v1.PhaseCreating, "False", "0/2", []string{"a-worker-0", "a-worker-1"}}},
	}
	for _, step := range steps {
		step.before()
		for range 3 {
			b.reconcile()
			b.clock.SetTime(b.clock.Now().Add(2 * time.Second))
		}
		job := b.job()
		got := told{job.Status.Phase, string(b.condition(v1.TrainingJobRunningCondition).Status), job.Status.RolesReady, b.pods()}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if told := b.condition(v1.InvalidCondition).Status == metav1.ConditionTrue; told != b.invalid {
			t.Errorf("%s: condition Invalid is %v", step.name, told)
		}
	}
}

func TestLoopTellsWhatTheServerRejects(t *testing.T) {
	tests := map[string]struct {
		refusal   error
		wantError bool
		want      string
	}{
		"an invalid pod becomes a condition": {
			refusal: apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a-worker-0", field.ErrorList{field.Invalid(field.NewPath("spec"), "x", "no")}),
			want:    v1.ChildRejectedReason,
		},
		"what a quota forbids becomes a condition": {
			refusal: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a-worker-0", errors.New("exceeded quota")),
			want:    v1.ChildForbiddenReason,
		},
		"a lost server backs off": {refusal: apierrors.NewServiceUnavailable("gone"), wantError: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fixtures.TrainingJob("a"))
			b.refuse = tc.refusal
			_, err := b.loop.Reconcile(t.Context(), ctrl.Request{NamespacedName: key("a")})
			if (err != nil) != tc.wantError || b.condition(v1.InvalidCondition).Reason != tc.want {
				t.Errorf("err %v, condition %+v", err, b.condition(v1.InvalidCondition))
			}
		})
	}
}

// What there is goes on while something cannot be made, whatever the reason.
func TestLoopGoesOnWithoutWhatItCannotMake(t *testing.T) {
	for name, refusal := range map[string]error{
		"forbidden": apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a-worker-1", errors.New("exceeded quota")),
		"failing":   apierrors.NewInternalError(errors.New("a webhook does not answer")),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(2), fixtures.Deadline(60), fixtures.CleanPods(v1.CleanPodAll)))
			b.reconcile()
			b.reconcile() // It sees what it made.
			b.setPod("a-worker-0", fixtures.Running())
			b.refuse = refusal
			if err := b.client.Delete(t.Context(), fixtures.Pod("a-worker-1")); err != nil {
				t.Fatal(err)
			}
			once := func() { _, _ = b.loop.Reconcile(t.Context(), ctrl.Request{NamespacedName: key("a")}) }
			once()
			if job := b.job(); job.Status.Phase != v1.PhaseRunning || ptr.Deref(job.Status.Roles[0].Active, 0) != 1 {
				t.Errorf("status %+v", job.Status)
			}
			b.clock.SetTime(fixtures.Start.Add(61 * time.Second))
			once()
			if job := b.job(); job.Status.Phase != v1.PhaseFailed {
				t.Errorf("phase %s after the deadline", job.Status.Phase)
			}
			if pods := b.pods(); len(pods) != 0 {
				t.Errorf("pods %v are left", pods)
			}
		})
	}
}

func TestLoopHandsOver(t *testing.T) {
	b := newBench(t, fixtures.TrainingJob("a", fixtures.ManagedBy("kueue.x-k8s.io/multikueue")))
	for range 3 {
		if _, writes := b.reconcile(); writes != nil {
			t.Errorf("writes %v", writes)
		}
	}
	if got := len(b.recorder.Events); got != 1 {
		t.Errorf("%d events, want one", got)
	}
}

func TestLoopCoalescesCounts(t *testing.T) {
	b := newBench(t, fixtures.TrainingJob("a", fixtures.Master(), fixtures.Workers(2)))
	b.reconcile()
	type pass struct {
		Writes []string
		After  time.Duration
		Ready  string
	}
	for _, step := range []struct {
		at   time.Duration
		pod  string
		want pass
	}{
		{0, "a-worker-0", pass{nil, time.Second, "0/3"}},
		// The job runs: that is told at once, with the counts so far.
		{400 * time.Millisecond, "a-master-0", pass{[]string{"status"}, 5 * time.Minute, "2/3"}},
		{700 * time.Millisecond, "a-worker-1", pass{nil, time.Second, "2/3"}},
		{1200 * time.Millisecond, "", pass{nil, 500 * time.Millisecond, "2/3"}},
		{1700 * time.Millisecond, "", pass{[]string{"status"}, 5 * time.Minute, "3/3"}},
	} {
		b.clock.SetTime(fixtures.Start.Add(step.at))
		if step.pod != "" {
			b.setPod(step.pod, fixtures.Running())
		}
		result, writes := b.reconcile()
		if diff := cmp.Diff(step.want, pass{writes, result.RequeueAfter, b.job().Status.RolesReady}); diff != "" {
			t.Errorf("at %v (-want +got):\n%s", step.at, diff)
		}
	}
}

// TestFinalDecisionsAreConfirmed: a deadline fires by the clock, also while the
// cache does not show yet that the pods have ended in time.
func TestFinalDecisionsAreConfirmed(t *testing.T) {
	b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(1), fixtures.Deadline(60)))
	b.reconcile()
	pod := &corev1.Pod{}
	if err := b.client.Get(t.Context(), key("a-worker-0"), pod); err != nil {
		t.Fatal(err)
	}
	fixtures.Succeeded()(pod)
	if err := b.client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	// The loop's cache is empty, the API server is asked through another client.
	stale := interceptor.NewClient(b.client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := c.List(ctx, list, opts...); err != nil {
				return err
			}
			if pods, ok := list.(*corev1.PodList); ok {
				for i := range pods.Items {
					fixtures.Running()(&pods.Items[i])
				}
			}
			return nil
		},
	})
	b.loop.client = stale
	b.clock.SetTime(fixtures.Start.Add(70 * time.Second))
	if _, err := b.loop.Reconcile(t.Context(), ctrl.Request{NamespacedName: key("a")}); err != nil {
		t.Fatal(err)
	}
	if job := b.job(); job.Status.Phase != v1.PhaseSucceeded {
		t.Errorf("phase %s, want that of what the pods did", job.Status.Phase)
	}
}
