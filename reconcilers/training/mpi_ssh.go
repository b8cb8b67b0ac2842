package training

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// mpiSSH starts processes over ssh, as the MPI Operator's v2beta1 does: the pods
// share a key pair of the job's own, and workers run sshd.
type mpiSSH struct{}

const (
	sshVolumeName = "ssh-auth"
	sshPublicKey  = "ssh-publickey"
	rootSSHDir    = "/root/.ssh"
	// sshOptions bridge the moment in which a name is not yet known or an sshd
	// not yet there. Keys of hosts are made with the image or at each start:
	// there is nothing to compare them with.
	sshOptions = "-o ConnectionAttempts=10 -o StrictHostKeyChecking=no"
)

func (mpiSSH) files(*census) map[string]string { return nil }

// supplies asks for the key pair, once. It is made by a generator: a plan that
// made it would not be pure, nor give the same twice.
func (mpiSSH) supplies(p *planner) supplies {
	name := sshSecretName(p.job)
	for _, secret := range plan.ChildrenOf[*corev1.Secret](p.observed) {
		if secret.Name == name {
			return supplies{}
		}
	}
	return supplies{generate: []plan.Generated{{
		Generator: sshKeyGenerator,
		Child: &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.job.Namespace, Labels: jobLabels(p.job)},
			Type:       corev1.SecretTypeSSHAuth,
			Immutable:  new(true),
		},
	}}}
}

func sshSecretName(job *v1.TrainingJob) string { return job.Name + "-ssh" }

func (mpiSSH) equip(c *census, m *member, pod *corev1.Pod, main *corev1.Container) {
	mountKeys(c, pod, main)
	if m.role.Name != v1.RoleLauncher {
		if len(main.Command) == 0 && len(main.Args) == 0 {
			main.Command = []string{"/usr/sbin/sshd", "-De"}
		}
		return
	}
	hosts, slots := mpiConfigDir+"/"+mpiHostfile, itoa(mpiSlots(c.job))
	env := pods.Environment{}
	switch mpiOf(c.job).Implementation {
	case v1.MPIIntel:
		env.Set("I_MPI_HYDRA_HOST_FILE", hosts)
		env.Set("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", sshOptions)
		env.Set("I_MPI_PERHOST", slots)
	case v1.MPIMPICH:
		env.Set("HYDRA_HOST_FILE", hosts)
		env.Set("HYDRA_LAUNCH_EXTRA_ARGS", sshOptions)
	default:
		env.Set("OMPI_MCA_orte_keep_fqdn_hostnames", "true")
		env.Set("OMPI_MCA_orte_default_hostfile", hosts)
		env.Set("OMPI_MCA_plm_rsh_args", sshOptions)
		env.Set("OMPI_MCA_orte_set_default_slots", slots)
	}
	env.Into(main)
}

// mountKeys gives a pod the key pair, and itself as the one who may come in.
func mountKeys(c *census, pod *corev1.Pod, main *corev1.Container) {
	dir := mpiOf(c.job).SSHAuthMountPath
	if dir == "" {
		dir = rootSSHDir
	}
	source := &corev1.SecretVolumeSource{
		SecretName: sshSecretName(c.job),
		Items: []corev1.KeyToPath{
			{Key: corev1.SSHAuthPrivateKey, Path: "id_rsa"},
			{Key: sshPublicKey, Path: "id_rsa.pub"},
			{Key: sshPublicKey, Path: "authorized_keys"},
		},
	}
	if dir == rootSSHDir {
		// ssh refuses keys that others can read. Elsewhere the image's user, who
		// does not own the files, must be able to; such images copy them.
		source.DefaultMode = ptr.To[int32](0o600)
	}
	pods.Mount(pod, main, dir, corev1.Volume{Name: sshVolumeName, VolumeSource: corev1.VolumeSource{Secret: source}})
}
