package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// validateTemplate finds the faults that would keep the role's pods from being
// made or from being the job's pods. Kubernetes judges the rest when the pods
// are made; only what is cheap to see and often wrong is repeated here.
func validateTemplate(spec *v1.TrainingJobSpec, role *v1.Role, path *field.Path) field.ErrorList {
	pod := &role.Template.Spec
	containersPath := path.Child("spec", "containers")
	if pod.Containers == nil && apiequality.Semantic.DeepEqual(role.Template, corev1.PodTemplateSpec{}) {
		return field.ErrorList{field.Required(path, fmt.Sprintf(
			"role %s says nothing of its pods: write what they are, or remove the role", role.Name))}
	}
	path = path.Child("spec")
	if len(pod.Containers) == 0 {
		return field.ErrorList{field.Required(containersPath, containerFix(spec.Framework))}
	}
	errs := validateFrameworkContainer(spec.Framework, pod.Containers, containersPath)
	volumes := map[string]bool{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = true
	}
	seen := map[string]bool{}
	for i := range pod.InitContainers {
		errs = append(errs, validateContainer(&pod.InitContainers[i], seen, volumes, path.Child("initContainers").Index(i))...)
	}
	for i := range pod.Containers {
		errs = append(errs, validateContainer(&pod.Containers[i], seen, volumes, containersPath.Index(i))...)
	}
	if pod.HostNetwork {
		errs = append(errs, validateHostPorts(pod.Containers, containersPath)...)
	}
	return errs
}

func containerFix(framework v1.Framework) string {
	if name := framework.MainContainer(); name != "" {
		return fmt.Sprintf("a pod needs a container: add one called %s", name)
	}
	return "a pod needs a container: add one"
}

// validateFrameworkContainer finds the container by name at any place: a side
// car may stand first. MPI takes any container when none is called mpi.
func validateFrameworkContainer(framework v1.Framework, containers []corev1.Container, path *field.Path) field.ErrorList {
	want := framework.MainContainer()
	if want == "" || framework == v1.FrameworkMPI {
		return nil
	}
	for i := range containers {
		if containers[i].Name == want {
			return nil
		}
	}
	return field.ErrorList{field.Invalid(path.Index(0).Child("name"), containers[0].Name, fmt.Sprintf(
		"must be %s in one container: port, environment and exit code hang on that name; rename the container that trains", want))}
}

func validateContainer(container *corev1.Container, seen, volumes map[string]bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case len(validation.IsDNS1123Label(container.Name)) > 0:
		errs = append(errs, field.Invalid(path.Child("name"), container.Name,
			"must be a DNS label: use at most 63 lower-case letters, digits and -"))
	case seen[container.Name]:
		fault := field.Duplicate(path.Child("name"), container.Name)
		fault.Detail = "must be unique in the pod, init containers included: rename one of them"
		errs = append(errs, fault)
	}
	seen[container.Name] = true
	if strings.TrimSpace(container.Image) == "" {
		errs = append(errs, field.Required(path.Child("image"), "the pod cannot start without: name the image"))
	}
	for i, env := range container.Env {
		if env.Name == "" {
			errs = append(errs, field.Required(path.Child("env").Index(i).Child("name"), "name the variable or remove it"))
		}
	}
	for i, mount := range container.VolumeMounts {
		errs = append(errs, validateVolumeReference(mount.Name, volumes, path.Child("volumeMounts").Index(i).Child("name"))...)
	}
	for i, device := range container.VolumeDevices {
		errs = append(errs, validateVolumeReference(device.Name, volumes, path.Child("volumeDevices").Index(i).Child("name"))...)
	}
	errs = append(errs, validateAmounts(container.Resources.Limits, path.Child("resources", "limits"))...)
	errs = append(errs, validateAmounts(container.Resources.Requests, path.Child("resources", "requests"))...)
	return append(errs, validatePorts(container.Ports, path.Child("ports"))...)
}

func validateAmounts(amounts corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if amount := amounts[name]; amount.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Key(string(name)), amount.String(), "must be at least 0: ask for what the container needs, or leave it out"))
		}
	}
	return errs
}

func validateVolumeReference(name string, volumes map[string]bool, path *field.Path) field.ErrorList {
	if volumes[name] {
		return nil
	}
	names := make([]string, 0, len(volumes))
	for volume := range volumes {
		names = append(names, volume)
	}
	fix := "add a volume of that name to the template"
	if near := Nearest(name, names); near != "" {
		fix = fmt.Sprintf("did you mean %s?", near)
	}
	fault := field.NotFound(path, name)
	fault.Detail = "is no volume of the pod: " + fix
	return field.ErrorList{fault}
}

type portKey struct {
	number   int32
	protocol corev1.Protocol
}

func keyOf(port corev1.ContainerPort) portKey {
	if port.Protocol == "" {
		return portKey{port.ContainerPort, corev1.ProtocolTCP}
	}
	return portKey{port.ContainerPort, port.Protocol}
}

// validatePorts judges one container: its named ports become the ports of a
// Service, which takes no number and no name twice.
func validatePorts(ports []corev1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	numbers, names := map[portKey]bool{}, map[string]bool{}
	for i, port := range ports {
		if len(validation.IsValidPortNum(int(port.ContainerPort))) > 0 {
			errs = append(errs, field.Invalid(path.Index(i).Child("containerPort"), port.ContainerPort,
				"must be a number from 1 to 65535: give the port that the container listens at"))
		}
		if port.Name != "" && len(validation.IsValidPortName(port.Name)) > 0 {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), port.Name,
				"must be the name of a port: use at most 15 lower-case letters, digits and -, a letter among them"))
		}
		if numbers[keyOf(port)] {
			fault := field.Duplicate(path.Index(i).Child("containerPort"), port.ContainerPort)
			fault.Detail = "is declared twice in the container: keep one of the two, under the name that is used"
			errs = append(errs, fault)
		}
		numbers[keyOf(port)] = true
		if port.Name != "" && names[port.Name] {
			fault := field.Duplicate(path.Index(i).Child("name"), port.Name)
			fault.Detail = "is the name of two ports of the container: rename one of them"
			errs = append(errs, fault)
		}
		names[port.Name] = true
	}
	return errs
}

// validateHostPorts judges containers that share the node's network: there
// every container port is a port of the node, which Kubernetes gives out once.
// Without the host network a number declared by two containers is only
// information, and Kubernetes accepts it.
func validateHostPorts(containers []corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	owner := map[portKey]int{}
	for i := range containers {
		for j, port := range containers[i].Ports {
			first, taken := owner[keyOf(port)]
			if taken && first != i {
				fault := field.Duplicate(path.Index(i).Child("ports").Index(j).Child("containerPort"), port.ContainerPort)
				fault.Detail = fmt.Sprintf("is a port of container %s too, and both share the host network: move one of them",
					containers[first].Name)
				errs = append(errs, fault)
			}
			if !taken {
				owner[keyOf(port)] = i
			}
		}
	}
	return errs
}
