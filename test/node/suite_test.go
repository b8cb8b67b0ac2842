package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/fixtures"
	"github.com/penstock-dev/penstock/test/install"
	"github.com/penstock-dev/penstock/test/reading"
)

func TestNode(t *testing.T) {
	assets := required(t)
	RegisterFailHandler(Fail)
	// Otherwise what waits with a context waits for ever.
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	log.SetLogger(GinkgoLogr)
	suiteAssets = assets
	RunSpecs(t, "Real node")
}

// required skips a test on a machine that cannot run a node. What could have
// been built and was not is a fault in CI, where nobody notices a skipped test.
func required(t *testing.T) cluster.Assets {
	t.Helper()
	if missing := Missing(); missing != "" {
		t.Skip("no real node on this machine: it needs " + missing)
	}
	cluster.SkipWithoutAssets(t)
	assets, err := cluster.FindAssets()
	if err != nil {
		t.Fatal(err)
	}
	if missing := Unbuilt(assets); missing != "" {
		if os.Getenv("CI") == "true" && !strings.HasPrefix(missing, "runc") {
			t.Fatal("there is no " + missing)
		}
		t.Skip("no real node on this machine: there is no " + missing)
	}
	if err := Check(t.Context(), assets); err != nil {
		t.Skipf("no real node on this machine: %v", err)
	}
	return assets
}

var (
	suiteAssets cluster.Assets
	control     *cluster.Cluster
	manager     *cluster.Running
	worker      *Node
	k8s         client.Client
)

var _ = BeforeSuite(func(ctx context.Context) {
	binary, err := install.Build(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())

	before := machineState()
	dir, err := os.MkdirTemp("", "penstock-node-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	worker = New(dir, suiteAssets)
	args, err := worker.APIServerArgs()
	Expect(err).NotTo(HaveOccurred())
	control, err = cluster.Start(ctx, cluster.Options{Components: cluster.Full, APIServerArgs: args, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	var running *cluster.Running
	DeferCleanup(func() {
		pid := running.PID()
		own := namespacesOf(pid)
		Expect(control.Stop()).To(Succeed())
		Expect(within(own)).To(BeEmpty(), "processes of the node")
		Expect(groupsOf(pid)).To(BeEmpty(), "cgroups of the node")
		Expect(machineState()).To(Equal(before), "the machine")
	})
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1.AddToScheme(scheme)).To(Succeed())
	k8s, err = client.New(control.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())

	allowDNS(ctx)
	running, err = worker.Start(ctx, control)
	Expect(err).NotTo(HaveOccurred())

	port, err := cluster.FreePort()
	Expect(err).NotTo(HaveOccurred())
	webhooks := install.Options{Port: port}
	Expect(install.Apply(ctx, control.Config, webhooks)).To(Succeed())
	manager, err = install.Manager(ctx, control, binary, webhooks)
	Expect(err).NotTo(HaveOccurred())

	Eventually(func(g Gomega, ctx context.Context) {
		var node corev1.Node
		g.Expect(k8s.Get(ctx, client.ObjectKey{Name: Name}, &node)).To(Succeed())
		g.Expect(node.Status.Conditions).To(ContainElement(And(
			HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue))))
		g.Expect(node.Spec.Taints).To(BeEmpty())
	}).WithContext(ctx).Should(Succeed())
}, NodeTimeout(5*time.Minute))

// allowDNS lets CoreDNS read what it answers from, as its own manifests do.
func allowDNS(ctx context.Context) {
	GinkgoHelper()
	Expect(k8s.Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "coredns"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"services", "namespaces"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}},
		},
	})).To(Succeed())
	Expect(k8s.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "coredns"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "coredns"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: DNSUser}},
	})).To(Succeed())
}

// newNamespace makes a namespace for one spec, and takes it away with all that
// is in it.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		if CurrentSpecReport().Failed() {
			report(ctx, namespace.Name)
		}
		Expect(k8s.Delete(ctx, namespace)).To(Succeed())
	})
	return namespace.Name
}

// report shows what is in a namespace, what its containers printed, and the end
// of the logs of those who run them.
func report(ctx context.Context, ns string) {
	for _, args := range [][]string{{"get", "-o", "wide", "tj,raycl,pods,services,events"}, {"get", "tj,raycl", "-o", "yaml"}} {
		out, _, _ := control.Kubectl(ctx, "", append(args, "-n", ns)...)
		GinkgoWriter.Println(out)
	}
	logs, _ := filepath.Glob(filepath.Join(worker.Dir, "pods", ns+"_*", "*", "*.log"))
	logs = append(logs, manager.LogPath(), filepath.Join(worker.Dir, "kubelet.log"), filepath.Join(worker.Dir, "coredns.log"))
	for _, path := range logs {
		content, _ := os.ReadFile(path)
		const most = 8000
		GinkgoWriter.Printf("--- end of %s\n%s\n", path, content[max(0, len(content)-most):])
	}
}

// trains makes every role run the trainer with these arguments.
func trains(args ...string) fixtures.JobMod {
	return fixtures.EachRole(func(role *v1.Role) { command(role, args) })
}

// roleTrains makes one role do so.
func roleTrains(name v1.RoleName, args ...string) fixtures.JobMod {
	return fixtures.EachRole(func(role *v1.Role) {
		if role.Name == name {
			command(role, args)
		}
	})
}

func command(role *v1.Role, args []string) {
	spec := &role.Template.Spec
	spec.TerminationGracePeriodSeconds = new(int64(2))
	if !strings.HasPrefix(spec.Containers[0].Image, "penstock.test/") {
		spec.Containers[0].Image = Image
	}
	spec.Containers[0].ImagePullPolicy = corev1.PullNever
	spec.Containers[0].Args = args
}

// submit makes a job whose pods run the trainer.
func submit(ctx context.Context, ns, name string, mods ...fixtures.JobMod) {
	GinkgoHelper()
	job := fixtures.TrainingJob(name, append([]fixtures.JobMod{trains()}, mods...)...)
	job.ObjectMeta = metav1.ObjectMeta{Namespace: ns, Name: name}
	// Roles that a mod has added.
	for i := range job.Spec.Roles {
		command(&job.Spec.Roles[i], job.Spec.Roles[i].Template.Spec.Containers[0].Args)
	}
	Expect(k8s.Create(ctx, job)).To(Succeed())
}

// job reads a job; for Eventually.
func job(ns, name string) func(Gomega, context.Context) *v1.TrainingJob {
	return reading.Job(k8s, ns, name)
}

// pods reads the pods of a job by name; for Eventually.
func pods(ns, name string) func(Gomega, context.Context) map[string]corev1.Pod {
	return reading.Pods(k8s, ns, name)
}

// said are the last words of the containers of a job, by pod; for Eventually.
func said(ns, name string) func(Gomega, context.Context) map[string]string {
	return func(g Gomega, ctx context.Context) map[string]string {
		words := map[string]string{}
		for pod, object := range pods(ns, name)(g, ctx) {
			for _, status := range object.Status.ContainerStatuses {
				if status.State.Terminated != nil {
					words[pod] = strings.TrimSpace(status.State.Terminated.Message)
				}
			}
		}
		return words
	}
}

// meeting is what all processes of a job say when they have met: the name of the
// framework, and their pods by rank.
func meeting(framework string, pods ...string) map[string]string {
	words := map[string]string{}
	for rank, pod := range pods {
		n := len(pods)
		words[pod] = fmt.Sprintf("%s rank=%d world=%d sum=%d", framework, rank, n, n*(n+1)/2)
	}
	return words
}

// succeeds waits until a job has succeeded, and returns it.
func succeeds(ctx context.Context, ns, name string) *v1.TrainingJob {
	GinkgoHelper()
	return reaches(ctx, ns, name, v1.PhaseSucceeded)
}

// reaches waits until a job is in a phase, and returns it. It does not wait for
// one that has failed to do anything else.
func reaches(ctx context.Context, ns, name string, phase v1.Phase) *v1.TrainingJob {
	GinkgoHelper()
	var last *v1.TrainingJob
	Eventually(func(g Gomega, ctx context.Context) v1.Phase {
		last = job(ns, name)(g, ctx)
		if last.Status.Phase == v1.PhaseFailed && phase != v1.PhaseFailed {
			StopTrying("the job has failed").Attach("status", last.Status).Now()
		}
		return last.Status.Phase
	}).WithContext(ctx).Should(Equal(phase))
	return last
}

// now reads by one of the readers above, once.
func now[T any](ctx context.Context, read func(Gomega, context.Context) T) T {
	GinkgoHelper()
	return reading.Now(ctx, read)
}
