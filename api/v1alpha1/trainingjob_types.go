package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrainingJob runs one distributed training to its end. Its spec takes the
// fields of a Kubeflow PyTorchJob, TFJob, MPIJob, PaddleJob, XGBoostJob or
// JAXJob; which one it is follows from the map of replica specs that is set.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.pytorchReplicaSpecs.Worker.replicas,statuspath=.status.elastic.replicas,selectorpath=.status.elastic.selector
// +kubebuilder:resource:shortName=tj,categories=penstock
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.rolesReady`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TrainingJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the job shall be.
	// +required
	Spec TrainingJobSpec `json:"spec,omitzero"`

	// status is what the job is, in the shape of v1.
	// +optional
	Status TrainingJobStatus `json:"status,omitzero"`
}

// TrainingJobList is a list of training jobs.
//
// +kubebuilder:object:root=true
type TrainingJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the training jobs.
	Items []TrainingJob `json:"items"`
}

// TrainingJobSpec is what a training job shall be. Exactly one of the maps of
// replica specs is set; it says which framework the job runs in. The scale
// subresource of a version has one path for all jobs, and writes the map of
// PyTorch into jobs of other frameworks: the message tells of it.
//
// +kubebuilder:validation:XValidation:rule="[has(self.pytorchReplicaSpecs), has(self.tfReplicaSpecs), has(self.mpiReplicaSpecs), has(self.paddleReplicaSpecs), has(self.xgbReplicaSpecs), has(self.jaxReplicaSpecs)].exists_one(x, x)",message="exactly one of pytorchReplicaSpecs, tfReplicaSpecs, mpiReplicaSpecs, paddleReplicaSpecs, xgbReplicaSpecs and jaxReplicaSpecs must be set: it says which framework the job runs in",messageExpression="has(self.pytorchReplicaSpecs) && size(self.pytorchReplicaSpecs) == 1 && 'Worker' in self.pytorchReplicaSpecs && !has(self.pytorchReplicaSpecs['Worker'].template) ? 'the scale subresource of v1alpha1 writes pytorchReplicaSpecs, and this job is of another framework: scale it in v1, as by kubectl scale trainingjobs.v1.penstock.dev' : 'exactly one of pytorchReplicaSpecs, tfReplicaSpecs, mpiReplicaSpecs, paddleReplicaSpecs, xgbReplicaSpecs and jaxReplicaSpecs must be set: it says which framework the job runs in'"
// +kubebuilder:validation:XValidation:rule="!has(self.nprocPerNode) || !has(self.elasticPolicy) || !has(self.elasticPolicy.nProcPerNode)",fieldPath=".elasticPolicy.nProcPerNode",message="nProcPerNode is the older form of nprocPerNode: keep nprocPerNode only"
type TrainingJobSpec struct {
	// runPolicy bounds how long and how often the job runs.
	// +optional
	RunPolicy *RunPolicy `json:"runPolicy,omitempty"`

	// pytorchReplicaSpecs are the roles of a PyTorch job: Master, Worker.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	PyTorchReplicaSpecs ReplicaSpecs `json:"pytorchReplicaSpecs,omitempty"`

	// elasticPolicy lets the number of workers change while the job runs.
	// +optional
	ElasticPolicy *ElasticPolicy `json:"elasticPolicy,omitempty"`

	// nprocPerNode is the number of processes that torchrun starts in each
	// pod: a number in quotes, or auto, cpu or gpu.
	// +optional
	NprocPerNode *string `json:"nprocPerNode,omitempty"`

	// tfReplicaSpecs are the roles of a TensorFlow job: Chief or Master,
	// Worker, PS, Evaluator.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	TFReplicaSpecs ReplicaSpecs `json:"tfReplicaSpecs,omitempty"`

	// successPolicy says when a TensorFlow job without a chief has succeeded:
	// empty for worker 0, or AllWorkers.
	// +optional
	// +kubebuilder:validation:Enum="";AllWorkers
	SuccessPolicy *string `json:"successPolicy,omitempty"`

	// enableDynamicWorker lets TensorFlow workers come and go.
	// +optional
	EnableDynamicWorker *bool `json:"enableDynamicWorker,omitempty"`

	// mpiReplicaSpecs are the roles of an MPI job: Launcher, Worker.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	MPIReplicaSpecs ReplicaSpecs `json:"mpiReplicaSpecs,omitempty"`

	// slotsPerWorker is the number of MPI processes started in each worker pod.
	// +optional
	SlotsPerWorker *int32 `json:"slotsPerWorker,omitempty"`

	// cleanPodPolicy of an MPI job; runPolicy.cleanPodPolicy wins over it.
	// +optional
	// +kubebuilder:validation:Enum=All;Running;None;""
	CleanPodPolicy *string `json:"cleanPodPolicy,omitempty"`

	// mainContainer is the name of the container that runs MPI.
	// +optional
	MainContainer string `json:"mainContainer,omitempty"`

	// sshAuthMountPath is the directory where the ssh keys are mounted.
	// +optional
	SSHAuthMountPath string `json:"sshAuthMountPath,omitempty"`

	// mpiImplementation in the image: OpenMPI, Intel or MPICH.
	// +optional
	MPIImplementation string `json:"mpiImplementation,omitempty"`

	// launcherCreationPolicy says when the launcher is made: AtStartup or
	// WaitForWorkersReady.
	// +optional
	LauncherCreationPolicy string `json:"launcherCreationPolicy,omitempty"`

	// runLauncherAsWorker lists the launcher among the hosts.
	// +optional
	RunLauncherAsWorker *bool `json:"runLauncherAsWorker,omitempty"`

	// paddleReplicaSpecs are the roles of a PaddlePaddle job: Master, Worker.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	PaddleReplicaSpecs ReplicaSpecs `json:"paddleReplicaSpecs,omitempty"`

	// xgbReplicaSpecs are the roles of an XGBoost job: Master, Worker.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	XGBReplicaSpecs ReplicaSpecs `json:"xgbReplicaSpecs,omitempty"`

	// jaxReplicaSpecs is the role of a JAX job: Worker.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	JAXReplicaSpecs ReplicaSpecs `json:"jaxReplicaSpecs,omitempty"`
}

// ReplicaSpecs are the roles of a job by name.
type ReplicaSpecs map[string]*ReplicaSpec

// ReplicaSpec is one role of a job.
type ReplicaSpec struct {
	// replicas is the number of pods; 1 when left out.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// template of the pods.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Template corev1.PodTemplateSpec `json:"template,omitzero"`

	// restartPolicy of the pods: Always, OnFailure, Never or ExitCode. It takes
	// the place of the template's own.
	// +optional
	// +kubebuilder:validation:Enum=Always;OnFailure;Never;ExitCode;""
	RestartPolicy string `json:"restartPolicy,omitempty"`
}

// RunPolicy bounds how long and how often a job runs.
type RunPolicy struct {
	// cleanPodPolicy says which pods go when the job has finished: All, Running
	// or None.
	// +optional
	// +kubebuilder:validation:Enum=All;Running;None;""
	CleanPodPolicy *string `json:"cleanPodPolicy,omitempty"`

	// ttlSecondsAfterFinished is how long the finished job is kept, in seconds.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// activeDeadlineSeconds is how long the job may run, in seconds.
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// backoffLimit is the number of restarts after which the job fails.
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// schedulingPolicy asks that the job's pods are scheduled all together.
	// +optional
	SchedulingPolicy *SchedulingPolicy `json:"schedulingPolicy,omitempty"`

	// suspend stops the job: its pods are deleted.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// managedBy names the controller that reconciles the job.
	// +optional
	ManagedBy *string `json:"managedBy,omitempty"`
}

// SchedulingPolicy asks that the job's pods are scheduled all together.
type SchedulingPolicy struct {
	// minAvailable is the number of pods that must be placeable.
	// +optional
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// queue of the gang scheduler.
	// +optional
	Queue string `json:"queue,omitempty"`

	// minResources is what must be free before any pod is placed.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	MinResources map[corev1.ResourceName]resource.Quantity `json:"minResources,omitempty"`

	// priorityClass of the gang.
	// +optional
	PriorityClass string `json:"priorityClass,omitempty"`

	// scheduleTimeoutSeconds is how long the scheduler may try, in seconds.
	// +optional
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
}

// ElasticPolicy lets the number of workers change while the job runs.
type ElasticPolicy struct {
	// minReplicas is the smallest number of workers.
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the largest number of workers.
	// +optional
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// rdzvBackend is the store the workers meet at: c10d, etcd or etcd-v2.
	// +optional
	// +kubebuilder:validation:Enum=c10d;etcd;etcd-v2
	RDZVBackend *string `json:"rdzvBackend,omitempty"`

	// rdzvPort is the port of the store.
	// +optional
	RDZVPort *int32 `json:"rdzvPort,omitempty"`

	// rdzvHost is the host of the store.
	// +optional
	RDZVHost *string `json:"rdzvHost,omitempty"`

	// rdzvId is the id of the rendezvous.
	// +optional
	RDZVID *string `json:"rdzvId,omitempty"`

	// rdzvConf are options of the store.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	RDZVConf []RDZVConf `json:"rdzvConf,omitempty"`

	// standalone starts a store in each pod.
	// +optional
	Standalone *bool `json:"standalone,omitempty"`

	// nProcPerNode is the older form of spec.nprocPerNode.
	// +optional
	NProcPerNode *int32 `json:"nProcPerNode,omitempty"`

	// maxRestarts is how often torchrun restarts its group of processes.
	// +optional
	MaxRestarts *int32 `json:"maxRestarts,omitempty"`

	// metrics by which a horizontal pod autoscaler sets the number of workers.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`
}

// RDZVConf is one option of a rendezvous store.
type RDZVConf struct {
	// key of the option.
	// +optional
	Key string `json:"key,omitempty"`

	// value of the option.
	// +optional
	Value string `json:"value,omitempty"`
}
