package ray

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	schedulingv1beta1ac "k8s.io/client-go/applyconfigurations/scheduling/v1beta1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/gangs"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// applied returns the services that a plan applies, by name.
func applied(result plan.Result[v1.RayClusterStatus]) map[string]*corev1ac.ServiceApplyConfiguration {
	services := map[string]*corev1ac.ServiceApplyConfiguration{}
	for _, child := range result.Apply {
		if service, ok := child.(*corev1ac.ServiceApplyConfiguration); ok {
			services[*service.Name] = service
		}
	}
	return services
}

func service(name, address string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "service"}, Spec: corev1.ServiceSpec{ClusterIP: address}}
}

// TestServiceChanges: pitfall 17. A change of the head's service takes effect,
// and what it cannot become is made anew.
func TestServiceChanges(t *testing.T) {
	kind := func(kind string) fixtures.ClusterMod {
		return func(cluster *v1.RayCluster) { cluster.Spec.Head = &v1.RayHead{ServiceType: &kind} }
	}
	annotated := func(cluster *v1.RayCluster) {
		cluster.Spec.Head = &v1.RayHead{ServiceAnnotations: map[string]string{"a": "b"}}
	}
	for name, tc := range map[string]struct {
		mod     fixtures.ClusterMod
		there   *corev1.Service
		deletes bool
	}{
		"as it is":                       {kind(""), service("a-head-svc", corev1.ClusterIPNone), false},
		"ClusterIP has none of its own":  {kind("ClusterIP"), service("a-head-svc", corev1.ClusterIPNone), false},
		"it gets an address":             {kind("NodePort"), service("a-head-svc", corev1.ClusterIPNone), true},
		"another type with an address":   {kind("LoadBalancer"), service("a-head-svc", "10.0.0.1"), false},
		"it loses its address":           {kind(""), service("a-head-svc", "10.0.0.1"), true},
		"an annotation":                  {annotated, service("a-head-svc", corev1.ClusterIPNone), false},
		"one of a name that is no more":  {kind(""), service("old-name", "10.0.0.1"), true},
		"hosts are not several any more": {kind(""), service("a-headless", corev1.ClusterIPNone), true},
	} {
		s := running(tc.mod)
		s.others = []plan.Object{tc.there}
		result := s.plan()
		if got := len(result.Delete) == 1; got != tc.deletes {
			t.Errorf("%s: deletes %d", name, len(result.Delete))
		}
		if got := applied(result)["a-head-svc"]; (got == nil) != (tc.deletes && tc.there.Name == "a-head-svc") {
			t.Errorf("%s: applies %v", name, got)
		}
	}
	one, other := applied(running().plan())["a-head-svc"], applied(running(annotated).plan())["a-head-svc"]
	if one.Annotations[appliedAnnotation] == other.Annotations[appliedAnnotation] {
		t.Error("an annotation that is taken back would stay")
	}
}

// TestRenamedHeadService: workers that run know the head by the name that its
// service had, which stays until they are gone.
func TestRenamedHeadService(t *testing.T) {
	renamed := func(cluster *v1.RayCluster) {
		cluster.Spec.Head = &v1.RayHead{Service: &v1.ServiceTemplate{Metadata: &v1.TemplateMeta{Name: new("renamed")}}}
	}
	old := service("a-head-svc", corev1.ClusterIPNone)
	old.Labels = map[string]string{rayNodeTypeLabel: headNodeType}
	for name, tc := range map[string]struct {
		change fixtures.ClusterMod
		goes   bool
	}{
		"workers run":               {renamed, false},
		"all workers are scaled in": {func(c *v1.RayCluster) { renamed(c); c.Spec.Roles = c.Spec.Roles[:1] }, true},
		"the cluster is suspended":  {func(c *v1.RayCluster) { renamed(c); fixtures.ClusterSuspended(true)(c) }, true},
	} {
		s := running()
		s.others = []plan.Object{old}
		tc.change(s.cluster)
		result := s.plan()
		if applied(result)["renamed"] == nil {
			t.Errorf("%s: the new name is not applied", name)
		}
		if goes := slices.ContainsFunc(result.Delete, func(d plan.Deletion) bool { return d.Child == plan.Object(old) }); goes != tc.goes {
			t.Errorf("%s: the old service goes: %v", name, goes)
		}
	}
	s := running()
	renamed(s.cluster)
	for name := range s.pods {
		delete(s.pods, name)
	}
	s.carryOut(s.plan())
	s.others = []plan.Object{old}
	if result := s.plan(); !slices.ContainsFunc(result.Delete, func(d plan.Deletion) bool { return d.Child == plan.Object(old) }) {
		t.Error("the old service outlives the workers that know it")
	}
}

// TestGivenServiceIsAsItIsRead: what is applied is what the API server makes of
// it, or it would be applied at every pass.
func TestGivenServiceIsAsItIsRead(t *testing.T) {
	cluster := fixtures.RayCluster("a", func(cluster *v1.RayCluster) {
		cluster.Spec.Head = &v1.RayHead{Service: &v1.ServiceTemplate{Spec: &corev1.ServiceSpec{Ports: []corev1.ServicePort{
			{Name: "dashboard", Port: 8265}, {Name: "other", Port: 1, TargetPort: intstr.FromString("x")},
		}}}}
	})
	ports := applied(Plan(cluster, plan.Observed{}, fixtures.Start))["a-head-svc"].Spec.Ports
	if ports[0].TargetPort != nil || ports[1].TargetPort == nil || ports[1].TargetPort.StrVal != "x" {
		t.Errorf("target ports %v and %v", ports[0].TargetPort, ports[1].TargetPort)
	}
}

// TestHeadPorts: pitfall 16, as upstream: who names ports names all but metrics.
func TestHeadPorts(t *testing.T) {
	ports := func(declared ...corev1.ContainerPort) string {
		cluster := fixtures.RayCluster("a", fixtures.RayGroup(v1.RoleHead, func(r *v1.RayRole) { r.Template.Spec.Containers[0].Ports = declared }))
		var names []string
		for _, port := range servicePorts(cluster) {
			names = append(names, *port.Name+":"+itoa(*port.Port))
		}
		return strings.Join(names, " ")
	}
	for want, declared := range map[string][]corev1.ContainerPort{
		"client:10001 gcs-server:6379 dashboard:8265 metrics:8080 serve:8000": nil,
		"gcs:6379 metrics:8080":       {{Name: "gcs", ContainerPort: 6379}},
		"9999-port:9999 metrics:8080": {{ContainerPort: 9999}},
		"metrics:9090":                {{Name: "metrics", ContainerPort: 9090}},
		"one:1 metrics:8080":          {{Name: "one", ContainerPort: 1}, {Name: "two", ContainerPort: 1}},
	} {
		if got := ports(declared...); got != want {
			t.Errorf("%v: %s, want %s", declared, got, want)
		}
	}
}

// TestDeletion: pitfall 18. The state in Redis is removed after the head is gone,
// and what keeps that from being done keeps the cluster for a while only.
func TestDeletion(t *testing.T) {
	finished := func(kind batchv1.JobConditionType) *batchv1.Job {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a-redis-cleanup", UID: "job"}}
		if kind != "" {
			job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
		}
		return job
	}
	type want struct {
		Held             bool
		Created, Deleted string
	}
	head := fixtures.Pod("a-head", fixtures.Running())
	for name, tc := range map[string]struct {
		mods     []fixtures.ClusterMod
		children []plan.Object
		after    time.Duration
		want     want
	}{
		"pods go first":                    {[]fixtures.ClusterMod{fixtures.InRedis()}, []plan.Object{head}, 0, want{true, "", "a-head"}},
		"then the job":                     {[]fixtures.ClusterMod{fixtures.InRedis()}, nil, 0, want{true, "a-redis-cleanup", ""}},
		"which is waited for":              {[]fixtures.ClusterMod{fixtures.InRedis()}, []plan.Object{finished("")}, 299 * time.Second, want{true, "", ""}},
		"that is all":                      {[]fixtures.ClusterMod{fixtures.InRedis()}, []plan.Object{finished(batchv1.JobComplete)}, 0, want{}},
		"a job that failed is not tried":   {[]fixtures.ClusterMod{fixtures.InRedis()}, []plan.Object{finished(batchv1.JobFailed)}, 0, want{}},
		"after 300 s it goes in any case":  {[]fixtures.ClusterMod{fixtures.InRedis()}, []plan.Object{head}, 300 * time.Second, want{}},
		"or after what an annotation says": {[]fixtures.ClusterMod{fixtures.InRedis(), fixtures.ClusterAnnotation(deletionTimeoutAnnotation, "10")}, nil, 10 * time.Second, want{}},
		"an annotation that says nothing":  {[]fixtures.ClusterMod{fixtures.InRedis(), fixtures.ClusterAnnotation(deletionTimeoutAnnotation, "soon")}, nil, 10 * time.Second, want{true, "a-redis-cleanup", ""}},
		"the older annotation":             {[]fixtures.ClusterMod{fixtures.ClusterAnnotation(faultToleranceAnnotation, "true")}, nil, 0, want{true, "a-redis-cleanup", ""}},
		"in the foreground it waits":       {[]fixtures.ClusterMod{fixtures.InRedis(), func(c *v1.RayCluster) { c.Finalizers = []string{metav1.FinalizerDeleteDependents} }}, nil, 0, want{true, "", ""}},
		"not without fault tolerance":      {nil, []plan.Object{head}, 0, want{}},
		"nor of a cluster that is none":    {[]fixtures.ClusterMod{fixtures.InRedis(), func(c *v1.RayCluster) { c.Spec.Roles = nil }}, nil, 0, want{}},
	} {
		cluster := fixtures.RayCluster("a", tc.mods...)
		cluster.DeletionTimestamp = new(metav1.NewTime(fixtures.Start))
		cluster.Finalizers = append(cluster.Finalizers, v1.RedisCleanupFinalizer)
		result := Plan(cluster, plan.Observed{Children: tc.children}, fixtures.Start.Add(tc.after))
		o := outcomeOf(result)
		if diff := cmp.Diff(tc.want, want{result.Finalize, o.Created, o.Deleted}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if result.Finalize && result.RequeueAfter == 0 {
			t.Errorf("%s: nobody looks again", name)
		}
	}
}

func TestCleanupJob(t *testing.T) {
	cluster := fixtures.RayCluster("a", fixtures.InRedis(), fixtures.RayGroup(v1.RoleHead, fixtures.Limit("nvidia.com/gpu", "1"), func(r *v1.RayRole) {
		r.Template.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team"}
		r.Template.Spec.InitContainers = []corev1.Container{{Name: "fetch"}}
	}))
	cluster.DeletionTimestamp = new(metav1.NewTime(fixtures.Start))
	job := Plan(cluster, plan.Observed{}, fixtures.Start).Create[0].(*batchv1.Job)
	spec := job.Spec.Template.Spec
	if _, gpu := spec.Containers[0].Resources.Limits["nvidia.com/gpu"]; gpu || len(spec.Containers) != 1 || len(spec.InitContainers) > 0 {
		t.Errorf("it asks for more than it needs: %v", spec)
	}
	if job.Labels["kueue.x-k8s.io/queue-name"] != "" || job.Spec.Template.Labels["kueue.x-k8s.io/queue-name"] != "" {
		t.Error("a queue would hold it back")
	}
	var names []string
	for _, v := range spec.Containers[0].Env {
		names = append(names, v.Name)
	}
	for _, name := range []string{redisAddressVariable, redisPasswordVariable, storageVariable} {
		if !slices.Contains(names, name) {
			t.Errorf("it has no %s among %v", name, names)
		}
	}
	if spec.RestartPolicy != corev1.RestartPolicyNever || *job.Spec.BackoffLimit != 0 || *job.Spec.ActiveDeadlineSeconds != 300 {
		t.Errorf("it may be tried again: %v", job.Spec)
	}
}

// TestFinalizer is there for Redis alone.
func TestFinalizer(t *testing.T) {
	for name, tc := range map[string]struct {
		mods []fixtures.ClusterMod
		want bool
	}{
		"without":              {nil, false},
		"Redis":                {[]fixtures.ClusterMod{fixtures.InRedis()}, true},
		"the older annotation": {[]fixtures.ClusterMod{fixtures.ClusterAnnotation(faultToleranceAnnotation, "true")}, true},
		"which says no":        {[]fixtures.ClusterMod{fixtures.ClusterAnnotation(faultToleranceAnnotation, "false")}, false},
	} {
		if got := Plan(fixtures.RayCluster("a", tc.mods...), plan.Observed{}, later).Finalize; got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTotals are counted from replicas within their bounds, requests first, and
// without what Penstock adds.
func TestTotals(t *testing.T) {
	cluster := fixtures.RayCluster("a", fixtures.Autoscaled(v1.RayAutoscalerV2),
		small(fixtures.Replicas(9), fixtures.Between(0, 2), fixtures.Hosts(2), fixtures.Limit("nvidia.com/gpu", "4"), fixtures.Limit("nvidia.com/mig-1g.10gb", "1"), func(r *v1.RayRole) {
			r.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: fixtures.Quantity("500m")}
		}),
		fixtures.RayGroup("tpu", fixtures.Limit("google.com/tpu", "4")),
		fixtures.RayGroup("off", fixtures.Limit("nvidia.com/gpu", "8"), func(r *v1.RayRole) { r.Suspend = new(true) }),
	)
	got := Plan(cluster, plan.Observed{}, later).Status.Resources
	want := []string{"4", "12Gi", "20", "4"}
	if diff := cmp.Diff(want, []string{got.CPU.String(), got.Memory.String(), got.GPU.String(), got.TPU.String()}); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
}

// TestGang: the group comes before the pods, and is as large as must be.
func TestGang(t *testing.T) {
	for name, tc := range map[string]struct {
		mods []fixtures.ClusterMod
		want int32
	}{
		"all pods":                             {[]fixtures.ClusterMod{small(fixtures.Hosts(2))}, 5},
		"with an autoscaler the smallest size": {[]fixtures.ClusterMod{fixtures.Autoscaled(v1.RayAutoscalerV2), small(fixtures.Replicas(4), fixtures.Between(1, 9))}, 2},
	} {
		cluster := fixtures.RayCluster("a", append(tc.mods, fixtures.GangOf())...)
		observed := plan.Observed{Served: map[schema.GroupVersionKind]bool{gangs.NativeKind: true}}
		result := Plan(cluster, observed, later)
		if len(result.Create) > 0 || result.Status.Phase != v1.PhasePending {
			t.Errorf("%s: %d pods come before the group, phase %s", name, len(result.Create), result.Status.Phase)
		}
		var group *schedulingv1beta1ac.PodGroupApplyConfiguration
		for _, child := range result.Apply {
			if typed, ok := child.(*schedulingv1beta1ac.PodGroupApplyConfiguration); ok {
				group = typed
			}
		}
		if group == nil || *group.Spec.SchedulingPolicy.Gang.MinCount != tc.want {
			t.Fatalf("%s: group %v, want %d", name, group, tc.want)
		}
		there := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: *group.Name, UID: "group"}}
		observed.Children = []plan.Object{there}
		result = Plan(cluster, observed, later)
		if len(result.Create) == 0 {
			t.Fatalf("%s: no pods with the group", name)
		}
		for _, child := range result.Create {
			if link := child.(*corev1.Pod).Spec.SchedulingGroup; link == nil || *link.PodGroupName != *group.Name {
				t.Errorf("%s: %s is of group %v", name, child.GetName(), link)
			}
		}
		fixtures.ClusterSuspended(true)(cluster)
		if got := outcomeOf(Plan(cluster, observed, later)); got.Deleted != *group.Name {
			t.Errorf("%s: suspended it deletes %s", name, got.Deleted)
		}
	}
}

// TestLean plans from pods as they are and as a cache holds them.
func TestLean(t *testing.T) {
	for name, mods := range map[string][]fixtures.PodMod{
		"running": nil, "failed": {fixtures.Failed(1)}, "unready": {notReady}, "ended under Never": {fixtures.PodRestart(corev1.RestartPolicyNever), fixtures.Exited(1)},
	} {
		s := running(fixtures.Upgrades(v1.UpgradeRollingUpdate)).pod("a-small-0-0", mods...)
		whole := s.plan()
		for _, pod := range s.pods {
			pods.Lean(pod)
		}
		if diff := cmp.Diff(outcomeOf(whole), outcomeOf(s.plan())); diff != "" {
			t.Errorf("%s (-whole +lean):\n%s", name, diff)
		}
	}
}

// TestCrashLoop: what ends as soon as it starts is made anew ever more slowly.
func TestCrashLoop(t *testing.T) {
	s := running(small(fixtures.RayRestart(v1.RestartNever)))
	began, made := s.now, 0
	for s.now.Before(began.Add(10 * time.Minute)) {
		s.now = s.now.Add(time.Second)
		result := s.plan()
		for _, child := range result.Create {
			if child.GetName() == "a-small-0-0" {
				made++
			}
		}
		s.carryOut(result)
		if pod := s.pods["a-small-0-0"]; pod != nil && pod.Status.Phase != corev1.PodFailed {
			fixtures.Failed(1)(pod)
		}
	}
	if made < 10 || made > 20 {
		t.Errorf("the pod was made %d times in 10 minutes", made)
	}
}
