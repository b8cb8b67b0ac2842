package training

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// mpiExec starts processes by kubectl exec, as the Training Operator's MPIJob
// does: for images without sshd. The launcher gets a service account that may
// exec into the job's workers and nothing else, unless its template names one.
type mpiExec struct{}

const (
	kubexec          = "kubexec.sh"
	kubectlDir       = "/opt/kube"
	kubectlVolume    = "mpi-job-kubectl"
	kubectlContainer = "kubectl-delivery"
)

// files holds the agent that mpirun calls as it would ssh: with a host and a
// command. Hosts are pods, by name.
func (mpiExec) files(c *census) map[string]string {
	return map[string]string{kubexec: "#!/bin/sh\n" +
		"pod=$1\nshift\nPATH=" + kubectlDir + ":$PATH\n" +
		`exec kubectl exec "$pod" -c ` + workerContainer(c) + ` -- /bin/sh -c "$*"` + "\n"}
}

// workerContainer is the container that computes, by its name in the template.
func workerContainer(c *census) string {
	if workers := c.crew(v1.RoleWorker); workers != nil {
		if main := pods.MainContainer(&workers.role.Template.Spec, c.container()); main != nil {
			return main.Name
		}
	}
	return c.container()
}

func (mpiExec) supplies(p *planner) supplies {
	launcher := p.census.crew(v1.RoleLauncher)
	if launcher == nil || launcher.role.Template.Spec.ServiceAccountName != "" {
		return supplies{}
	}
	var workers []string
	if crew := p.census.crew(v1.RoleWorker); crew != nil {
		for _, m := range crew.members {
			workers = append(workers, childName(p.job, m.role.Name, m.index))
		}
	}
	name, ns, labels := launcherAccount(p.job), p.job.Namespace, jobLabels(p.job)
	role := rbacv1ac.Role(name, ns).WithLabels(labels).WithRules(
		rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("pods").WithVerbs("get", "list", "watch"))
	if len(workers) > 0 {
		// kubectl opens a web socket, which is a get, and falls back to a create.
		role.WithRules(rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("pods/exec").
			WithVerbs("get", "create").WithResourceNames(workers...))
	}
	return supplies{apply: []runtime.ApplyConfiguration{
		corev1ac.ServiceAccount(name, ns).WithLabels(labels),
		role,
		rbacv1ac.RoleBinding(name, ns).WithLabels(labels).
			WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(name)).
			WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(name).WithNamespace(ns)),
	}}
}

func launcherAccount(job *v1.TrainingJob) string { return job.Name + "-launcher" }

func (mpiExec) equip(c *census, m *member, pod *corev1.Pod, main *corev1.Container) {
	if m.role.Name != v1.RoleLauncher {
		if len(main.Command) == 0 && len(main.Args) == 0 {
			// A worker only has to be there; the shell passes the signal on.
			main.Command = []string{"/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"}
		}
		return
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = launcherAccount(c.job)
	}
	deliverKubectl(c, pod, main)
	agent, hosts := mpiConfigDir+"/"+kubexec, mpiConfigDir+"/"+mpiHostfile
	env := pods.Environment{}
	switch mpiOf(c.job).Implementation {
	case v1.MPIIntel:
		env.Set("I_MPI_HYDRA_BOOTSTRAP", "rsh")
		env.Set("I_MPI_HYDRA_BOOTSTRAP_EXEC", agent)
		env.Set("I_MPI_HYDRA_HOST_FILE", hosts)
	case v1.MPIMPICH:
		env.Set("HYDRA_LAUNCHER", "rsh")
		env.Set("HYDRA_LAUNCHER_EXEC", agent)
		env.Set("HYDRA_HOST_FILE", hosts)
	default:
		env.Set("OMPI_MCA_plm_rsh_agent", agent)
		env.Set("OMPI_MCA_orte_default_hostfile", hosts)
	}
	env.Into(main)
}

// deliverKubectl copies kubectl out of the image that the job names for it. The
// launcher's own image must hold it when none is named: an image from a public
// registry would be out of reach for many.
func deliverKubectl(c *census, pod *corev1.Pod, main *corev1.Container) {
	image := mpiOf(c.job).KubectlImage
	if image == "" {
		return
	}
	pods.Mount(pod, main, kubectlDir, corev1.Volume{Name: kubectlVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("512Mi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("5Gi"),
	}
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
		Name:         kubectlContainer,
		Image:        image,
		Command:      []string{"/bin/sh", "-c", `cp "$(command -v kubectl)" ` + kubectlDir + "/kubectl"},
		VolumeMounts: []corev1.VolumeMount{{Name: kubectlVolume, MountPath: kubectlDir}},
		Resources:    corev1.ResourceRequirements{Limits: amounts, Requests: amounts.DeepCopy()},
	})
}
