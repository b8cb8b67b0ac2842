package training

import (
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// tensorflow runs TensorFlow. Its processes find each other by TF_CONFIG, as
// the Training Operator writes it, in the main container only.
//
// A job with a Chief (or Master, its older name) is done when that is; one
// without when worker 0 is, or all workers are, as spec.tensorflow says. An
// Evaluator looks at checkpoints from beside the cluster: neither its success
// nor its failure decides anything.
type tensorflow struct{}

func (tensorflow) roles() []v1.RoleName {
	return []v1.RoleName{v1.RoleChief, v1.RoleMaster, v1.RoleWorker, v1.RolePS, v1.RoleEvaluator}
}

func (tensorflow) container(*v1.TrainingJob) string { return "tensorflow" }

func (tensorflow) port() corev1.ContainerPort {
	return corev1.ContainerPort{Name: "tfjob-port", ContainerPort: 2222}
}

func (tensorflow) leads(c *census) *crew {
	return firstOf(c, v1.RoleChief, v1.RoleMaster, v1.RoleWorker)
}

func (f tensorflow) succeeded(c *census) bool {
	lead := f.leads(c)
	switch {
	case lead == nil:
		return false
	case lead.role.Name != v1.RoleWorker:
		return lead.done(c.job)
	case ptr.Deref(c.job.Spec.TensorFlow, v1.TensorFlow{}).SuccessPolicy != v1.SuccessAllWorkers:
		return lead.members[0].State == pods.Succeeded
	case f.dynamic(c.job):
		// Workers that have left for good are not waited for.
		n, gone := lead.count(pods.Succeeded), lead.failedForGood()
		return n > 0 && (n+gone == lead.wanted() || lead.done(c.job))
	default:
		return lead.done(c.job)
	}
}

// forgives an Evaluator, and dynamic workers as long as success can still come.
func (f tensorflow) forgives(c *census, m *member) bool {
	switch m.role.Name {
	case v1.RoleEvaluator:
		return true
	case v1.RoleWorker:
		lead := f.leads(c)
		if !f.dynamic(c.job) || lead == nil {
			return false
		}
		if lead.role.Name != v1.RoleWorker {
			return true
		}
		if ptr.Deref(c.job.Spec.TensorFlow, v1.TensorFlow{}).SuccessPolicy != v1.SuccessAllWorkers {
			return m.index != 0
		}
		return lead.failedForGood() < lead.wanted()
	default:
		return false
	}
}

// serves the others from the parameter servers: one that ends has done nothing
// that counts.
func (tensorflow) serves(role v1.RoleName) bool { return role == v1.RolePS }

func (tensorflow) dynamic(job *v1.TrainingJob) bool {
	return ptr.Deref(job.Spec.TensorFlow, v1.TensorFlow{}).Workers == v1.WorkersDynamic
}

// tfConfig is the JSON of TF_CONFIG. The values of the cluster are lists of
// addresses or, for workers that come and go, maps from index to address.
type tfConfig struct {
	Cluster     map[string]any `json:"cluster"`
	Task        tfTask         `json:"task"`
	Environment string         `json:"environment,omitempty"`
}

type tfTask struct {
	Type  string `json:"type"`
	Index int32  `json:"index"`
}

// equip writes TF_CONFIG, unless the pod is alone: TensorFlow then has nobody
// to wait for.
func (f tensorflow) equip(c *census, m *member, pod *corev1.Pod) {
	if c.total() <= 1 {
		return
	}
	config := tfConfig{
		Cluster:     f.cluster(c),
		Task:        tfTask{Type: strings.ToLower(string(m.role.Name)), Index: m.index},
		Environment: "cloud",
	}
	if f.dynamic(c.job) {
		f.loosen(c, m, &config)
	}
	text, err := json.Marshal(config)
	if err != nil {
		return // Maps of texts and numbers always have a JSON form.
	}
	env := pods.Environment{}
	env.Set("TF_CONFIG", string(text))
	env.Into(pods.MainContainer(&pod.Spec, f.container(c.job)))
}

// cluster lists the addresses of every role but the Evaluator: TensorFlow
// expects that one outside, and a cluster that lists it waits for it.
func (tensorflow) cluster(c *census) map[string]any {
	cluster := map[string]any{}
	for _, crew := range c.crews {
		if crew.role.Name == v1.RoleEvaluator || crew.wanted() == 0 {
			continue
		}
		addresses := make([]string, 0, crew.wanted())
		for _, m := range crew.members {
			addresses = append(addresses, tfAddress(c, m))
		}
		cluster[strings.ToLower(string(crew.role.Name))] = addresses
	}
	return cluster
}

// loosen makes the form for workers that come and go: a worker is told of
// itself alone, and nobody else of any worker. Chief and parameter servers stay
// and are listed for all.
func (tensorflow) loosen(c *census, m *member, config *tfConfig) {
	config.Environment = ""
	delete(config.Cluster, strings.ToLower(string(v1.RoleWorker)))
	if m.role.Name == v1.RoleWorker {
		config.Cluster[config.Task.Type] = map[string]string{strconv.Itoa(int(m.index)): tfAddress(c, m)}
	}
}

func tfAddress(c *census, m *member) string {
	return childName(c.job, m.role.Name, m.index) + "." + c.job.Namespace + ".svc:" + itoa(c.portOf(m.role))
}
