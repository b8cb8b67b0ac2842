package ray

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// How Ray is started.
//
// A pod runs `ray start` with the flags that its role gives and those that
// follow from the limits of its first container. A command of the author's own
// runs before it, unless it starts Ray itself.

const (
	startCommandVariable = "KUBERAY_GEN_RAY_START_CMD"
	overwriteAnnotation  = "ray.io/overwrite-container-cmd"

	gcsPort       = "6379"
	agentPort     = "52365"
	dashboardPort = "8265"
)

// valued are the flags that take true and false as values: of the others true is
// the flag alone, and false none.
var valued = []string{"log-color", "include-dashboard", "include-log-monitor"}

func rayStartParams(role *v1.RayRole) map[string]string {
	return ptr.Deref(role.Ray, v1.RayNode{}).StartParams
}

// headPort is the port of the global control store.
func headPort(cluster *v1.RayCluster) string {
	if port := rayStartParams(headOf(cluster))["port"]; port != "" {
		return port
	}
	return gcsPort
}

// startParams returns the flags of `ray start`, without dashes.
func startParams(cluster *v1.RayCluster, role *v1.RayRole) map[string]string {
	params := map[string]string{
		"metrics-export-port":         itoa(metricsPort.ContainerPort),
		"dashboard-agent-listen-port": agentPort,
	}
	if role.Name == v1.RoleHead {
		params["dashboard-host"] = "0.0.0.0"
		if autoscales(cluster) {
			// The autoscaler's own container monitors.
			params["no-monitor"] = "true"
		}
	} else {
		params["address"] = headAddress(cluster) + ":" + headPort(cluster)
	}
	if containers := role.Template.Spec.Containers; len(containers) > 0 {
		maps.Copy(params, resourceParams(&containers[0]))
	}
	maps.Copy(params, overriddenResources(role, params["resources"]))
	if labels := ptr.Deref(role.Ray, v1.RayNode{}).Labels; len(labels) > 0 {
		params["labels"] = nodeLabels(labels)
	}
	maps.Copy(params, rayStartParams(role))
	// The container must run as long as Ray does.
	params["block"] = "true"
	return params
}

// startCommand is the command line that starts Ray, in a shell.
func startCommand(role *v1.RayRole, params map[string]string) string {
	words := []string{"ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; ray start"}
	if role.Name == v1.RoleHead {
		words = append(words, "--head")
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		switch value := params[name]; {
		case slices.Contains(valued, name):
			words = append(words, "--"+name+"="+value)
		case strings.EqualFold(value, "true"):
			words = append(words, "--"+name)
		case strings.EqualFold(value, "false"):
		default:
			words = append(words, "--"+name+"="+value)
		}
	}
	return strings.Join(words, " ")
}

// setCommand makes a container run a command after what its author wants run.
func setCommand(cluster *v1.RayCluster, role *v1.RayRole, container *corev1.Container, command string) {
	if cluster.Annotations[overwriteAnnotation] == "true" || role.Template.Annotations[overwriteAnnotation] == "true" {
		return
	}
	before := commandLine(slices.Concat(container.Command, container.Args))
	if strings.Contains(before, "ray start") {
		return
	}
	if before != "" {
		command = before + " && { " + command + "; }"
	}
	container.Command, container.Args = shell(), []string{command}
}

// commandLine writes the words of a container's command as a shell reads them.
// They are such text already, as KubeRay has it, unless they call a shell
// themselves: then what that is given must stay one word.
func commandLine(words []string) string {
	if len(words) > 2 && strings.HasSuffix(words[0], "sh") && strings.HasPrefix(words[1], "-") {
		words = slices.Clone(words)
		for i := range words {
			words[i] = "'" + strings.ReplaceAll(words[i], "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

func shell() []string { return []string{"/bin/bash", "-c", "--"} }

var migSlice = regexp.MustCompile(`^nvidia\.com/mig-\d+g\.\d+gb`)

// isGPU says whether a resource is one of GPUs, or of slices of GPUs.
func isGPU(name corev1.ResourceName) bool {
	return strings.HasSuffix(string(name), "gpu") || migSlice.MatchString(string(name))
}

// accelerators are those that Ray knows by a name of its own.
var accelerators = map[corev1.ResourceName]string{
	"aws.amazon.com/neuroncore": "neuron_cores",
	tpu:                         "TPU",
}

const tpu corev1.ResourceName = "google.com/tpu"

// resourceParams is what follows from what a container may use.
func resourceParams(container *corev1.Container) map[string]string {
	params := map[string]string{}
	if cpus, ok := amount(container, corev1.ResourceCPU); ok && !cpus.IsZero() {
		params["num-cpus"] = wholes(cpus)
	}
	if memory, ok := container.Resources.Limits[corev1.ResourceMemory]; ok && !memory.IsZero() {
		params["memory"] = wholes(memory)
	}
	var gpus resource.Quantity
	custom := map[string]int64{}
	for name, quantity := range container.Resources.Limits {
		if isGPU(name) {
			gpus.Add(quantity)
		}
		if known, ok := accelerators[name]; ok && !quantity.IsZero() {
			custom[known] = quantity.Value()
		}
	}
	if !gpus.IsZero() || len(container.Resources.Claims) == 0 {
		// Without a number Ray would count all GPUs of the node that it can see.
		// What a claim gives it has to count itself.
		params["num-gpus"] = wholes(gpus)
	}
	if len(custom) > 0 {
		params["resources"] = quoted(custom)
	}
	return params
}

// amount is the limit of a resource, or else its request.
func amount(container *corev1.Container, name corev1.ResourceName) (resource.Quantity, bool) {
	if limit, ok := container.Resources.Limits[name]; ok {
		return limit, true
	}
	request, ok := container.Resources.Requests[name]
	return request, ok
}

// wholes rounds a quantity up to a whole number.
func wholes(quantity resource.Quantity) string {
	return strconv.FormatInt(quantity.Value(), 10)
}

// overriddenResources is what a role says in place of what follows from limits;
// custom is what does so of Ray's own resources.
func overriddenResources(role *v1.RayRole, custom string) map[string]string {
	flags := map[string]string{"CPU": "num-cpus", "GPU": "num-gpus", "memory": "memory"}
	params := map[string]string{}
	others := map[string]float64{}
	for name, value := range ptr.Deref(role.Ray, v1.RayNode{}).Resources {
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			continue
		}
		if flag, ok := flags[name]; ok {
			params[flag] = wholes(quantity)
			continue
		}
		others[name] = quantity.AsApproximateFloat64()
	}
	if len(others) > 0 {
		var derived map[string]float64
		if json.Unmarshal([]byte(strings.Trim(custom, "'")), &derived) == nil {
			maps.Copy(derived, others)
			others = derived
		}
		params["resources"] = quoted(others)
	}
	return params
}

// quoted writes resources for the command line.
func quoted(resources any) string {
	text, _ := json.Marshal(resources)
	return "'" + string(text) + "'"
}

func nodeLabels(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return `"` + strings.Join(pairs, ",") + `"`
}
