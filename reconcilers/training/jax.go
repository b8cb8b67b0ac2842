package training

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// jax runs JAX, whose processes find each other through the coordinator in
// worker 0. The environment is the Training Operator's. The job is done when all
// its workers are.
type jax struct{}

func (jax) roles() []v1.RoleName { return []v1.RoleName{v1.RoleWorker} }

func (jax) container(*v1.TrainingJob) string { return "jax" }

func (jax) port() corev1.ContainerPort {
	return corev1.ContainerPort{Name: "jaxjob-port", ContainerPort: 6666}
}

func (jax) leads(c *census) *crew { return firstOf(c, v1.RoleWorker) }

func (f jax) succeeded(c *census) bool { return f.leads(c).done(c.job) }

func (jax) equip(c *census, m *member, pod *corev1.Pod) {
	env := pods.Environment{}
	env.Set("PYTHONUNBUFFERED", "1")
	env.Set("COORDINATOR_ADDRESS", childName(c.job, v1.RoleWorker, 0))
	env.Set("COORDINATOR_PORT", itoa(c.portOf(m.role)))
	env.Set("NUM_PROCESSES", itoa(c.total()))
	env.Set("PROCESS_ID", itoa(m.index))
	env.IntoAll(pod)
}
