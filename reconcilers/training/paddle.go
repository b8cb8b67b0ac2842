package training

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// paddle runs PaddlePaddle by paddle.distributed.launch: collectively where
// there are workers only, with a parameter server where there is a Master. The
// environment is the Training Operator's. The job is done when its master is,
// or without one when all its workers are.
type paddle struct{}

func (paddle) roles() []v1.RoleName { return []v1.RoleName{v1.RoleMaster, v1.RoleWorker} }

func (paddle) container(*v1.TrainingJob) string { return "paddle" }

func (paddle) port() corev1.ContainerPort {
	return corev1.ContainerPort{Name: "master", ContainerPort: 36543}
}

func (paddle) leads(c *census) *crew { return firstOf(c, v1.RoleMaster, v1.RoleWorker) }

func (f paddle) succeeded(c *census) bool { return f.leads(c).done(c.job) }

// equip tells every container where rank 0 listens. Rank 0 itself listens at
// its own address: the name of its service need not lead to it yet.
func (f paddle) equip(c *census, m *member, pod *corev1.Pod) {
	first := f.leads(c)
	if first == nil {
		return
	}
	port := ":" + itoa(c.portOf(first.role))
	env := pods.Environment{}
	env.Set("PYTHONUNBUFFERED", "1")
	env.Set("PADDLE_JOB_ID", c.job.Name)
	env.Set("PADDLE_NNODES", itoa(c.total()))
	if m.role.Name == first.role.Name && m.index == 0 {
		env.SetFrom("POD_IP_DUMMY", "status.podIP")
		env.Set("PADDLE_MASTER", "$(POD_IP_DUMMY)"+port)
	} else {
		env.Set("PADDLE_MASTER", childName(c.job, first.role.Name, 0)+port)
	}
	if first.role.Name == v1.RoleMaster {
		if m.role.Name == v1.RoleMaster {
			env.Set("PADDLE_SERVER_NUM", "1")
		} else {
			env.Set("PADDLE_TRAINER_NUM", "1")
		}
	}
	env.IntoAll(pod)
}
