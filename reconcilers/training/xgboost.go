package training

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
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
	env := pods.Environment{}
	env.Set("PYTHONUNBUFFERED", "1")
	env.Set("MASTER_ADDR", childName(c.job, v1.RoleMaster, 0))
	env.Set("MASTER_PORT", itoa(masterPort))
	env.Set("WORLD_SIZE", itoa(c.total()))
	env.Set("RANK", itoa(rank))
	if workers := c.crew(v1.RoleWorker); workers != nil && c.total() > 1 {
		addresses := make([]string, 0, workers.wanted())
		for _, worker := range workers.members {
			addresses = append(addresses, childName(c.job, v1.RoleWorker, worker.index))
		}
		env.Set("WORKER_PORT", itoa(c.portOf(workers.role)))
		env.Set("WORKER_ADDRS", strings.Join(addresses, ","))
	}
	env.IntoAll(pod)
}
