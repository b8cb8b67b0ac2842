package conversion

import (
	"slices"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
)

// trainingJobV1alpha1 converts between v1 and the shape of the Kubeflow
// Training Operator's jobs.
var trainingJobV1alpha1 = newSpoke("v1alpha1", TrainingJobSpecToHub, TrainingJobSpecFromHub, emptyTrainingHub, emptyTrainingSpoke, fieldTable{
	pairs: fieldPairs{
		{"gang/minAvailable", "runPolicy/schedulingPolicy/minAvailable"},
		{"gang/queueName", "runPolicy/schedulingPolicy/queue"},
		{"gang/priorityClassName", "runPolicy/schedulingPolicy/priorityClass"},
		{"gang/minResources", "runPolicy/schedulingPolicy/minResources"},
		{"gang/scheduleTimeoutSeconds", "runPolicy/schedulingPolicy/scheduleTimeoutSeconds"},
		{"gang/scheduler", ""},
		{"gang/topology", ""},
		{"gang", "runPolicy/schedulingPolicy"},
		{"runPolicy/restart", ""},
		{"runPolicy", "runPolicy"},
		{"elastic/minReplicas", "elasticPolicy/minReplicas"},
		{"elastic/maxReplicas", "elasticPolicy/maxReplicas"},
		{"elastic/metrics", "elasticPolicy/metrics"},
		{"elastic", "elasticPolicy"},
		{"pytorch/processesPerNode", "nprocPerNode"},
		{"pytorch/maxRestarts", "elasticPolicy/maxRestarts"},
		{"pytorch/rendezvous/backend", "elasticPolicy/rdzvBackend"},
		{"pytorch/rendezvous/host", "elasticPolicy/rdzvHost"},
		{"pytorch/rendezvous/port", "elasticPolicy/rdzvPort"},
		{"pytorch/rendezvous/id", "elasticPolicy/rdzvId"},
		{"pytorch/rendezvous/options", "elasticPolicy/rdzvConf"},
		{"pytorch/rendezvous/mode", "elasticPolicy/standalone"},
		{"pytorch/rendezvous", "elasticPolicy"},
		{"tensorflow/successPolicy", "successPolicy"},
		{"tensorflow/workers", "enableDynamicWorker"},
		{"mpi/slotsPerWorker", "slotsPerWorker"},
		{"mpi/implementation", "mpiImplementation"},
		{"mpi/sshAuthMountPath", "sshAuthMountPath"},
		{"mpi/launcherCreation", "launcherCreationPolicy"},
		{"mpi/launcher", "runLauncherAsWorker"},
		{"mpi/mainContainer", "mainContainer"},
		{"mpi/transport", ""},
		{"mpi/kubectlImage", ""},
	},
	roles: frameworkMaps{},
})

// emptyTrainingHub leaves the room of the list that templates are in: they are
// most of a spec's memory.
func emptyTrainingHub(spec *v1.TrainingJobSpec) {
	clear(spec.Roles)
	*spec = v1.TrainingJobSpec{Roles: spec.Roles[:0]}
}

func emptyTrainingSpoke(spec *v1alpha1.TrainingJobSpec) { *spec = v1alpha1.TrainingJobSpec{} }

// A frameworkMap says which map of replica specs belongs to a framework.
type frameworkMap struct {
	framework v1.Framework
	field     string
	of        func(*v1alpha1.TrainingJobSpec) *v1alpha1.ReplicaSpecs
}

// replicaMaps are the maps of replica specs. Where several are set, which the
// schema forbids, the first one counts.
var replicaMaps = []frameworkMap{
	{v1.FrameworkPyTorch, "pytorchReplicaSpecs", func(s *v1alpha1.TrainingJobSpec) *v1alpha1.ReplicaSpecs { return &s.PyTorchReplicaSpecs }},
	{v1.FrameworkTensorFlow, "tfReplicaSpecs", func(s *v1alpha1.TrainingJobSpec) *v1alpha1.ReplicaSpecs { return &s.TFReplicaSpecs }},
	{v1.FrameworkMPI, "mpiReplicaSpecs", func(s *v1alpha1.TrainingJobSpec) *v1alpha1.ReplicaSpecs { return &s.MPIReplicaSpecs }},
	{v1.FrameworkPaddlePaddle, "paddleReplicaSpecs", func(s *v1alpha1.TrainingJobSpec) *v1alpha1.ReplicaSpecs { return &s.PaddleReplicaSpecs }},
	{v1.FrameworkXGBoost, "xgbReplicaSpecs", func(s *v1alpha1.TrainingJobSpec) *v1alpha1.ReplicaSpecs { return &s.XGBReplicaSpecs }},
	{v1.FrameworkJAX, "jaxReplicaSpecs", func(s *v1alpha1.TrainingJobSpec) *v1alpha1.ReplicaSpecs { return &s.JAXReplicaSpecs }},
}

// frameworkMaps finds the roles of a job in the map of replica specs that it
// uses.
type frameworkMaps struct{}

func (m frameworkMaps) lookUp(p pointer, spec tree, up bool) (pointer, bool) {
	roleMap := m.inUse(spec)
	switch {
	case !up && slices.Equal(p, pointer{"elastic", "replicas"}):
		return pointer{roleMap, string(v1.RoleWorker), "replicas"}, true
	case up && p[0] == roleMap:
		return append(pointer{"roles"}, p[1:]...), true
	case !up && p[0] == "framework":
		return pointer{roleMap}, true
	case !up && p[0] == "roles":
		return m.roleField(p, roleMap), true
	}
	return nil, false
}

// roleField gives where a field of v1's roles is in a map of roles by name.
func (frameworkMaps) roleField(p pointer, roleMap string) pointer {
	switch {
	case len(p) > 2 && p[2] == "topology":
		return nil
	case len(p) == 3 && p[2] == "name":
		return pointer{roleMap, p[1]}
	default:
		return append(pointer{roleMap}, p[1:]...)
	}
}

func (frameworkMaps) inUse(spec tree) string {
	object, _ := spec.(map[string]any)
	for _, m := range replicaMaps {
		if _, ok := object[m.field]; ok || object["framework"] == any(string(m.framework)) {
			return m.field
		}
	}
	return replicaMaps[0].field
}

// position is that in v1: a map has none.
func (frameworkMaps) position(role int, _ []any) int { return role }
