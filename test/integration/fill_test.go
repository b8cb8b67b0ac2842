package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/fixtures"
	"github.com/penstock-dev/penstock/test/install"
)

// storedAtOnce is how many objects are stored while a watch cache fills.
const storedAtOnce = 10_000

// storedJob gives a job as it is stored, every other one with something that
// v1alpha1 cannot say.
func storedJob(i int) (name string, content []byte) {
	job := fixtures.TrainingJob(fmt.Sprintf("stored-%d", i), fixtures.Workers(int32(i%7)+1))
	if i%2 == 0 {
		job.Spec.Roles[0].Topology = &v1.Topology{Required: "topology.kubernetes.io/rack"}
	}
	content, err := json.Marshal(job)
	Expect(err).NotTo(HaveOccurred())
	return job.Name, content
}

// The API server asks for a conversion of each stored object when it fills the
// watch cache of a version that they are not stored in.
var _ = Describe("the watch cache of ten thousand objects", Serial, Label("slow"), func() {
	It("fills once Penstock answers, and nothing stored is lost or changed", func(ctx context.Context) {
		own, err := cluster.Start(ctx, cluster.Options{Components: cluster.APIServerOnly, Log: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(own.Stop)
		port, err := cluster.FreePort()
		Expect(err).NotTo(HaveOccurred())
		options := install.Options{Port: port}
		Expect(install.Apply(ctx, own.Config, options)).To(Succeed())
		served := dynamic.NewForConfigOrDie(own.Config)
		jobs := func(version schema.GroupVersion) dynamic.ResourceInterface {
			return served.Resource(version.WithResource("trainingjobs")).Namespace(fixtures.Namespace)
		}
		core := kubernetes.NewForConfigOrDie(own.Config)
		_, err = core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixtures.Namespace}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		holdLease(ctx, core)

		By("storing them while nobody converts")
		Expect(own.StoreAll(ctx, v1.GroupName, "trainingjobs", fixtures.Namespace, storedAtOnce, storedJob)).To(Succeed())
		fromCache := metav1.ListOptions{ResourceVersion: "0"}
		Eventually(func(g Gomega, ctx context.Context) {
			list, err := jobs(v1.GroupVersion).List(ctx, fromCache)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(list.Items).To(HaveLen(storedAtOnce))
		}).WithContext(ctx).WithTimeout(time.Minute).WithPolling(time.Second).Should(Succeed())
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, err = jobs(v1alpha1.GroupVersion).List(short, metav1.ListOptions{Limit: 1})
		Expect(err).To(HaveOccurred(), "nobody converts")

		By("having them converted")
		running, err := install.Manager(ctx, own, binary, options, "--audit=false")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { running.Stop() })
		began := time.Now()
		var alpha *unstructured.UnstructuredList
		Eventually(func(g Gomega, ctx context.Context) {
			var err error
			alpha, err = jobs(v1alpha1.GroupVersion).List(ctx, fromCache)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(alpha.Items).To(HaveLen(storedAtOnce))
		}).WithContext(ctx).WithTimeout(3 * time.Minute).WithPolling(time.Second).Should(Succeed())
		AddReportEntry("filled", time.Since(began).String())

		for i := range alpha.Items {
			read := &alpha.Items[i]
			var number int
			_, err := fmt.Sscanf(read.GetName(), "stored-%d", &number)
			Expect(err).NotTo(HaveOccurred())
			_, content := storedJob(number)
			converted, err := conversion.Convert(content, v1alpha1.GroupVersion)
			Expect(err).NotTo(HaveOccurred())
			want := &unstructured.Unstructured{}
			Expect(want.UnmarshalJSON(converted)).To(Succeed())
			if !Expect(read.Object["spec"]).To(Equal(want.Object["spec"]), read.GetName()) ||
				!Expect(read.GetAnnotations()).To(Equal(want.GetAnnotations()), read.GetName()) {
				return
			}
		}
		_, content := storedJob(4711)
		stored, err := own.Stored(ctx, v1.GroupName, "trainingjobs", fixtures.Namespace, "stored-4711")
		Expect(err).NotTo(HaveOccurred())
		Expect(stored).To(Equal(content), "reading in another version wrote something")
	}, NodeTimeout(8*time.Minute))
})

// holdLease has somebody else lead, so that a manager serves and does no more.
func holdLease(ctx context.Context, core kubernetes.Interface) {
	GinkgoHelper()
	holder, hours := "somebody", int32(3600)
	now := metav1.NewMicroTime(time.Now())
	_, err := core.CoordinationV1().Leases(install.Namespace).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "penstock-manager.penstock.dev"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &hours, AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}
