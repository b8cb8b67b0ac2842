package training

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// pytorch runs PyTorch, by torchrun or by a script that calls
// init_process_group itself. The environment is the Training Operator's.
//
// A job with a Master is done when the Master is; one without when all its
// workers are, or for an elastic one when all workers that ever started are.
type pytorch struct{}

func (pytorch) roles() []v1.RoleName { return []v1.RoleName{v1.RoleMaster, v1.RoleWorker} }

func (pytorch) container(*v1.TrainingJob) string { return "pytorch" }

func (pytorch) port() corev1.ContainerPort {
	return corev1.ContainerPort{Name: "pytorchjob-port", ContainerPort: 23456}
}

func (pytorch) leads(c *census) *crew { return firstOf(c, v1.RoleMaster, v1.RoleWorker) }

func (f pytorch) succeeded(c *census) bool { return f.leads(c).done(c.job) }

// equip gives every container of a pod the variables by which processes find
// each other. RANK is the rank of the pod; torchrun derives those of its
// processes.
func (f pytorch) equip(c *census, m *member, pod *corev1.Pod) {
	spec := ptr.Deref(c.job.Spec.PyTorch, v1.PyTorch{})
	processes := ptr.Deref(spec.ProcessesPerNode, "auto")
	total := c.total()

	env := pods.Environment{}
	env.Set("PYTHONUNBUFFERED", "1")
	if master := c.crew(v1.RoleMaster); master != nil {
		address, port := childName(c.job, v1.RoleMaster, 0), itoa(c.portOf(master.role))
		rank := m.index
		if m.role.Name != v1.RoleMaster {
			rank += master.wanted()
		}
		env.Set("MASTER_ADDR", address)
		env.Set("MASTER_PORT", port)
		env.Set("PET_MASTER_ADDR", address)
		env.Set("PET_MASTER_PORT", port)
		env.Set("WORLD_SIZE", itoa(total*processCount(processes)))
		env.Set("RANK", itoa(rank))
		env.Set("PET_NODE_RANK", itoa(rank))
	}
	env.Set("PET_NPROC_PER_NODE", processes)
	env.Set("PET_NNODES", f.nodes(c, total))
	if spec.MaxRestarts != nil {
		env.Set("PET_MAX_RESTARTS", itoa(*spec.MaxRestarts))
	}
	if c.job.Spec.Elastic != nil || spec.Rendezvous != nil {
		f.meet(c, ptr.Deref(spec.Rendezvous, v1.Rendezvous{}), &env)
	}
	env.IntoAll(pod)
}

// nodes is the number of pods, or the range of it that an elastic job bears: the
// bounds count workers, and a Master is a node beside them.
func (pytorch) nodes(c *census, total int32) string {
	elastic := c.job.Spec.Elastic
	if elastic == nil {
		return itoa(total)
	}
	workers := total
	if crew := c.crew(v1.RoleWorker); crew != nil {
		workers = crew.wanted()
	}
	least := ptr.Deref(elastic.MinReplicas, ptr.Deref(elastic.MaxReplicas, workers))
	most := ptr.Deref(elastic.MaxReplicas, least)
	others := total - workers
	return itoa(least+others) + ":" + itoa(most+others)
}

// meet adds the variables of the rendezvous.
func (pytorch) meet(c *census, r v1.Rendezvous, env *pods.Environment) {
	// Without a name of its own, the job would share one with every other job
	// that uses the same store.
	id := ptr.Deref(r.ID, string(c.job.UID))
	host, port := childName(c.job, v1.RoleWorker, 0), c.framework.port().ContainerPort
	if crew := c.crew(v1.RoleWorker); crew != nil {
		port = c.portOf(crew.role)
	}
	backend := r.Backend
	if backend == "" {
		backend = v1.RendezvousC10d
	}
	env.Set("PET_RDZV_BACKEND", string(backend))
	env.Set("PET_RDZV_ENDPOINT", ptr.Deref(r.Host, host)+":"+itoa(ptr.Deref(r.Port, port)))
	env.Set("PET_RDZV_ID", id)
	if len(r.Options) > 0 {
		options := make([]string, 0, len(r.Options))
		for _, option := range r.Options {
			options = append(options, option.Key+"="+ptr.Deref(option.Value, ""))
		}
		env.Set("PET_RDZV_CONF", strings.Join(options, ","))
	}
	if r.Mode == v1.RendezvousStandalone {
		// torchrun reads a number here and stops at the empty string that the
		// Training Operator gives it.
		env.Set("PET_STANDALONE", "1")
	}
}

// processCount is the number of processes in each pod as far as it is known
// before the pod runs: 1 for auto, cpu and gpu.
func processCount(processes string) int32 {
	n, err := strconv.ParseInt(processes, 10, 32)
	if err != nil || n < 1 {
		return 1
	}
	return int32(n)
}
