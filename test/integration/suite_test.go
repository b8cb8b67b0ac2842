// Package integration holds Penstock against a real API server: what is stored,
// what is refused and in which words, and what re-applying changes. No pod runs
// here; the end-to-end tests see to that.
package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/install"
)

func TestIntegration(t *testing.T) {
	cluster.SkipWithoutAssets(t)
	RegisterFailHandler(Fail)
	// Otherwise what waits with a context waits for ever.
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(40 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	log.SetLogger(GinkgoLogr)
	RunSpecs(t, "Integration")
}

var (
	control   *cluster.Cluster
	manager   *cluster.Running
	webhooks  install.Options
	k8s       client.Client
	clientset kubernetes.Interface
	binary    string
)

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	control, err = cluster.Start(ctx, cluster.Options{Components: cluster.APIServerOnly, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(control.Stop)

	binary, err = install.Build(ctx, GinkgoT().TempDir(), "-race")
	Expect(err).NotTo(HaveOccurred())

	port, err := cluster.FreePort()
	Expect(err).NotTo(HaveOccurred())
	webhooks = install.Options{Port: port}
	Expect(install.Apply(ctx, control.Config, webhooks)).To(Succeed())
	startManager(ctx)
	DeferCleanup(func() { manager.Stop() })
	DeferCleanup(reportManager)
	Expect(install.Policies(ctx, control.Config)).To(Succeed())

	scheme := clientgoscheme.Scheme
	Expect(v1.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	k8s, err = client.New(control.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	clientset, err = kubernetes.NewForConfig(control.Config)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func(g Gomega) {
		var policies v1.WorkloadPolicyList
		g.Expect(k8s.List(ctx, &policies)).To(Succeed())
		g.Expect(policies.Items).NotTo(BeEmpty())
		for _, policy := range policies.Items {
			g.Expect(policy.Status.EnforcedGeneration).To(Equal(policy.Generation), policy.Name)
		}
	}).WithContext(ctx).Should(Succeed())
}, NodeTimeout(5*time.Minute))

// startManager starts the suite's manager, anew after one was stopped.
func startManager(ctx context.Context, args ...string) {
	port, err := cluster.FreePort()
	Expect(err).NotTo(HaveOccurred())
	metricsAddress = fmt.Sprintf("127.0.0.1:%d", port)
	decisionLog = filepath.Join(control.Dir, "decisions.jsonl")
	args = append([]string{"--metrics-bind-address=" + metricsAddress, "--decision-log=" + decisionLog}, args...)
	manager, err = install.Manager(ctx, control, binary, webhooks, args...)
	Expect(err).NotTo(HaveOccurred())
}

// decisionLog is where the suite's manager logs decisions.
var decisionLog string

// reportManager fails the suite where the manager raced, panicked or lacked a
// permission, and shows its log where anything failed.
func reportManager() {
	content, err := os.ReadFile(manager.LogPath())
	Expect(err).NotTo(HaveOccurred())
	if CurrentSpecReport().Failed() {
		GinkgoWriter.Println(string(content))
	}
	for _, upheaval := range slices.Backward(upheavals) {
		content = slices.Delete(content, upheaval[0], upheaval[1])
	}
	var faults []string
	for line := range strings.SplitSeq(string(content), "\n") {
		for _, sign := range []string{"DATA RACE", "Recovered from a panic", "is forbidden", "Observed a panic"} {
			if strings.Contains(line, sign) {
				faults = append(faults, line)
			}
		}
	}
	Expect(faults).To(BeEmpty(), "in the manager's log")
}

// upheavals are the parts of the manager's log that were written while the API
// server restarted, since it forbids everything until it has read its roles, or
// while a kind was taken away.
var upheavals [][2]int

// restartAPIServer stops the API server and returns once it is ready again.
func restartAPIServer(ctx context.Context) {
	GinkgoHelper()
	size := func() int {
		info, err := os.Stat(manager.LogPath())
		Expect(err).NotTo(HaveOccurred())
		return int(info.Size())
	}
	before := size()
	Expect(control.RestartAPIServer(ctx)).To(Succeed())
	upheavals = append(upheavals, [2]int{before, size()})
}

// newNamespace makes a namespace for one spec.
func newNamespace(ctx context.Context, labels map[string]string) string {
	GinkgoHelper()
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	namespace.SetGenerateName("spec-")
	namespace.SetLabels(labels)
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	name := namespace.GetName()
	DeferCleanup(func(ctx context.Context) {
		// No controller empties namespaces here, and what specs leave is work for
		// the manager under all that follow. Jobs go before pods, which they make anew.
		for _, kind := range []client.Object{&v1.TrainingJob{}, &v1.RayCluster{}, &corev1.Pod{}} {
			Expect(k8s.DeleteAllOf(ctx, kind, client.InNamespace(name), client.GracePeriodSeconds(0))).To(Succeed())
		}
	})
	return name
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

// get reads an object in one version, as it is.
func get(ctx context.Context, version, kind, namespace, name string) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: v1.GroupName, Version: version, Kind: kind})
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)).To(Succeed())
	return object
}

func valueAt(object *unstructured.Unstructured, path ...string) any {
	GinkgoHelper()
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	Expect(err).NotTo(HaveOccurred())
	if !found {
		return nil
	}
	return value
}

// alphaJob is the manifest of a PyTorch job in v1alpha1; edit changes it.
func alphaJob(name string, edit ...string) string {
	manifest := fmt.Sprintf(`apiVersion: penstock.dev/v1alpha1
kind: TrainingJob
metadata:
  name: %s
spec:
  runPolicy:
    backoffLimit: 3
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        metadata:
          creationTimestamp: null
        spec:
          containers:
          - name: pytorch
            image: images.example/train:1
            resources:
              limits:
                nvidia.com/gpu: 8
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          containers:
          - name: pytorch
            image: images.example/train:1
            resources:
              limits:
                cpu: 1000m
                nvidia.com/gpu: 8
`, name)
	return strings.NewReplacer(edit...).Replace(manifest)
}

// hubJob is the manifest of a PyTorch job in v1.
func hubJob(name string, edit ...string) string {
	manifest := fmt.Sprintf(`apiVersion: penstock.dev/v1
kind: TrainingJob
metadata:
  name: %s
spec:
  framework: PyTorch
  roles:
  - name: Worker
    replicas: 2
    topology:
      required: topology.kubernetes.io/rack
    template:
      spec:
        containers:
        - name: pytorch
          image: images.example/train:1
          resources:
            limits:
              nvidia.com/gpu: 8
  elastic:
    minReplicas: 1
    maxReplicas: 4
`, name)
	return strings.NewReplacer(edit...).Replace(manifest)
}
