package validation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// containers judges all containers of a pod, init containers first, as they
// run first.
func (f *findings) containers(pod *corev1.PodSpec, volumes map[string]*corev1.Volume, path *field.Path) {
	if len(pod.Containers) == 0 {
		f.required(path.Child("containers"), "a pod needs a container: add one")
	}
	c := &containerJudge{findings: f, pod: pod, volumes: volumes, seen: map[string]bool{}}
	for i := range pod.InitContainers {
		container, containerPath := &pod.InitContainers[i], path.Child("initContainers").Index(i)
		c.judge(container, containerPath)
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			c.probes(container, containerPath)
		} else {
			c.runsOnce(container, containerPath)
		}
		c.hostPorts(pod.InitContainers[i:i+1], func(int) *field.Path { return containerPath })
	}
	containersPath := path.Child("containers")
	for i := range pod.Containers {
		c.judge(&pod.Containers[i], containersPath.Index(i))
		c.probes(&pod.Containers[i], containersPath.Index(i))
	}
	c.hostPorts(pod.Containers, containersPath.Index)
}

// containerJudge judges containers by the pod that they are in.
type containerJudge struct {
	*findings
	pod     *corev1.PodSpec
	volumes map[string]*corev1.Volume
	// seen are the names that are taken.
	seen map[string]bool
}

func (c *containerJudge) judge(container *corev1.Container, path *field.Path) {
	c.name(container.Name, path.Child("name"))
	switch {
	case strings.TrimSpace(container.Image) == "":
		c.required(path.Child("image"), "the pod cannot start without: name the image")
	case strings.TrimSpace(container.Image) != container.Image:
		c.invalid(path.Child("image"), container.Image, "must not have a space at its start or end: remove it")
	}
	oneOf(c.findings, path.Child("imagePullPolicy"), container.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	oneOf(c.findings, path.Child("terminationMessagePolicy"), container.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	for i := range container.Env {
		c.variable(&container.Env[i], path.Child("env").Index(i))
	}
	for i := range container.EnvFrom {
		c.variablesFrom(&container.EnvFrom[i], path.Child("envFrom").Index(i))
	}
	c.mounts(container, path)
	c.resources(&container.Resources, path.Child("resources"), containerResource)
	c.claims(container.Resources.Claims, path.Child("resources", "claims"))
	c.resizePolicy(container.ResizePolicy, path.Child("resizePolicy"))
	c.containerSecurity(container.SecurityContext, path.Child("securityContext"))
	c.restartRules(container, path)
	c.ports(container.Ports, path.Child("ports"))
}

func (c *containerJudge) name(name string, path *field.Path) {
	switch {
	case len(validation.IsDNS1123Label(name)) > 0:
		c.invalid(path, name, "must be a DNS label: use at most 63 lower-case letters, digits and -")
	case c.seen[name]:
		c.duplicate(path, name, "must be unique in the pod, init containers included: rename one of them")
	}
	c.seen[name] = true
}

// ports judges one container: its named ports become the ports of a Service,
// which takes no number and no name twice.
func (c *containerJudge) ports(ports []corev1.ContainerPort, path *field.Path) {
	numbers, names := map[portKey]bool{}, map[string]bool{}
	for i, port := range ports {
		portPath := path.Index(i)
		if len(validation.IsValidPortNum(int(port.ContainerPort))) > 0 {
			c.invalid(portPath.Child("containerPort"), port.ContainerPort,
				"must be a number from 1 to 65535: give the port that the container listens at")
		}
		if port.HostPort != 0 && len(validation.IsValidPortNum(int(port.HostPort))) > 0 {
			c.invalid(portPath.Child("hostPort"), port.HostPort, "must be a number from 1 to 65535: give a port of the node, or leave it out")
		} else if c.pod.HostNetwork && port.HostPort != 0 && port.HostPort != port.ContainerPort {
			c.invalid(portPath.Child("hostPort"), port.HostPort, "must be the containerPort where hostNetwork is true: leave it out")
		}
		oneOf(c.findings, portPath.Child("protocol"), port.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
		if port.Name != "" && len(validation.IsValidPortName(port.Name)) > 0 {
			c.invalid(portPath.Child("name"), port.Name,
				"must be the name of a port: use at most 15 lower-case letters, digits and -, a letter among them")
		}
		if numbers[keyOf(port)] {
			c.duplicate(portPath.Child("containerPort"), port.ContainerPort, "is declared twice in the container: keep one of the two, under the name that is used")
		}
		numbers[keyOf(port)] = true
		if port.Name != "" && names[port.Name] {
			c.duplicate(portPath.Child("name"), port.Name, "is the name of two ports of the container: rename one of them")
		}
		names[port.Name] = true
	}
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

// hostPorts judges the ports of the node, which it gives out once. On the host
// network every container port is one. Otherwise a number that two containers
// declare is only information, and Kubernetes accepts it.
func (c *containerJudge) hostPorts(containers []corev1.Container, at func(int) *field.Path) {
	type hostPort struct {
		portKey
		ip string
	}
	owner := map[hostPort]int{}
	for i := range containers {
		for j, port := range containers[i].Ports {
			key, child := hostPort{portKey: keyOf(port)}, "containerPort"
			if !c.pod.HostNetwork {
				if port.HostPort == 0 {
					continue
				}
				key.number, key.ip, child = port.HostPort, port.HostIP, "hostPort"
			}
			first, taken := owner[key]
			switch {
			case !taken:
				owner[key] = i
			case first != i && c.pod.HostNetwork:
				c.duplicate(at(i).Child("ports").Index(j).Child(child), port.ContainerPort, fmt.Sprintf(
					"is a port of container %s too, and both share the host network: move one of them", containers[first].Name))
			case !c.pod.HostNetwork:
				c.duplicate(at(i).Child("ports").Index(j).Child(child), port.HostPort, fmt.Sprintf(
					"is a port of the node that container %s has already: move one of them, or leave it out", containers[first].Name))
			}
		}
	}
}

// runsOnce judges an init container that ends before the others start.
func (c *containerJudge) runsOnce(container *corev1.Container, path *field.Path) {
	for _, child := range members(member{"lifecycle", container.Lifecycle != nil}, member{"livenessProbe", container.LivenessProbe != nil},
		member{"readinessProbe", container.ReadinessProbe != nil}, member{"startupProbe", container.StartupProbe != nil}) {
		c.forbidden(path.Child(child), "is not for an init container that ends before the others start: remove it, or set its restartPolicy to Always")
	}
}

func (c *containerJudge) restartRules(container *corev1.Container, path *field.Path) {
	if container.RestartPolicy != nil {
		if *container.RestartPolicy == "" {
			c.required(path.Child("restartPolicy"), "must not be empty: write Always, OnFailure or Never, or leave it out")
		}
		oneOf(c.findings, path.Child("restartPolicy"), *container.RestartPolicy,
			corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyNever)
	} else if len(container.RestartPolicyRules) > 0 {
		c.required(path.Child("restartPolicy"), "restartPolicyRules need one beside them: write Always, OnFailure or Never")
	}
	for i, rule := range container.RestartPolicyRules {
		rulePath := path.Child("restartPolicyRules").Index(i)
		oneOf(c.findings, rulePath.Child("action"), rule.Action, corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers)
		if rule.ExitCodes == nil {
			c.required(rulePath.Child("exitCodes"), "a rule goes by exit codes: write operator and values, or remove the rule")
		} else {
			oneOf(c.findings, rulePath.Child("exitCodes", "operator"), rule.ExitCodes.Operator,
				corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)
		}
	}
}

// mounts judges where the volumes of the pod are in a container.
func (c *containerJudge) mounts(container *corev1.Container, path *field.Path) {
	places := map[string]bool{}
	for i := range container.VolumeMounts {
		mount, mountPath := &container.VolumeMounts[i], path.Child("volumeMounts").Index(i)
		c.reference(mount.Name, mountPath.Child("name"))
		c.place(mount.MountPath, places, mountPath.Child("mountPath"))
		c.mountOptions(container, mount, mountPath)
	}
	devices := map[string]bool{}
	for i, device := range container.VolumeDevices {
		devicePath := path.Child("volumeDevices").Index(i)
		c.reference(device.Name, devicePath.Child("name"))
		c.place(device.DevicePath, places, devicePath.Child("devicePath"))
		volume := c.volumes[device.Name]
		switch {
		case volume != nil && volume.PersistentVolumeClaim == nil && volume.Ephemeral == nil:
			c.invalid(devicePath.Child("name"), device.Name, "must be a volume of a claim: only those can be block devices; use volumeMounts")
		case devices[device.Name] || slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == device.Name }):
			c.invalid(devicePath.Child("name"), device.Name, "is used twice by the container: use the volume once, as a device or as a mount")
		}
		devices[device.Name] = true
	}
}

func (c *containerJudge) place(place string, taken map[string]bool, path *field.Path) {
	switch {
	case place == "":
		c.required(path, "say where in the container: write it as /data")
	case taken[place]:
		c.duplicate(path, place, "is where another volume is: give each a place of its own")
	case strings.HasSuffix(path.String(), "devicePath") && slices.Contains(strings.Split(place, "/"), ".."):
		c.invalid(path, place, "must not have ..: write it as /dev/xvda")
	}
	taken[place] = true
}

func (c *containerJudge) mountOptions(container *corev1.Container, mount *corev1.VolumeMount, path *field.Path) {
	c.relative(path.Child("subPath"), mount.SubPath)
	c.relative(path.Child("subPathExpr"), mount.SubPathExpr)
	if mount.SubPath != "" && mount.SubPathExpr != "" {
		c.invalid(path.Child("subPathExpr"), mount.SubPathExpr, "must not stand beside subPath: keep one of the two")
	}
	if propagation := mount.MountPropagation; propagation != nil {
		oneOf(c.findings, path.Child("mountPropagation"), *propagation,
			corev1.MountPropagationNone, corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional)
		if *propagation == corev1.MountPropagationBidirectional && !isPrivileged(container) {
			c.forbidden(path.Child("mountPropagation"), "must not be Bidirectional in a container that is not privileged: use HostToContainer")
		}
	}
	if recursive := mount.RecursiveReadOnly; recursive != nil {
		oneOf(c.findings, path.Child("recursiveReadOnly"), *recursive,
			corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyIfPossible, corev1.RecursiveReadOnlyEnabled)
		if *recursive != corev1.RecursiveReadOnlyDisabled && !mount.ReadOnly {
			c.forbidden(path.Child("recursiveReadOnly"), "is only for mounts that are readOnly: set readOnly, or remove it")
		}
	}
}

func isPrivileged(container *corev1.Container) bool {
	return container.SecurityContext != nil && container.SecurityContext.Privileged != nil && *container.SecurityContext.Privileged
}

// reference finds the volume that a mount names.
func (c *containerJudge) reference(name string, path *field.Path) {
	if c.volumes[name] != nil {
		return
	}
	names := make([]string, 0, len(c.volumes))
	for volume := range c.volumes {
		names = append(names, volume)
	}
	fix := "add a volume of that name to the template"
	if near := Nearest(name, names); near != "" {
		fix = fmt.Sprintf("did you mean %s?", near)
	}
	fault := field.NotFound(path, name)
	fault.Detail = "is no volume of the pod: " + fix
	c.errs = append(c.errs, fault)
}
