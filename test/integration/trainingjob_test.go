package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/config/crd"
	"github.com/penstock-dev/penstock/reconcilers"
	"github.com/penstock-dev/penstock/reconcilers/training"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/fixtures"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// trainingEnv is a cluster with the reconciler of training jobs, and no
// webhooks: what is stored is what a test stores.
type trainingEnv struct {
	client.Client
	writes writes
}

// TestTrainingJobs runs jobs on simulated nodes.
func TestTrainingJobs(t *testing.T) {
	env := startTraining(t)
	for name, test := range map[string]func(*testing.T, *trainingEnv){
		"a job runs to its end and then rests":        testRunsToEnd,
		"a plain job costs few writes":                testWrites,
		"out of memory stops at the backoff limit":    testBackoffLimit,
		"restarts in place stop at the backoff limit": testRestartsInPlace,
		"a quiet job fails at its deadline":           testDeadline,
		"a suspended job loses its pods and resumes":  testSuspend,
		"every kind of child comes back":              testChildrenComeBack,
		"an evicted pod is replaced free of charge":   testEviction,
		"scaling goes through the scale subresource":  testScale,
		"a name that is taken becomes a condition":    testNameTaken,
		"an invalid stored job gets no pods":          testInvalid,
		"a finished job goes when its time is over":   testTimeToLive,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, env)
		})
	}
}

func startTraining(t *testing.T) *trainingEnv {
	t.Helper()
	c := cluster.ForTest(t, cluster.Options{Components: cluster.Full, Nodes: []cluster.Node{{Name: "gpu-1"}, {Name: "gpu-2"}}})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	env := &trainingEnv{}
	var err error
	if env.Client, err = client.New(c.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	installCRDs(t, env)
	if err := env.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixtures.Namespace}}); err != nil {
		t.Fatal(err)
	}

	kind := training.Kind(defaulting.DefaultTrainingJob, func(job *v1.TrainingJob) field.ErrorList {
		return validation.ValidateTrainingJob(nil, job)
	})
	mgr, err := ctrl.NewManager(c.Config, ctrl.Options{
		Scheme:    scheme,
		NewClient: env.writes.newClient,
		Metrics:   metricsserver.Options{BindAddress: "0"},
		// One process may run the test more than once.
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{ByObject: reconcilers.CacheOptions(kind.Lean, kind.Owns...)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := reconcilers.Setup(mgr, kind, reconcilers.Options{MaxConcurrentReconciles: 4}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
	return env
}

// installCRDs installs the CRDs without conversion: nobody serves it here.
func installCRDs(t *testing.T, env *trainingEnv) {
	t.Helper()
	crds, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range crds {
		definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		if err := env.Create(t.Context(), definition); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the CRDs are served", func(ctx context.Context) error {
		return env.List(ctx, &v1.TrainingJobList{})
	})
}

// until waits until a check passes.
func until(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waited in vain until %s: %v", what, last)
	}
}

// untilJob waits until a job is as a check wants it, and returns it.
func (e *trainingEnv) untilJob(t *testing.T, name, what string, check func(*v1.TrainingJob) bool) *v1.TrainingJob {
	t.Helper()
	job := &v1.TrainingJob{}
	until(t, "job "+name+" "+what, func(ctx context.Context) error {
		if err := e.Get(ctx, key(name), job); err != nil {
			return err
		}
		if !check(job) {
			return fmt.Errorf("its status is %+v", job.Status)
		}
		return nil
	})
	return job
}

func (e *trainingEnv) untilPhase(t *testing.T, name string, phase v1.Phase) *v1.TrainingJob {
	t.Helper()
	return e.untilJob(t, name, "is "+string(phase), func(job *v1.TrainingJob) bool { return job.Status.Phase == phase })
}

func (e *trainingEnv) create(t *testing.T, object client.Object) {
	t.Helper()
	object.SetUID("")
	object.SetGeneration(0)
	if err := e.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// edit changes a job as a user would.
func (e *trainingEnv) edit(t *testing.T, name string, mod fixtures.JobMod) {
	t.Helper()
	job := &v1.TrainingJob{}
	if err := e.Get(t.Context(), key(name), job); err != nil {
		t.Fatal(err)
	}
	before := job.DeepCopy()
	mod(job)
	if err := e.Patch(t.Context(), job, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// children returns how many pods and services of a job there are.
func (e *trainingEnv) children(ctx context.Context, name string) (pods, services int, err error) {
	mine := client.MatchingLabels{v1.JobNameLabel: name}
	podList, serviceList := &corev1.PodList{}, &corev1.ServiceList{}
	if err := e.List(ctx, podList, mine, client.InNamespace(fixtures.Namespace)); err != nil {
		return 0, 0, err
	}
	err = e.List(ctx, serviceList, mine, client.InNamespace(fixtures.Namespace))
	return len(podList.Items), len(serviceList.Items), err
}

func (e *trainingEnv) untilChildren(t *testing.T, name string, wantPods, wantServices int) {
	t.Helper()
	until(t, fmt.Sprintf("job %s has %d pods and %d services", name, wantPods, wantServices), func(ctx context.Context) error {
		pods, services, err := e.children(ctx, name)
		if err == nil && (pods != wantPods || services != wantServices) {
			err = fmt.Errorf("it has %d pods and %d services", pods, services)
		}
		return err
	})
}

func key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: fixtures.Namespace, Name: name}
}

// simulate makes pods behave as the annotations of package cluster say.
func simulate(annotations map[string]string) fixtures.JobMod {
	return fixtures.Template(func(template *corev1.PodTemplateSpec) { template.Annotations = annotations })
}

var forever = simulate(map[string]string{cluster.SimulateRunSeconds: "forever"})

// exits makes every container run a second and exit with a code.
func exits(code string) fixtures.JobMod {
	return simulate(map[string]string{cluster.SimulateRunSeconds: "1", cluster.SimulateExitCode: code})
}

func failedFor(job *v1.TrainingJob) string {
	return ptr.Deref(meta.FindStatusCondition(job.Status.Conditions, v1.TrainingJobFailedCondition), metav1.Condition{}).Reason
}

func testRunsToEnd(t *testing.T, env *trainingEnv) {
	env.create(t, fixtures.TrainingJob("plain", fixtures.Master(), exits("0"), fixtures.CleanPods(v1.CleanPodRunning)))
	job := env.untilPhase(t, "plain", v1.PhaseSucceeded)
	if job.Status.CompletionTime == nil || ptr.Deref(job.Status.Restarts, -1) != 0 {
		t.Errorf("status %+v", job.Status)
	}
	// Nothing is written when nothing happens.
	versions := func() string {
		services := &corev1.ServiceList{}
		if err := env.List(t.Context(), services, client.MatchingLabels{v1.JobNameLabel: "plain"}); err != nil {
			t.Fatal(err)
		}
		if err := env.Get(t.Context(), key("plain"), job); err != nil {
			t.Fatal(err)
		}
		text := job.ResourceVersion
		for _, service := range services.Items {
			text += " " + service.ResourceVersion
		}
		return text
	}
	time.Sleep(3 * time.Second)
	before := versions()
	env.edit(t, "plain", func(job *v1.TrainingJob) { job.Annotations = map[string]string{"touched": "yes"} })
	time.Sleep(2 * time.Second)
	after := versions()
	if job.Generation != job.Status.ObservedGeneration {
		t.Errorf("generation %d, observed %d", job.Generation, job.Status.ObservedGeneration)
	}
	if before == after {
		t.Errorf("the edit left no trace: %s", after)
	}
	time.Sleep(time.Second)
	if again := versions(); again != after {
		t.Errorf("writes in steady state: %s, then %s", after, again)
	}
}

func testBackoffLimit(t *testing.T, env *trainingEnv) {
	env.create(t, fixtures.TrainingJob("oom", fixtures.Workers(1), exits("137"),
		fixtures.Restart(v1.RestartExitCode), fixtures.BackoffLimit(3), fixtures.CleanPods(v1.CleanPodAll)))
	job := env.untilPhase(t, "oom", v1.PhaseFailed)
	if got := ptr.Deref(job.Status.Restarts, 0); got != 3 || failedFor(job) != v1.TrainingJobBackoffLimitExceededReason {
		t.Errorf("%d restarts, reason %s", got, failedFor(job))
	}
	env.untilChildren(t, "oom", 0, 0)
}

func testRestartsInPlace(t *testing.T, env *trainingEnv) {
	env.create(t, fixtures.TrainingJob("crash", fixtures.Workers(1), exits("1"), fixtures.BackoffLimit(1)))
	job := env.untilPhase(t, "crash", v1.PhaseFailed)
	if failedFor(job) != v1.TrainingJobBackoffLimitExceededReason {
		t.Errorf("reason %s", failedFor(job))
	}
}

func testDeadline(t *testing.T, env *trainingEnv) {
	env.create(t, fixtures.TrainingJob("quiet", forever, fixtures.Deadline(5), fixtures.CleanPods(v1.CleanPodRunning)))
	job := env.untilPhase(t, "quiet", v1.PhaseFailed)
	took := job.Status.CompletionTime.Sub(job.Status.StartTime.Time)
	if failedFor(job) != v1.TrainingJobDeadlineExceededReason || took > 7*time.Second {
		t.Errorf("reason %s after %v", failedFor(job), took)
	}
	env.untilChildren(t, "quiet", 0, 0)
}

func testSuspend(t *testing.T, env *trainingEnv) {
	env.create(t, fixtures.TrainingJob("paused", forever, fixtures.Deadline(600)))
	env.untilPhase(t, "paused", v1.PhaseRunning)
	env.edit(t, "paused", fixtures.Suspended())
	env.untilPhase(t, "paused", v1.PhaseSuspended)
	env.untilChildren(t, "paused", 0, 0)
	env.edit(t, "paused", fixtures.RunPolicy(func(p *v1.RunPolicy) { p.Suspend = new(false) }))
	env.untilPhase(t, "paused", v1.PhaseRunning)
	env.untilChildren(t, "paused", 2, 2)
}

func testChildrenComeBack(t *testing.T, env *trainingEnv) {
	env.create(t, fixtures.TrainingJob("heal", forever, fixtures.Elastic(1, 3), func(job *v1.TrainingJob) {
		job.Spec.Elastic.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](80)},
			},
		}}
	}))
	env.untilPhase(t, "heal", v1.PhaseRunning)
	for _, child := range []client.Object{&corev1.Pod{}, &corev1.Service{}, &autoscalingv2.HorizontalPodAutoscaler{}} {
		name := "heal-worker-1"
		if _, ok := child.(*autoscalingv2.HorizontalPodAutoscaler); ok {
			name = "heal"
		}
		if err := env.Get(t.Context(), key(name), child); err != nil {
			t.Fatalf("%T: %v", child, err)
		}
		uid := child.GetUID()
		if err := env.Delete(t.Context(), child, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		until(t, fmt.Sprintf("%T comes back", child), func(ctx context.Context) error {
			if err := env.Get(ctx, key(name), child); err != nil {
				return err
			}
			if child.GetUID() == uid {
				return fmt.Errorf("the old one is still there")
			}
			return nil
		})
	}
	// A label more in its selector, and a service leads nowhere. It is not ours, so
	// that applying does not take it.
	service := &corev1.Service{}
	if err := env.Get(t.Context(), key("heal-worker-0"), service); err != nil {
		t.Fatal(err)
	}
	want := service.DeepCopy().Spec.Selector
	if err := env.Patch(t.Context(), service, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"selector":{"a":"b"}}}`))); err != nil {
		t.Fatal(err)
	}
	until(t, "the selector is healed", func(ctx context.Context) error {
		if err := env.Get(ctx, key("heal-worker-0"), service); err != nil {
			return err
		}
		if diff := cmp.Diff(want, service.Spec.Selector); diff != "" {
			return fmt.Errorf("selector (-want +got):\n%s", diff)
		}
		return nil
	})
}

func testEviction(t *testing.T, env *trainingEnv) {
	env.create(t, fixtures.TrainingJob("drained", forever, fixtures.Restart(v1.RestartNever), fixtures.BackoffLimit(0)))
	env.untilJob(t, "drained", "has all its pods", func(job *v1.TrainingJob) bool { return job.Status.RolesReady == "2/2" })
	pod := &corev1.Pod{}
	if err := env.Get(t.Context(), key("drained-worker-0"), pod); err != nil {
		t.Fatal(err)
	}
	if err := env.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the pod is replaced", func(ctx context.Context) error {
		fresh := &corev1.Pod{}
		if err := env.Get(ctx, key("drained-worker-0"), fresh); err != nil {
			return err
		}
		if fresh.UID == pod.UID {
			return fmt.Errorf("the old one is still there")
		}
		return nil
	})
	job := env.untilJob(t, "drained", "has all its pods", func(job *v1.TrainingJob) bool { return job.Status.RolesReady == "2/2" })
	if got := ptr.Deref(job.Status.Restarts, 0); got != 0 || job.Status.Phase != v1.PhaseRunning {
		t.Errorf("%d restarts, phase %s", got, job.Status.Phase)
	}
}

func testScale(t *testing.T, env *trainingEnv) {
	env.create(t, fixtures.TrainingJob("scaled", forever, fixtures.Workers(1), fixtures.Elastic(1, 4), fixtures.Scaled(1)))
	env.untilPhase(t, "scaled", v1.PhaseRunning)
	env.edit(t, "scaled", fixtures.Scaled(3))
	job := env.untilJob(t, "scaled", "has grown", func(job *v1.TrainingJob) bool {
		return job.Status.Elastic != nil && ptr.Deref(job.Status.Elastic.Replicas, 0) == 3
	})
	if job.Status.Elastic.Selector == "" {
		t.Error("the scale subresource has no selector")
	}
	env.edit(t, "scaled", fixtures.Scaled(1))
	env.untilChildren(t, "scaled", 1, 1)
	if err := env.Get(t.Context(), key("scaled-worker-0"), &corev1.Pod{}); err != nil {
		t.Errorf("the lowest index went: %v", err)
	}
}

func testNameTaken(t *testing.T, env *trainingEnv) {
	other := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "taken-worker-0", Namespace: fixtures.Namespace},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "other"}},
	}
	env.create(t, other)
	env.create(t, fixtures.TrainingJob("taken", fixtures.Workers(1), forever))
	env.untilJob(t, "taken", "says so", func(job *v1.TrainingJob) bool {
		c := meta.FindStatusCondition(job.Status.Conditions, v1.InvalidCondition)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == v1.ChildNotOwnedReason
	})
	if err := env.Get(t.Context(), key("taken-worker-0"), other); err != nil || other.Spec.Selector["app"] != "other" || len(other.OwnerReferences) > 0 {
		t.Errorf("the other's service was touched: %+v, %v", other, err)
	}
	if err := env.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	env.untilPhase(t, "taken", v1.PhaseRunning)
	env.untilJob(t, "taken", "is well", func(job *v1.TrainingJob) bool {
		return meta.IsStatusConditionFalse(job.Status.Conditions, v1.InvalidCondition)
	})
}

func testInvalid(t *testing.T, env *trainingEnv) {
	env.create(t, fixtures.TrainingJob("invalid", forever, fixtures.EachRole(func(r *v1.Role) { r.Name = "Boss" })))
	job := env.untilJob(t, "invalid", "says so", func(job *v1.TrainingJob) bool {
		return meta.IsStatusConditionTrue(job.Status.Conditions, v1.InvalidCondition)
	})
	if job.Status.Phase != v1.PhasePending {
		t.Errorf("phase %s", job.Status.Phase)
	}
	if pods, services, err := env.children(t.Context(), "invalid"); err != nil || pods+services > 0 {
		t.Errorf("%d pods, %d services, %v", pods, services, err)
	}
}

func testTimeToLive(t *testing.T, env *trainingEnv) {
	env.create(t, fixtures.TrainingJob("short", exits("0"), fixtures.TTL(2)))
	until(t, "the job is gone", func(ctx context.Context) error {
		if err := env.Get(ctx, key("short"), &v1.TrainingJob{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	env.untilChildren(t, "short", 0, 0)
}
