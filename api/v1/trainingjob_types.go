package v1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TrainingJobKind is the kind of TrainingJob.
const TrainingJobKind = "TrainingJob"

// TrainingJobGroupKind is the group and kind of TrainingJob.
var TrainingJobGroupKind = schema.GroupKind{Group: GroupName, Kind: TrainingJobKind}

// TrainingJob runs one distributed training to its end.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.elastic.replicas,statuspath=.status.elastic.replicas,selectorpath=.status.elastic.selector
// +kubebuilder:resource:shortName=tj,categories=penstock
// +kubebuilder:printcolumn:name="Framework",type=string,JSONPath=`.spec.framework`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.rolesReady`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TrainingJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the job shall be.
	// +required
	Spec TrainingJobSpec `json:"spec,omitzero"`

	// status is what the job is.
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

// Framework is what a training job runs in.
// +kubebuilder:validation:Enum=PyTorch;TensorFlow;MPI;PaddlePaddle;XGBoost;JAX
type Framework string

const (
	// FrameworkPyTorch is PyTorch, torchrun included. Roles: Master, Worker.
	FrameworkPyTorch Framework = "PyTorch"
	// FrameworkTensorFlow is TensorFlow. Roles: Chief or Master, Worker, PS, Evaluator.
	FrameworkTensorFlow Framework = "TensorFlow"
	// FrameworkMPI is MPI. Roles: Launcher, Worker.
	FrameworkMPI Framework = "MPI"
	// FrameworkPaddlePaddle is PaddlePaddle. Roles: Master, Worker.
	FrameworkPaddlePaddle Framework = "PaddlePaddle"
	// FrameworkXGBoost is XGBoost, LightGBM included. Roles: Master, Worker.
	FrameworkXGBoost Framework = "XGBoost"
	// FrameworkJAX is JAX. Role: Worker.
	FrameworkJAX Framework = "JAX"
)

// Role names that the frameworks know, in canonical case.
const (
	RoleMaster    RoleName = "Master"
	RoleWorker    RoleName = "Worker"
	RoleChief     RoleName = "Chief"
	RolePS        RoleName = "PS"
	RoleEvaluator RoleName = "Evaluator"
	RoleLauncher  RoleName = "Launcher"
)

// TrainingJobSpec is what a training job shall be.
//
// +kubebuilder:validation:XValidation:rule="self.framework == oldSelf.framework",fieldPath=".framework",message="framework cannot change: make a new job instead"
// +kubebuilder:validation:XValidation:rule="!has(self.pytorch) || self.framework == 'PyTorch'",fieldPath=".pytorch",message="pytorch is only for framework PyTorch: remove it or change framework"
// +kubebuilder:validation:XValidation:rule="!has(self.tensorflow) || self.framework == 'TensorFlow'",fieldPath=".tensorflow",message="tensorflow is only for framework TensorFlow: remove it or change framework"
// +kubebuilder:validation:XValidation:rule="!has(self.mpi) || self.framework == 'MPI'",fieldPath=".mpi",message="mpi is only for framework MPI: remove it or change framework"
type TrainingJobSpec struct {
	// framework that the job runs in: PyTorch, TensorFlow, MPI, PaddlePaddle,
	// XGBoost or JAX. It decides which roles there are and what environment
	// their pods get, and cannot change.
	// +required
	Framework Framework `json:"framework,omitempty"`

	// roles are the groups of pods of the job. Which names there are follows
	// from the framework: PyTorch has Master and Worker, for example.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Roles []Role `json:"roles,omitempty"`

	// runPolicy bounds how long and how often the job runs.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.managedBy) == has(oldSelf.managedBy) && (!has(self.managedBy) || self.managedBy == oldSelf.managedBy)",fieldPath=".managedBy",message="managedBy cannot change: make a new job instead"
	RunPolicy *RunPolicy `json:"runPolicy,omitempty"`

	// gang asks that the job's pods are scheduled all together or not at all.
	// +optional
	Gang *Gang `json:"gang,omitempty"`

	// elastic lets the number of workers change while the job runs.
	// +optional
	Elastic *Elastic `json:"elastic,omitempty"`

	// pytorch holds what only PyTorch knows.
	// +optional
	PyTorch *PyTorch `json:"pytorch,omitempty"`

	// tensorflow holds what only TensorFlow knows.
	// +optional
	TensorFlow *TensorFlow `json:"tensorflow,omitempty"`

	// mpi holds what only MPI knows.
	// +optional
	MPI *MPI `json:"mpi,omitempty"`
}

// Elastic lets the number of pods of the role Worker change while the job runs.
// +kubebuilder:validation:MinProperties=0
type Elastic struct {
	// replicas is the wanted number of workers; `kubectl scale` and
	// autoscalers write it. It overrides the replicas of the role, which it
	// takes when left out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Replicas *int32 `json:"replicas,omitempty"`

	// minReplicas is the smallest number of workers the job can run with.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the largest number of workers the job can use.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// metrics by which a horizontal pod autoscaler sets replicas, in the form of
	// autoscaling/v2. No autoscaler is made when left out.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`
}

// PyTorch holds what only PyTorch knows.
// +kubebuilder:validation:MinProperties=0
type PyTorch struct {
	// processesPerNode is the number of processes that torchrun starts in each
	// pod: a number, or auto, cpu or gpu.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^(auto|cpu|gpu|[1-9][0-9]*)$`
	ProcessesPerNode *string `json:"processesPerNode,omitempty"`

	// maxRestarts is how often torchrun restarts its group of processes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxRestarts *int32 `json:"maxRestarts,omitempty"`

	// rendezvous says where and how the workers of an elastic job meet.
	// +optional
	Rendezvous *Rendezvous `json:"rendezvous,omitempty"`
}

// RendezvousBackend is the store that the workers of an elastic job meet at.
// +kubebuilder:validation:Enum=c10d;etcd;etcd-v2
type RendezvousBackend string

// RendezvousMode says who provides the rendezvous store.
// +kubebuilder:validation:Enum=Standalone;Shared
type RendezvousMode string

const (
	// RendezvousC10d is the store built into PyTorch; one worker hosts it.
	RendezvousC10d RendezvousBackend = "c10d"
	// RendezvousEtcd is an etcd server by its older client.
	RendezvousEtcd RendezvousBackend = "etcd"
	// RendezvousEtcdV2 is an etcd server by its newer client.
	RendezvousEtcdV2 RendezvousBackend = "etcd-v2"

	// RendezvousStandalone starts a store in each pod: for jobs of one pod.
	RendezvousStandalone RendezvousMode = "Standalone"
	// RendezvousShared uses one store for all pods.
	RendezvousShared RendezvousMode = "Shared"
)

// Rendezvous says where and how the workers of an elastic job meet.
// +kubebuilder:validation:MinProperties=0
type Rendezvous struct {
	// backend is the store the workers meet at: c10d, etcd or etcd-v2; c10d
	// when left out.
	// +optional
	Backend RendezvousBackend `json:"backend,omitempty"`

	// host of the store; the first worker when left out.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Host *string `json:"host,omitempty"`

	// port of the store; the worker's own port when left out.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// id of the rendezvous; the job's own when left out.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ID *string `json:"id,omitempty"`

	// options of the backend, passed on as they are.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Options []RendezvousOption `json:"options,omitempty"`

	// mode says who provides the store: Shared for all pods together, or
	// Standalone for each pod by itself. Shared when left out.
	// +optional
	Mode RendezvousMode `json:"mode,omitempty"`
}

// RendezvousOption is one option of a rendezvous backend.
type RendezvousOption struct {
	// key of the option.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// value of the option.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Value *string `json:"value,omitempty"`
}

// SuccessPolicy says when a TensorFlow job without a chief has succeeded.
// +kubebuilder:validation:Enum=Worker0;AllWorkers
type SuccessPolicy string

const (
	// SuccessWorker0 ends the job when worker 0 has succeeded.
	SuccessWorker0 SuccessPolicy = "Worker0"
	// SuccessAllWorkers ends the job when all workers have succeeded.
	SuccessAllWorkers SuccessPolicy = "AllWorkers"
)

// WorkerMembership says whether the set of TensorFlow workers is fixed.
// +kubebuilder:validation:Enum=Static;Dynamic
type WorkerMembership string

const (
	// WorkersStatic lists every worker in every pod's cluster description.
	WorkersStatic WorkerMembership = "Static"
	// WorkersDynamic tells each worker only of itself and the parameter
	// servers, so that workers can come and go.
	WorkersDynamic WorkerMembership = "Dynamic"
)

// TensorFlow holds what only TensorFlow knows.
// +kubebuilder:validation:MinProperties=0
type TensorFlow struct {
	// successPolicy says when a job without a chief has succeeded: Worker0 or
	// AllWorkers. Worker0 when left out.
	// +optional
	SuccessPolicy SuccessPolicy `json:"successPolicy,omitempty"`

	// workers says whether the set of workers is fixed: Static, or Dynamic to
	// let workers come and go. Static when left out.
	// +optional
	Workers WorkerMembership `json:"workers,omitempty"`
}

// MPIImplementation names an implementation of MPI.
// +kubebuilder:validation:Enum=OpenMPI;Intel;MPICH
type MPIImplementation string

// LauncherCreation says when the launcher pod is made.
// +kubebuilder:validation:Enum=AtStartup;WaitForWorkersReady
type LauncherCreation string

// LauncherPlacement says whether the launcher computes as well.
// +kubebuilder:validation:Enum=LauncherOnly;LauncherAsWorker
type LauncherPlacement string

// MPITransport is how the launcher starts processes in the workers.
// +kubebuilder:validation:Enum=SSH;Exec
type MPITransport string

const (
	// MPISSH is ssh, by a key pair of the job's own; workers run sshd.
	MPISSH MPITransport = "SSH"
	// MPIExec is kubectl exec: for images without sshd.
	MPIExec MPITransport = "Exec"

	// MPIOpenMPI is Open MPI.
	MPIOpenMPI MPIImplementation = "OpenMPI"
	// MPIIntel is Intel MPI.
	MPIIntel MPIImplementation = "Intel"
	// MPIMPICH is MPICH.
	MPIMPICH MPIImplementation = "MPICH"

	// LauncherAtStartup makes the launcher together with the workers.
	LauncherAtStartup LauncherCreation = "AtStartup"
	// LauncherWaitForWorkersReady makes the launcher when all workers are ready.
	LauncherWaitForWorkersReady LauncherCreation = "WaitForWorkersReady"

	// LauncherOnly keeps the launcher out of the list of hosts.
	LauncherOnly LauncherPlacement = "LauncherOnly"
	// LauncherAsWorker lists the launcher among the hosts.
	LauncherAsWorker LauncherPlacement = "LauncherAsWorker"
)

// MPI holds what only MPI knows.
// +kubebuilder:validation:MinProperties=0
type MPI struct {
	// slotsPerWorker is the number of processes started in each worker pod;
	// 1 when left out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SlotsPerWorker *int32 `json:"slotsPerWorker,omitempty"`

	// implementation of MPI in the image: OpenMPI, Intel or MPICH. OpenMPI
	// when left out.
	// +optional
	Implementation MPIImplementation `json:"implementation,omitempty"`

	// sshAuthMountPath is the directory where the ssh keys are mounted;
	// /root/.ssh when left out.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:MinLength=1
	SSHAuthMountPath string `json:"sshAuthMountPath,omitempty"`

	// launcherCreation says when the launcher pod is made: AtStartup or
	// WaitForWorkersReady. WaitForWorkersReady when left out.
	// +optional
	LauncherCreation LauncherCreation `json:"launcherCreation,omitempty"`

	// launcher says whether the launcher computes as well: LauncherOnly or
	// LauncherAsWorker. LauncherOnly when left out.
	// +optional
	Launcher LauncherPlacement `json:"launcher,omitempty"`

	// mainContainer is the name of the container that runs MPI; mpi, or else
	// the first one, when left out.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:MinLength=1
	MainContainer string `json:"mainContainer,omitempty"`

	// transport is how the launcher starts processes in the workers: SSH, or
	// Exec for images without sshd. SSH when left out.
	// +optional
	Transport MPITransport `json:"transport,omitempty"`

	// kubectlImage is an image with a shell and kubectl, which is copied into
	// the launcher, for transport Exec. The launcher's own image must hold
	// kubectl when left out.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:MinLength=1
	KubectlImage string `json:"kubectlImage,omitempty"`
}
