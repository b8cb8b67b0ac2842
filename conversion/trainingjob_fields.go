package conversion

import (
	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
)

// trainingJobV1alpha1 converts between v1 and the shape of the Kubeflow
// Training Operator's jobs.
var trainingJobV1alpha1 = newSpoke("v1alpha1", TrainingJobSpecToHub, TrainingJobSpecFromHub, fieldTable{
	pairs: []fieldPair{
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

// frameworkMaps finds the map of replica specs that a job uses.
type frameworkMaps struct{}

func (frameworkMaps) inUse(spec tree) string {
	object, _ := spec.(map[string]any)
	for _, m := range replicaMaps {
		if _, ok := object[m.field]; ok || object["framework"] == any(string(m.framework)) {
			return m.field
		}
	}
	return replicaMaps[0].field
}

func (frameworkMaps) scaled() string { return string(v1.RoleWorker) }
