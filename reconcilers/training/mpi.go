package training

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// mpi runs MPI: a launcher starts processes in the workers, over ssh as in the
// MPI Operator's v2beta1, or by kubectl exec as in the Training Operator (see
// transport). The job is done when its launcher is. Workers only serve it: they
// have no end of their own.
//
// Hosts are named by the pods' own names, which are what gethostname says in
// them, so that no daemon takes itself for another host; each has a service of
// that name, the launcher too, which daemons call back.
type mpi struct{}

const (
	mpiConfigDir  = "/etc/mpi"
	mpiHostfile   = "hostfile"
	mpiDiscover   = "discover_hosts.sh"
	mpiConfigName = "mpi-job-config"
)

// transport is how a launcher starts processes in workers.
type transport interface {
	// files returns what is in the config map beside the lists of hosts.
	files(c *census) map[string]string
	// supplies returns what else the pods need.
	supplies(p *planner) supplies
	// equip prepares the main container, and the pod, of one member.
	equip(c *census, m *member, pod *corev1.Pod, main *corev1.Container)
}

func mpiOf(job *v1.TrainingJob) v1.MPI { return ptr.Deref(job.Spec.MPI, v1.MPI{}) }

func transportOf(job *v1.TrainingJob) transport {
	if mpiOf(job).Transport == v1.MPIExec {
		return mpiExec{}
	}
	return mpiSSH{}
}

func (mpi) roles() []v1.RoleName { return []v1.RoleName{v1.RoleLauncher, v1.RoleWorker} }

func (mpi) container(job *v1.TrainingJob) string {
	if name := mpiOf(job).MainContainer; name != "" {
		return name
	}
	return "mpi"
}

// port is none: what listens in a worker is the image's business.
func (mpi) port() corev1.ContainerPort { return corev1.ContainerPort{} }

func (mpi) leads(c *census) *crew { return firstOf(c, v1.RoleLauncher) }

func (f mpi) succeeded(c *census) bool { return f.leads(c).done(c.job) }

func (mpi) serves(role v1.RoleName) bool { return role == v1.RoleWorker }

// awaits says that the launcher waits for its workers, unless the job says
// otherwise: a launcher that comes first finds no names and no sshd, and uses
// up its restarts. Of an elastic job the least number of workers is enough.
//
// A worker that cannot come keeps the launcher waiting until the deadline; one
// that fails for good fails the job.
func (f mpi) awaits(c *census, m *member) string {
	workers := c.crew(v1.RoleWorker)
	if !f.follows(c, m.role.Name) {
		return ""
	}
	least := workers.wanted()
	if elastic := c.job.Spec.Elastic; elastic != nil {
		least = min(least, ptr.Deref(elastic.MinReplicas, least))
	}
	if workers.ready() >= least {
		return ""
	}
	return "the launcher waits for " + itoa(least) + " workers to be ready; " + itoa(workers.ready()) + " are"
}

// follows says whether a role is the launcher and waits for workers.
func (mpi) follows(c *census, role v1.RoleName) bool {
	return role == v1.RoleLauncher && c.crew(v1.RoleWorker) != nil && mpiOf(c.job).LauncherCreation != v1.LauncherAtStartup
}

// correct takes a worker that has ended before there was a launcher for failed,
// whatever its exit code: it was to wait for one, and the launcher would wait
// for it for ever.
func (f mpi) correct(c *census) {
	launchers, workers := c.crew(v1.RoleLauncher), c.crew(v1.RoleWorker)
	if launchers == nil || workers == nil || launchers.wanted() == 0 ||
		launchers.members[0].State != pods.Missing || f.awaits(c, launchers.members[0]) == "" {
		return
	}
	for _, m := range workers.members {
		if m.State == pods.Succeeded {
			m.State = pods.Failed
		}
	}
}

// supply returns the config map with the lists of hosts, and what the transport
// needs.
func (f mpi) supply(p *planner) supplies {
	config := map[string]string{
		mpiHostfile: f.hostfile(p.census),
		mpiDiscover: f.discoverHosts(p.census),
	}
	t := transportOf(p.job)
	maps.Copy(config, t.files(p.census))
	needs := t.supplies(p)
	needs.apply = append([]runtime.ApplyConfiguration{
		corev1ac.ConfigMap(mpiConfigMapName(p.job), p.job.Namespace).WithLabels(jobLabels(p.job)).WithData(config),
	}, needs.apply...)
	return needs
}

func mpiConfigMapName(job *v1.TrainingJob) string { return job.Name + "-config" }

// hostfile lists all wanted hosts, the launcher first where it computes too.
func (f mpi) hostfile(c *census) string {
	var text strings.Builder
	for _, host := range f.hosts(c, func(*member) bool { return true }) {
		text.WriteString(host)
		switch mpiOf(c.job).Implementation {
		case v1.MPIIntel, v1.MPIMPICH:
			text.WriteString(":")
		default:
			text.WriteString(" slots=")
		}
		text.WriteString(itoa(mpiSlots(c.job)) + "\n")
	}
	return text.String()
}

// discoverHosts is a script that prints the hosts there are now, with their
// slots: Horovod's elastic mode runs it again and again.
func (f mpi) discoverHosts(c *census) string {
	var text strings.Builder
	text.WriteString("#!/bin/sh\n")
	for _, host := range f.hosts(c, func(m *member) bool { return m.State == pods.Active }) {
		text.WriteString("echo " + host + ":" + itoa(mpiSlots(c.job)) + "\n")
	}
	return text.String()
}

func (mpi) hosts(c *census, counts func(*member) bool) []string {
	var hosts []string
	for _, crew := range c.crews {
		if crew.role.Name == v1.RoleLauncher && mpiOf(c.job).Launcher != v1.LauncherAsWorker {
			continue
		}
		for _, m := range crew.members {
			if counts(m) {
				hosts = append(hosts, childName(c.job, m.role.Name, m.index))
			}
		}
	}
	return hosts
}

func mpiSlots(job *v1.TrainingJob) int32 { return ptr.Deref(mpiOf(job).SlotsPerWorker, 1) }

// equip prepares launcher and workers. Only the main container is touched.
func (f mpi) equip(c *census, m *member, pod *corev1.Pod) {
	main := pods.MainContainer(&pod.Spec, f.container(c.job))
	env := pods.Environment{}
	env.Set("K_MPI_JOB_ROLE", strings.ToLower(string(m.role.Name)))
	if m.role.Name == v1.RoleLauncher && mpiOf(c.job).Launcher != v1.LauncherAsWorker && !asksForAccelerator(main) {
		// Without these the runtime shows a container that asks for no GPU all
		// GPUs of its node.
		env.Set("NVIDIA_VISIBLE_DEVICES", "")
		env.Set("NVIDIA_DRIVER_CAPABILITIES", "")
	}
	env.Into(main)
	if m.role.Name == v1.RoleLauncher {
		mountConfig(c, pod, main)
	}
	transportOf(c.job).equip(c, m, pod, main)
}

func mountConfig(c *census, pod *corev1.Pod, main *corev1.Container) {
	items := []corev1.KeyToPath{
		{Key: mpiHostfile, Path: mpiHostfile, Mode: ptr.To[int32](0o444)},
		{Key: mpiDiscover, Path: mpiDiscover, Mode: ptr.To[int32](0o555)},
	}
	for _, name := range slices.Sorted(maps.Keys(transportOf(c.job).files(c))) {
		items = append(items, corev1.KeyToPath{Key: name, Path: name, Mode: ptr.To[int32](0o555)})
	}
	pods.Mount(pod, main, mpiConfigDir, corev1.Volume{Name: mpiConfigName, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: mpiConfigMapName(c.job)},
			Items:                items,
		},
	}})
}

// asksForAccelerator says whether a container asks for any device: an extended
// resource, or a claim.
func asksForAccelerator(container *corev1.Container) bool {
	for name := range container.Resources.Limits {
		if domain, _, extended := strings.Cut(string(name), "/"); extended && !strings.HasSuffix(domain, "kubernetes.io") {
			return true
		}
	}
	return len(container.Resources.Claims) > 0
}
