package validation

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// What an MPI job puts into its pods; see reconcilers/training.
const (
	mpiConfigDir  = "/etc/mpi"
	mpiKubectlDir = "/opt/kube"

	sshKeys = "the ssh keys"
)

func validateMPI(spec *v1.TrainingJobSpec, specPath *field.Path) field.ErrorList {
	if spec.Framework != v1.FrameworkMPI {
		return nil
	}
	mpi := v1.MPI{}
	if spec.MPI != nil {
		mpi = *spec.MPI
	}
	errs := validateMainContainer(spec, specPath.Child("mpi", "mainContainer"))
	errs = append(errs, validateTransport(mpi, specPath.Child("mpi"))...)
	for i := range spec.Roles {
		errs = append(errs, validateInjected(mpi, &spec.Roles[i], specPath.Child("roles").Index(i).Child("template", "spec"))...)
	}
	return errs
}

func validateTransport(mpi v1.MPI, mpiPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if mpi.SlotsPerWorker != nil && *mpi.SlotsPerWorker < 1 {
		errs = append(errs, field.Invalid(mpiPath.Child("slotsPerWorker"), *mpi.SlotsPerWorker,
			"must be at least 1: no process would be started in any worker; give the number of processes in each, or leave it out for 1"))
	}
	if mpi.KubectlImage != "" && mpi.Transport != v1.MPIExec {
		errs = append(errs, field.Forbidden(mpiPath.Child("kubectlImage"), "is only for transport Exec: remove it or set transport"))
	}
	dir := mpi.SSHAuthMountPath
	switch {
	case dir == "":
	case !path.IsAbs(dir) || strings.Contains(dir, ":") || path.Clean(dir) != dir:
		errs = append(errs, field.Invalid(mpiPath.Child("sshAuthMountPath"), dir,
			"must be an absolute path without a colon, a dot or a slash at its end: write it as /root/.ssh"))
	case dir == mpiConfigDir || dir == "/":
		errs = append(errs, field.Invalid(mpiPath.Child("sshAuthMountPath"), dir,
			"is where something else is mounted: use the .ssh directory of the user that runs sshd"))
	}
	return errs
}

// validateInjected finds what has the name or the place of something that the
// job's pods are given: Kubernetes would refuse the pod for having both.
func validateInjected(mpi v1.MPI, role *v1.Role, podPath *field.Path) field.ErrorList {
	volumes, dirs := map[string]string{}, map[string]string{}
	inject := func(name, dir, what string) {
		volumes[name], dirs[dir] = what, what
	}
	if role.Name == v1.RoleLauncher {
		inject("mpi-job-config", mpiConfigDir, "the list of hosts")
	}
	switch {
	case mpi.Transport != v1.MPIExec:
		inject("ssh-auth", mpi.SSHAuthMountPath, sshKeys)
	case mpi.KubectlImage != "" && role.Name == v1.RoleLauncher:
		inject("mpi-job-kubectl", mpiKubectlDir, "kubectl")
	}
	var errs field.ErrorList
	pod := &role.Template.Spec
	if mpi.Transport == v1.MPIExec && mpi.KubectlImage != "" && role.Name == v1.RoleLauncher {
		errs = append(errs, validateKubectlName(pod.InitContainers, podPath.Child("initContainers"))...)
		errs = append(errs, validateKubectlName(pod.Containers, podPath.Child("containers"))...)
	}
	for i, volume := range pod.Volumes {
		if what, taken := volumes[volume.Name]; taken {
			errs = append(errs, field.Invalid(podPath.Child("volumes").Index(i).Child("name"), volume.Name,
				fmt.Sprintf("is the volume that holds %s in every MPI job: rename yours", what)))
		}
	}
	for i := range pod.Containers {
		if &pod.Containers[i] != mainContainer(pod, mpi.MainContainer) {
			continue
		}
		for j, mount := range pod.Containers[i].VolumeMounts {
			if what := dirs[strings.TrimSuffix(mount.MountPath, "/")]; what != "" {
				fix := "mount yours elsewhere"
				if what == sshKeys {
					fix += ", or set sshAuthMountPath"
				}
				errs = append(errs, field.Invalid(podPath.Child("containers").Index(i).Child("volumeMounts").Index(j).Child("mountPath"), mount.MountPath,
					"is where an MPI job mounts "+what+": "+fix))
			}
		}
	}
	return errs
}

// validateKubectlName keeps the name of the init container that brings kubectl.
func validateKubectlName(containers []corev1.Container, path *field.Path) field.ErrorList {
	const injected = "kubectl-delivery"
	for i := range containers {
		if containers[i].Name == injected {
			return field.ErrorList{field.Invalid(path.Index(i).Child("name"), injected,
				"is the container that brings kubectl to the launcher: rename yours, or take out kubectlImage where yours brings it")}
		}
	}
	return nil
}

// mainContainer is the container that MPI runs in.
func mainContainer(pod *corev1.PodSpec, name string) *corev1.Container {
	if name == "" {
		name = v1.FrameworkMPI.MainContainer()
	}
	for i := range pod.Containers {
		if pod.Containers[i].Name == name {
			return &pod.Containers[i]
		}
	}
	return &pod.Containers[0]
}

// validateMainContainer looks for spec.mpi.mainContainer in all roles: launcher
// and workers may be of different images, with different containers.
func validateMainContainer(spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	if spec.Framework != v1.FrameworkMPI || spec.MPI == nil || spec.MPI.MainContainer == "" {
		return nil
	}
	var names []string
	for i := range spec.Roles {
		for _, container := range spec.Roles[i].Template.Spec.Containers {
			if container.Name == spec.MPI.MainContainer {
				return nil
			}
			names = append(names, container.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	fix := "name a container of the roles' templates"
	if near := Nearest(spec.MPI.MainContainer, names); near != "" {
		fix = fmt.Sprintf("did you mean %s?", near)
	}
	return field.ErrorList{field.Invalid(path, spec.MPI.MainContainer, "is no container of any role: "+fix)}
}
