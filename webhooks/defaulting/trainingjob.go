// Package defaulting fills in what the author of an object left out, so that
// the stored object says everything. It is step 3 of the flow: after
// conversion to v1, before the API server applies the schema. The reconcilers
// apply it again in memory to what they read.
//
// Its functions are pure, idempotent and deterministic, bear any input, and
// touch neither metadata nor status. The package imports nothing but api/v1,
// apimachinery and the Kubernetes API types.
package defaulting

import (
	v1 "github.com/penstock-dev/penstock/api/v1"
)

// DefaultSSHAuthMountPath is where the ssh keys of an MPI job are mounted when
// the job does not say.
const DefaultSSHAuthMountPath = "/root/.ssh"

// DefaultTrainingJob writes every default of a training job that the schema of
// v1 does not write. A job of an unknown framework is left as it is.
//
// Each default can be said in v1alpha1 too, so that none of them ends up in
// the restore annotation. What is written and where it comes from (Kubeflow
// Training Operator 1.9, TO; MPIJob v2beta1, MPI2):
//
//	roles[].name                  canonical case; a role said twice, once      TO, but for MPI
//	roles[].replicas              1; the least number if elastic               TO
//	roles[].restartPolicy         by framework and role                        TO; launcher MPI2
//	roles[].template…ports        the framework's port, on the main container  TO, but for equal numbers
//	roles[].template…protocol     TCP                                          Kubernetes, schema of v1
//	roles[].template…resources    extended resources: request = limit          Kubernetes, which does limit to request
//	runPolicy.suspend             false                                        TO
//	runPolicy.cleanPodPolicy      None                                         TO
//	elastic.minReplicas, …max     each other, or the number of workers         TO, but see there
//	elastic.replicas              the replicas of Worker                       ours
//	pytorch.processesPerNode      auto                                         TO
//	tensorflow.successPolicy      Worker0                                      TO
//	tensorflow.workers            Static                                       TO
//	mpi.slotsPerWorker            1                                            MPI2
//	mpi.implementation            OpenMPI                                      MPI2
//	mpi.sshAuthMountPath          /root/.ssh                                   MPI2
//	mpi.launcherCreation          WaitForWorkersReady                          ours: an early launcher fails
//	mpi.launcher                  LauncherOnly                                 MPI2
//
// Left out on purpose: backoffLimit, deadlines and gang, where absence means
// something; rendezvous, topology, mpi.transport and runPolicy.restart, which
// v1alpha1 cannot say or which need no spelling out.
func DefaultTrainingJob(job *v1.TrainingJob) {
	if job == nil || !job.Spec.Framework.Known() {
		return
	}
	spec := &job.Spec
	defaultRunPolicy(spec)
	written := foldRoleNames(spec)
	defaultElastic(spec)
	for i := range spec.Roles {
		defaultRole(spec, &spec.Roles[i])
	}
	if len(written) > 1 {
		dropTwins(spec, written)
	}
	defaultFrameworkBlock(spec)
}

func defaultRunPolicy(spec *v1.TrainingJobSpec) {
	if spec.RunPolicy == nil {
		spec.RunPolicy = &v1.RunPolicy{}
	}
	setDefault(&spec.RunPolicy.Suspend, false)
	if spec.RunPolicy.CleanPodPolicy == "" {
		spec.RunPolicy.CleanPodPolicy = v1.CleanPodNone
	}
}

// defaultFrameworkBlock spells out the block that only the job's framework
// knows. Blocks of other frameworks are the author's fault and stay for
// validation to name.
func defaultFrameworkBlock(spec *v1.TrainingJobSpec) {
	switch spec.Framework {
	case v1.FrameworkPyTorch:
		if spec.PyTorch == nil {
			spec.PyTorch = &v1.PyTorch{}
		}
		// torchrun counts the accelerators of the pod, or else its cores.
		setDefault(&spec.PyTorch.ProcessesPerNode, "auto")
	case v1.FrameworkTensorFlow:
		if spec.TensorFlow == nil {
			spec.TensorFlow = &v1.TensorFlow{}
		}
		setEmpty(&spec.TensorFlow.SuccessPolicy, v1.SuccessWorker0)
		setEmpty(&spec.TensorFlow.Workers, v1.WorkersStatic)
	case v1.FrameworkMPI:
		if spec.MPI == nil {
			spec.MPI = &v1.MPI{}
		}
		setDefault(&spec.MPI.SlotsPerWorker, 1)
		setEmpty(&spec.MPI.Implementation, v1.MPIOpenMPI)
		setEmpty(&spec.MPI.SSHAuthMountPath, DefaultSSHAuthMountPath)
		setEmpty(&spec.MPI.LauncherCreation, v1.LauncherWaitForWorkersReady)
		setEmpty(&spec.MPI.Launcher, v1.LauncherOnly)
	}
}

// setDefault fills a field where nil, and only nil, means left out.
func setDefault[T any](target **T, value T) {
	if *target == nil {
		*target = &value
	}
}

// setEmpty fills a string field, where empty means left out.
func setEmpty[T ~string](target *T, value T) {
	if *target == "" {
		*target = value
	}
}
