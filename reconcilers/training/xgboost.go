package training

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// xgboost runs XGBoost, whose tracker the master starts, and LightGBM, which
// wants the addresses of all workers. The environment is the Training
// Operator's. The job is done when its master is.
//
// Unlike there, a failed pod is replaced as its role's restart policy says, for
// OnFailure too, as for every other framework.
type xgboost struct{}

func (xgboost) roles() []v1.RoleName { return []v1.RoleName{v1.RoleMaster, v1.RoleWorker} }

func (xgboost) container(*v1.TrainingJob) string { return "xgboost" }

func (xgboost) port() corev1.ContainerPort {
	return corev1.ContainerPort{Name: "xgboostjob-port", ContainerPort: 9999}
}

func (xgboost) leads(c *census) *crew { return firstOf(c, v1.RoleMaster) }

func (f xgboost) succeeded(c *census) bool { return f.leads(c).done(c.job) }

func (f xgboost) equip(c *census, m *member, pod *corev1.Pod) {
	masterPort, rank := f.port().ContainerPort, m.index
	if master := c.crew(v1.RoleMaster); master != nil {
		masterPort = c.portOf(master.role)
		if m.role.Name != v1.RoleMaster {
			rank += master.wanted()
		}
	}
	env := environment{}
	env.set("PYTHONUNBUFFERED", "1")
	env.set("MASTER_ADDR", childName(c.job, v1.RoleMaster, 0))
	env.set("MASTER_PORT", itoa(masterPort))
	env.set("WORLD_SIZE", itoa(c.total()))
	env.set("RANK", itoa(rank))
	if workers := c.crew(v1.RoleWorker); workers != nil && c.total() > 1 {
		addresses := make([]string, 0, workers.wanted())
		for _, worker := range workers.members {
			addresses = append(addresses, childName(c.job, v1.RoleWorker, worker.index))
		}
		env.set("WORKER_PORT", itoa(c.portOf(workers.role)))
		env.set("WORKER_ADDRS", strings.Join(addresses, ","))
	}
	env.intoAll(pod)
}
