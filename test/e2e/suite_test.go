// Package e2e tries Penstock as its users do: with kubectl, on a whole control
// plane, in front of simulated GPU nodes. Jobs are applied, scheduled, run, fail
// and end; what is asserted is what is in the cluster afterwards.
package e2e

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
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

func TestEndToEnd(t *testing.T) {
	cluster.SkipWithoutAssets(t)
	RegisterFailHandler(Fail)
	// Otherwise what waits with a context waits for ever.
	EnforceDefaultTimeoutsWhenUsingContexts()
	// The garbage collector looks for new kinds every 30 seconds.
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	log.SetLogger(GinkgoLogr)
	RunSpecs(t, "End to end")
}

var (
	control  *cluster.Cluster
	manager  *cluster.Running
	webhooks install.Options
	k8s      client.Client
	root     string
	binary   string
)

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	root, err = cluster.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	binary, err = install.Build(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())

	control, err = cluster.Start(ctx, cluster.Options{
		Components:     cluster.Full,
		GangScheduling: true,
		Nodes: []cluster.Node{
			{Name: "gpu-a1", Rack: "a", GPUs: 8}, {Name: "gpu-a2", Rack: "a", GPUs: 8},
			{Name: "gpu-b1", Rack: "b", GPUs: 8}, {Name: "gpu-b2", Rack: "b", GPUs: 8},
		},
		Log: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(control.Stop)
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1.AddToScheme(scheme)).To(Succeed())
	k8s, err = client.New(control.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())

	port, err := cluster.FreePort()
	Expect(err).NotTo(HaveOccurred())
	webhooks = install.Options{Port: port}
	Expect(install.Apply(ctx, control.Config, webhooks)).To(Succeed())
	manager = startManager(ctx, webhooks)
	DeferCleanup(reportManager)
	Expect(install.Policies(ctx, control.Config)).To(Succeed())
	Eventually(func(g Gomega, ctx context.Context) {
		var policies v1.WorkloadPolicyList
		g.Expect(k8s.List(ctx, &policies)).To(Succeed())
		g.Expect(policies.Items).NotTo(BeEmpty())
		for _, policy := range policies.Items {
			g.Expect(policy.Status.EnforcedGeneration).To(Equal(policy.Generation), policy.Name)
		}
	}).WithContext(ctx).Should(Succeed())
}, NodeTimeout(5*time.Minute))

func startManager(ctx context.Context, options install.Options, args ...string) *cluster.Running {
	GinkgoHelper()
	running, err := install.Manager(ctx, control, binary, options, args...)
	Expect(err).NotTo(HaveOccurred())
	return running
}

// reportManager fails the suite where the manager panicked or lacked a
// permission, and shows its log where anything failed.
func reportManager() {
	content, err := os.ReadFile(manager.LogPath())
	Expect(err).NotTo(HaveOccurred())
	if CurrentSpecReport().Failed() {
		GinkgoWriter.Println(string(content))
	}
	var faults []string
	for line := range strings.SplitSeq(string(content), "\n") {
		for _, sign := range []string{"Recovered from a panic", "Observed a panic", "is forbidden: User"} {
			if strings.Contains(line, sign) {
				faults = append(faults, line)
			}
		}
	}
	Expect(faults).To(BeEmpty(), "in the manager's log")
}

// newNamespace makes a namespace for one spec, and takes it away with all that
// is in it, so that the nodes have room again.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		if CurrentSpecReport().Failed() {
			out, _ := kubectl(ctx, "", "get", "-n", namespace.Name, "tj,pods,services,events")
			GinkgoWriter.Println(out)
			out, _ = kubectl(ctx, "", "get", "-n", namespace.Name, "tj", "-o", "yaml")
			GinkgoWriter.Println(out)
			if log, err := os.ReadFile(manager.LogPath()); err == nil {
				GinkgoWriter.Println(string(log))
			}
		}
		Expect(k8s.Delete(ctx, namespace)).To(Succeed())
	})
	return namespace.Name
}

// kubectl runs the real kubectl and gives its output, both streams together.
func kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	out, errOut, err := control.Kubectl(ctx, stdin, args...)
	return out + errOut, err
}

func mustKubectl(ctx context.Context, stdin string, args ...string) string {
	GinkgoHelper()
	out, err := kubectl(ctx, stdin, args...)
	Expect(err).NotTo(HaveOccurred(), "kubectl %s\n%s", strings.Join(args, " "), out)
	return out
}

// manifest is a job as a user would write it: without what the API server and
// the reconciler write.
func manifest(job *v1.TrainingJob) string {
	GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	Expect(err).NotTo(HaveOccurred())
	content["metadata"] = map[string]any{"name": job.Name}
	delete(content, "status")
	text, err := json.Marshal(content)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// submit applies a job with kubectl.
func submit(ctx context.Context, ns, name string, mods ...fixtures.JobMod) {
	GinkgoHelper()
	mustKubectl(ctx, manifest(fixtures.TrainingJob(name, mods...)), "apply", "-n", ns, "-f", "-")
}

// patch changes an object as kubectl edit would, in the version that its
// resource names.
func patch(ctx context.Context, ns, object, change string) {
	GinkgoHelper()
	mustKubectl(ctx, "", "patch", "-n", ns, object, "--type=merge", "-p", change)
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

// job reads a job; for Eventually.
func job(ns, name string) func(Gomega, context.Context) *v1.TrainingJob {
	return reading.Job(k8s, ns, name)
}

// eventuallyJob waits until a job is as the matcher says, and returns it.
func eventuallyJob(ctx context.Context, ns, name string, matches OmegaMatcher) *v1.TrainingJob {
	GinkgoHelper()
	Eventually(job(ns, name)).WithContext(ctx).Should(matches)
	return now(ctx, job(ns, name))
}

// inPhase matches a job that is in a phase.
func inPhase(phase v1.Phase) OmegaMatcher {
	return HaveField("Status.Phase", phase)
}

// allReady matches a job whose pods are all ready, or have succeeded.
func allReady(count string) OmegaMatcher {
	return HaveField("Status.RolesReady", count)
}

// pods reads the pods of a job by name; for Eventually.
func pods(ns, name string) func(Gomega, context.Context) map[string]corev1.Pod {
	return reading.Pods(k8s, ns, name)
}

// services reads the services of a job by name; for Eventually.
func services(ns, name string) func(Gomega, context.Context) map[string]corev1.Service {
	return func(g Gomega, ctx context.Context) map[string]corev1.Service {
		var list corev1.ServiceList
		g.Expect(k8s.List(ctx, &list, client.InNamespace(ns), client.MatchingLabels{v1.JobNameLabel: name})).To(Succeed())
		byName := map[string]corev1.Service{}
		for _, service := range list.Items {
			byName[service.Name] = service
		}
		return byName
	}
}

// eventsOf lists what events say of a job; for Eventually.
func eventsOf(ns, name string) func(Gomega, context.Context) []string {
	return func(g Gomega, ctx context.Context) []string {
		var list corev1.EventList
		g.Expect(k8s.List(ctx, &list, client.InNamespace(ns))).To(Succeed())
		var said []string
		for _, event := range list.Items {
			if event.InvolvedObject.Kind == v1.TrainingJobKind && event.InvolvedObject.Name == name {
				said = append(said, event.Reason+": "+event.Message)
			}
		}
		return said
	}
}

// now reads by one of the readers above, once.
func now[T any](ctx context.Context, read func(Gomega, context.Context) T) T {
	GinkgoHelper()
	return reading.Now(ctx, read)
}
