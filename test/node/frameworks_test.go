package node

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

var _ = Describe("the processes of a job", func() {
	It("meet at the master of PyTorch", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "torch", fixtures.Master())
		succeeds(ctx, ns, "torch")
		Eventually(said(ns, "torch")).WithContext(ctx).Should(Equal(
			meeting("pytorch", "torch-master-0", "torch-worker-0", "torch-worker-1")))

		By("kubectl logs reaches the kubelet")
		out, _, err := control.Kubectl(ctx, "", "logs", "-n", ns, "torch-worker-1")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("pytorch rank=2 world=3 sum=6"))
	})

	It("meet by torchrun's rendezvous in an elastic job", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "elastic", fixtures.Elastic(2, 3))
		succeeds(ctx, ns, "elastic")
		// Who comes first gets the lower rank.
		first := meeting("torchrun", "elastic-worker-0", "elastic-worker-1")
		second := meeting("torchrun", "elastic-worker-1", "elastic-worker-0")
		Eventually(said(ns, "elastic")).WithContext(ctx).Should(Or(Equal(first), Equal(second)))
	})

	It("meet by TF_CONFIG of TensorFlow, the evaluator apart", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "tf", fixtures.Role(v1.RolePS, 1), fixtures.Role(v1.RoleEvaluator, 1), fixtures.Role(v1.RoleChief, 1),
			fixtures.Framework(v1.FrameworkTensorFlow))
		succeeds(ctx, ns, "tf")
		want := meeting("tensorflow", "tf-chief-0", "tf-worker-0", "tf-worker-1", "tf-ps-0")
		want["tf-evaluator-0"] = "tensorflow rank=0 world=1 sum=1"
		Eventually(said(ns, "tf")).WithContext(ctx).Should(Equal(want))
	})

	It("meet at the coordinator of JAX", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "jax", fixtures.Workers(3), fixtures.Framework(v1.FrameworkJAX))
		succeeds(ctx, ns, "jax")
		Eventually(said(ns, "jax")).WithContext(ctx).Should(Equal(meeting("jax", "jax-worker-0", "jax-worker-1", "jax-worker-2")))
	})

	It("meet at the first worker of PaddlePaddle", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "paddle", fixtures.Framework(v1.FrameworkPaddlePaddle))
		succeeds(ctx, ns, "paddle")
		first := meeting("paddle", "paddle-worker-0", "paddle-worker-1")
		second := meeting("paddle", "paddle-worker-1", "paddle-worker-0")
		Eventually(said(ns, "paddle")).WithContext(ctx).Should(Or(Equal(first), Equal(second)))
	})

	It("meet at the master of XGBoost", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "xgb", fixtures.Master(), fixtures.Framework(v1.FrameworkXGBoost))
		succeeds(ctx, ns, "xgb")
		Eventually(said(ns, "xgb")).WithContext(ctx).Should(Equal(meeting("xgboost", "xgb-master-0", "xgb-worker-0", "xgb-worker-1")))
	})

	It("meet where the master is in the network of its node", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "host", fixtures.Master(), fixtures.EachRole(func(role *v1.Role) {
			role.Template.Spec.HostNetwork = role.Name == v1.RoleMaster
		}))
		succeeds(ctx, ns, "host")
		Eventually(said(ns, "host")).WithContext(ctx).Should(Equal(
			meeting("pytorch", "host-master-0", "host-worker-0", "host-worker-1")))
		master := now(ctx, pods(ns, "host"))["host-master-0"]
		Expect(master.Status.PodIP).To(Equal(master.Status.HostIP))
	})
})

var _ = Describe("the launcher of an MPI job", func() {
	DescribeTable("starts processes in all slots over ssh", func(ctx context.Context, implementation v1.MPIImplementation) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "mpi", mpi(implementation), fixtures.CleanPods(v1.CleanPodRunning))
		succeeds(ctx, ns, "mpi")
		Eventually(said(ns, "mpi")).WithContext(ctx).Should(Equal(launched))
		Eventually(pods(ns, "mpi")).WithContext(ctx).Should(And(HaveLen(1), HaveKey("mpi-launcher-0")), "the workers are deleted")
	},
		Entry("for Open MPI", v1.MPIOpenMPI),
		Entry("for Intel MPI", v1.MPIIntel),
		Entry("for MPICH", v1.MPIMPICH),
	)

	It("starts processes by kubectl exec, where no sshd is", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "mpi", mpi(v1.MPIOpenMPI), fixtures.CleanPods(v1.CleanPodRunning), func(job *v1.TrainingJob) {
			job.Spec.MPI.Transport = v1.MPIExec
			job.Spec.MPI.KubectlImage = kubectlImage
		}, fixtures.EachRole(func(role *v1.Role) { role.Template.Spec.Containers[0].Image = shellImage }))
		succeeds(ctx, ns, "mpi")
		Eventually(said(ns, "mpi")).WithContext(ctx).Should(Equal(launched))
	})

	It("fails with the exit code of a process", func(ctx context.Context) {
		ns := newNamespace(ctx)
		submit(ctx, ns, "mpi", mpi(v1.MPIOpenMPI), roleTrains(v1.RoleLauncher, "-exit=7", "-ranks=3"), fixtures.Restart(v1.RestartNever))
		job := reaches(ctx, ns, "mpi", v1.PhaseFailed)
		Expect(job).To(failed(v1.TrainingJobPodFailedReason, "exit code 7"))
	})
})

// launched is what the launcher of such a job says: what its processes said.
var launched = map[string]string{
	"mpi-launcher-0": "mpi rank=0 world=4 sum=10\nmpi rank=1 world=4 sum=10\nmpi rank=2 world=4 sum=10\nmpi rank=3 world=4 sum=10",
}

// mpi makes a job of a launcher and two workers with two slots each. The
// workers' command is left to Penstock: it is sshd.
func mpi(implementation v1.MPIImplementation) fixtures.JobMod {
	return func(job *v1.TrainingJob) {
		fixtures.Role(v1.RoleLauncher, 1)(job)
		fixtures.Framework(v1.FrameworkMPI)(job)
		job.Spec.MPI = &v1.MPI{Implementation: implementation, SlotsPerWorker: new(int32(2))}
		fixtures.EachRole(func(role *v1.Role) {
			if role.Name == v1.RoleLauncher {
				role.Template.Spec.Containers[0].Command = []string{"mpirun", "/trainer"}
			}
		})(job)
	}
}

// withState gives every container a folder /state that outlives it.
func withState(source corev1.VolumeSource) func(*v1.Role) {
	return func(role *v1.Role) {
		spec := &role.Template.Spec
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "state", VolumeSource: source})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "state", MountPath: "/state"})
	}
}
