package validation

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// managedByUpstream is what the Training Operator calls itself.
const managedByUpstream = "kubeflow.org/training-operator"

// AdviseTrainingJob returns what the author of a defaulted training job should
// know though it is admitted, with v1 field paths: what is written and will
// have no effect. On update it returns what old did not have; on create old is
// nil.
func AdviseTrainingJob(old, job *v1.TrainingJob) field.ErrorList {
	if job == nil {
		return nil
	}
	path := field.NewPath("spec")
	advice := adviseSpec(&job.Spec, path)
	if old == nil {
		return append(advice, adviseWorkers(nil, &job.Spec, path)...)
	}
	known := map[string]bool{}
	for _, line := range adviseSpec(&old.Spec, path) {
		known[line.Error()] = true
	}
	advice = slices.DeleteFunc(advice, func(line *field.Error) bool { return known[line.Error()] })
	advice = append(advice, adviseWorkers(&old.Spec, &job.Spec, path)...)
	if isFinished(old) && isSuspended(&job.Spec) && !isSuspended(&old.Spec) {
		advice = append(advice, field.Forbidden(path.Child("runPolicy", "suspend"), "has no effect, as the job has finished"))
	}
	return advice
}

func adviseSpec(spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	var advice field.ErrorList
	if managedBy(spec) == managedByUpstream {
		advice = append(advice, field.Forbidden(path.Child("runPolicy", "managedBy"),
			"names the Training Operator, which runs no TrainingJob of penstock.dev, and Penstock leaves the job to it: nobody will run it; make it without managedBy"))
	}
	advice = append(advice, adviseManager(managedBy(spec), path.Child("runPolicy", "managedBy"))...)
	advice = append(advice, adviseRestart(spec, path)...)
	for i := range spec.Roles {
		role, templatePath := &spec.Roles[i], path.Child("roles").Index(i).Child("template")
		advice = append(advice, adviseTemplateMeta(&role.Template.ObjectMeta, templatePath.Child("metadata"))...)
		for _, label := range slices.Sorted(maps.Keys(role.Template.Labels)) {
			if isOwnLabel(label) && !(label == v1.ManagedByLabel && role.Template.Labels[label] == v1.ManagedByValue) {
				advice = append(advice, field.Forbidden(templatePath.Child("metadata", "labels").Key(label),
					"is a label that Penstock sets on every pod, and this value is dropped: remove it"))
			}
		}
		advice = append(advice, advisePorts(role.Template.Spec.Containers, templatePath.Child("spec", "containers"))...)
		advice = append(advice, adviseEnvironment(spec, role, templatePath.Child("spec", "containers"))...)
	}
	return advice
}

func isOwnLabel(label string) bool {
	switch label {
	case v1.ManagedByLabel, v1.JobNameLabel, v1.RoleLabel, v1.IndexLabel, v1.AttemptLabel:
		return true
	}
	return false
}

// adviseEnvironment finds variables that the framework's own take the place of.
func adviseEnvironment(spec *v1.TrainingJobSpec, role *v1.Role, path *field.Path) field.ErrorList {
	var advice field.ErrorList
	set, everywhere := variablesOf(spec, role)
	containers := role.Template.Spec.Containers
	for i := range containers {
		if !everywhere && &containers[i] != trainingContainer(spec, &role.Template.Spec) {
			continue
		}
		for j, variable := range containers[i].Env {
			if slices.Contains(set, variable.Name) {
				advice = append(advice, field.Forbidden(path.Index(i).Child("env").Index(j), fmt.Sprintf(
					"%s is set by Penstock in the %s container %s, and this value is dropped: remove it or give it another name",
					variable.Name, spec.Framework, containers[i].Name)))
			}
		}
	}
	return advice
}

func trainingContainer(spec *v1.TrainingJobSpec, pod *corev1.PodSpec) *corev1.Container {
	name := spec.Framework.MainContainer()
	if spec.MPI != nil && spec.MPI.MainContainer != "" {
		name = spec.MPI.MainContainer
	}
	return mainContainer(pod, name)
}

// variablesOf are the variables that the pods of a role are given, in every
// container or in the main one alone; see reconcilers/training, whose tests
// hold the two together. Left out are those that say the same in any job, such
// as PYTHONUNBUFFERED.
func variablesOf(spec *v1.TrainingJobSpec, role *v1.Role) (names []string, everywhere bool) {
	total := int64(0)
	for i := range spec.Roles {
		total += wantedReplicas(spec, &spec.Roles[i])
	}
	leads := len(rolesNamed(spec, v1.RoleMaster)) > 0
	switch spec.Framework {
	case v1.FrameworkPyTorch:
		return torchVariables(spec, leads), true
	case v1.FrameworkTensorFlow:
		if total > 1 {
			names = []string{"TF_CONFIG"}
		}
		return names, false
	case v1.FrameworkMPI:
		return mpiVariables(spec, role), false
	case v1.FrameworkPaddlePaddle:
		names = []string{"PADDLE_JOB_ID", "PADDLE_NNODES", "PADDLE_MASTER"}
		switch {
		case leads && role.Name == v1.RoleMaster:
			names = append(names, "PADDLE_SERVER_NUM")
		case leads:
			names = append(names, "PADDLE_TRAINER_NUM")
		}
		return names, true
	case v1.FrameworkXGBoost:
		names = []string{"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"}
		if total > 1 && len(rolesNamed(spec, v1.RoleWorker)) > 0 {
			names = append(names, "WORKER_PORT", "WORKER_ADDRS")
		}
		return names, true
	case v1.FrameworkJAX:
		return []string{"COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID"}, true
	}
	return nil, false
}

func torchVariables(spec *v1.TrainingJobSpec, leads bool) []string {
	names := []string{"PET_NPROC_PER_NODE", "PET_NNODES"}
	if leads {
		names = append(names, "MASTER_ADDR", "MASTER_PORT", "PET_MASTER_ADDR", "PET_MASTER_PORT", "WORLD_SIZE", "RANK", "PET_NODE_RANK")
	}
	pytorch := v1.PyTorch{}
	if spec.PyTorch != nil {
		pytorch = *spec.PyTorch
	}
	if pytorch.MaxRestarts != nil {
		names = append(names, "PET_MAX_RESTARTS")
	}
	if spec.Elastic == nil && pytorch.Rendezvous == nil {
		return names
	}
	names = append(names, "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT", "PET_RDZV_ID")
	rendezvous := rendezvousOf(pytorch)
	if len(rendezvous.Options) > 0 {
		names = append(names, "PET_RDZV_CONF")
	}
	if rendezvous.Mode == v1.RendezvousStandalone {
		names = append(names, "PET_STANDALONE")
	}
	return names
}

func mpiVariables(spec *v1.TrainingJobSpec, role *v1.Role) []string {
	names := []string{"K_MPI_JOB_ROLE"}
	if role.Name != v1.RoleLauncher {
		return names
	}
	mpi := v1.MPI{}
	if spec.MPI != nil {
		mpi = *spec.MPI
	}
	exec := mpi.Transport == v1.MPIExec
	switch {
	case mpi.Implementation == v1.MPIIntel && exec:
		return append(names, "I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC")
	case mpi.Implementation == v1.MPIIntel:
		return append(names, "I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", "I_MPI_PERHOST")
	case mpi.Implementation == v1.MPIMPICH && exec:
		return append(names, "HYDRA_HOST_FILE", "HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXEC")
	case mpi.Implementation == v1.MPIMPICH:
		return append(names, "HYDRA_HOST_FILE", "HYDRA_LAUNCH_EXTRA_ARGS")
	case exec:
		return append(names, "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_agent")
	default:
		return append(names, "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_keep_fqdn_hostnames", "OMPI_MCA_plm_rsh_args", "OMPI_MCA_orte_set_default_slots")
	}
}
