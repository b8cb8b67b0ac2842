package training

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// framework is what one framework knows that the others do not. Restarts,
// deadlines, cleaning, suspension, names and services are shared.
type framework interface {
	// roles returns the names of the roles there can be, in the order in which
	// they are judged.
	roles() []v1.RoleName
	// container returns the name of the main container, whose exit code is the
	// pod's.
	container(job *v1.TrainingJob) string
	// port returns the port at which the main container is found by its peers,
	// for a template that does not name it.
	port() corev1.ContainerPort
	// equip adds to the pod of one member what the framework needs there:
	// environment, volumes, mounts.
	equip(c *census, m *member, pod *corev1.Pod)
	// leads returns the crew that decides: the job runs while one of its pods
	// does. Nil when the job has no such pods.
	leads(c *census) *crew
	// succeeded says whether the job has done its work.
	succeeded(c *census) bool
}

// forgiving is what a framework also implements if it can go on without some of
// its pods.
type forgiving interface {
	// forgives says whether this pod may fail for good without the job failing.
	forgives(c *census, m *member) bool
}

// correcting is what a framework also implements if the end of a pod can mean
// something else than it tells by itself.
type correcting interface {
	correct(c *census)
}

// serving is what a framework also implements if pods of a role work for the
// others until the job ends, and have no end of their own that counts.
type serving interface {
	serves(role v1.RoleName) bool
}

// frameworks holds all frameworks of v1.Framework.
var frameworks = map[v1.Framework]framework{
	v1.FrameworkPyTorch:      pytorch{},
	v1.FrameworkTensorFlow:   tensorflow{},
	v1.FrameworkMPI:          mpi{},
	v1.FrameworkPaddlePaddle: paddle{},
	v1.FrameworkXGBoost:      xgboost{},
	v1.FrameworkJAX:          jax{},
}

// firstOf returns the first of the named crews that wants any pods.
func firstOf(c *census, names ...v1.RoleName) *crew {
	for _, name := range names {
		if crew := c.crew(name); crew != nil && crew.wanted() > 0 {
			return crew
		}
	}
	return nil
}

// portOf returns the number of the framework's port in a role's template, or
// the framework's own when the template does not name it.
func (c *census) portOf(role *v1.Role) int32 {
	want := c.framework.port()
	if container := pods.MainContainer(&role.Template.Spec, c.framework.container(c.job)); container != nil {
		for _, port := range container.Ports {
			if port.Name == want.Name {
				return port.ContainerPort
			}
		}
	}
	return want.ContainerPort
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }
