package integration

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// submitMPI creates an MPI job of two workers.
func submitMPI(ctx context.Context, ns, name string, mods ...fixtures.JobMod) *v1.TrainingJob {
	GinkgoHelper()
	job := fixtures.TrainingJob(name, append([]fixtures.JobMod{fixtures.Role(v1.RoleLauncher, 1), fixtures.Framework(v1.FrameworkMPI)}, mods...)...)
	job.Namespace, job.UID, job.Generation, job.CreationTimestamp = ns, "", 0, metav1.Time{}
	Expect(k8s.Create(ctx, job)).To(Succeed())
	return job
}

var _ = Describe("an MPI job", func() {
	// shows reads a child until it is as the matcher says.
	shows := func(ctx context.Context, ns, name string, child client.Object, matches OmegaMatcher) {
		GinkgoHelper()
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, child)).To(Succeed())
			g.Expect(child).To(matches)
		}).WithContext(ctx).Should(Succeed())
	}
	suspend := func(ctx context.Context, job *v1.TrainingJob, suspend bool) {
		GinkgoHelper()
		before := job.DeepCopy()
		job.Spec.RunPolicy.Suspend = new(suspend)
		Expect(k8s.Patch(ctx, job, client.MergeFrom(before))).To(Succeed())
	}

	It("gets one key pair, kept until it is suspended, and never in the log", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		job := submitMPI(ctx, ns, "ring")
		var secret, again corev1.Secret
		shows(ctx, ns, "ring-ssh", &secret, HaveField("Data", And(HaveKey("ssh-privatekey"), HaveKey("ssh-publickey"))))
		Expect(secret.Type).To(Equal(corev1.SecretTypeSSHAuth))
		Expect(metav1.IsControlledBy(&secret, job)).To(BeTrue())
		var config corev1.ConfigMap
		shows(ctx, ns, "ring-config", &config, HaveField("Data", HaveKeyWithValue("hostfile", "ring-worker-0 slots=1\nring-worker-1 slots=1\n")))

		By("starting the launcher once its workers are ready")
		for _, name := range []string{"ring-worker-0", "ring-worker-1"} {
			Expect(apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "ring-launcher-0"}, &corev1.Pod{}))).To(BeTrue())
			var pod corev1.Pod
			shows(ctx, ns, name, &pod, HaveField("Spec.Volumes", Not(BeEmpty())))
			fixtures.Running()(&pod)
			Expect(k8s.Status().Update(ctx, &pod)).To(Succeed())
		}
		var launcher corev1.Pod
		shows(ctx, ns, "ring-launcher-0", &launcher, HaveField("Spec.Volumes", ContainElement(HaveField("VolumeSource.Secret.SecretName", "ring-ssh"))))
		shows(ctx, ns, "ring-config", &config, HaveField("Data", HaveKeyWithValue("discover_hosts.sh", "#!/bin/sh\necho ring-worker-0:1\necho ring-worker-1:1\n")))

		By("keeping the key over a restart of the manager and mending what somebody changes in the lists")
		config.Data["hostfile"] = "elsewhere\n"
		Expect(k8s.Update(ctx, &config)).To(Succeed())
		shows(ctx, ns, "ring-config", &config, HaveField("Data", HaveKeyWithValue("hostfile", HavePrefix("ring-worker-0"))))
		shows(ctx, ns, "ring-ssh", &again, HaveField("UID", secret.UID))
		Expect(again.Data).To(Equal(secret.Data))
		log, err := os.ReadFile(manager.LogPath())
		Expect(err).NotTo(HaveOccurred())
		Expect(string(log)).NotTo(Or(ContainSubstring("PRIVATE KEY"), ContainSubstring("ecdsa-sha2")))

		By("taking the key away with the pods, and giving a new one")
		suspend(ctx, job, true)
		Eventually(func(ctx context.Context) bool {
			return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(&secret), &corev1.Secret{})) &&
				apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(&config), &corev1.ConfigMap{}))
		}).WithContext(ctx).Should(BeTrue())
		suspend(ctx, job, false)
		shows(ctx, ns, "ring-ssh", &again, HaveField("UID", Not(Equal(secret.UID))))
		Expect(again.Data).NotTo(Equal(secret.Data))
	})

	It("leaves a secret alone that has the name and is not its own, and says so", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "taken-ssh"}, StringData: map[string]string{"password": "x"}}
		Expect(k8s.Create(ctx, foreign)).To(Succeed())
		submitMPI(ctx, ns, "taken")
		var job v1.TrainingJob
		shows(ctx, ns, "taken", &job, HaveField("Status.Conditions", ContainElement(And(
			HaveField("Reason", v1.ChildNotOwnedReason), HaveField("Message", ContainSubstring("Secret taken-ssh"))))))
		shows(ctx, ns, "taken-ssh", &corev1.Secret{}, HaveField("Data", HaveKeyWithValue("password", []byte("x"))))
		// It would be tried again and again while others count writes.
		mustKubectl(ctx, "", "delete", "-n", ns, "trainingjob", "taken")
	})

	It("gives its launcher the right to exec into its workers alone, over transport Exec", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		submitMPI(ctx, ns, "exec", func(job *v1.TrainingJob) {
			job.Spec.MPI = &v1.MPI{Transport: v1.MPIExec, LauncherCreation: v1.LauncherAtStartup}
		})
		var role rbacv1.Role
		shows(ctx, ns, "exec-launcher", &role, HaveField("Rules", ContainElement(And(
			HaveField("Resources", ConsistOf("pods/exec")), HaveField("ResourceNames", ConsistOf("exec-worker-0", "exec-worker-1"))))))
		shows(ctx, ns, "exec-launcher", &rbacv1.RoleBinding{}, HaveField("RoleRef.Name", "exec-launcher"))
		shows(ctx, ns, "exec-launcher", &corev1.ServiceAccount{}, HaveField("OwnerReferences", HaveLen(1)))
		shows(ctx, ns, "exec-launcher-0", &corev1.Pod{}, HaveField("Spec.ServiceAccountName", "exec-launcher"))
		Expect(apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "exec-ssh"}, &corev1.Secret{}))).To(BeTrue())
	})
})
