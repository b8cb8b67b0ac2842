package ray

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

const gcsWaiter = "wait-gcs-ready"

// awaitGCS keeps a worker from starting Ray before the head answers. The waiter
// asks for no accelerator: a device would be given to it and to the container
// that it waits for.
func awaitGCS(cluster *v1.RayCluster, pod *corev1.Pod) {
	container := &pod.Spec.Containers[0]
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
	}
	script := fmt.Sprintf(`until ray health-check --address %s:%s >/dev/null 2>&1; do echo "waiting for the head to answer"; sleep 5; done`,
		headAddress(cluster), headPort(cluster))
	waiter := corev1.Container{
		Name:            gcsWaiter,
		Image:           container.Image,
		ImagePullPolicy: container.ImagePullPolicy,
		Command:         shell(),
		Args:            []string{script},
		Env:             container.Env,
		EnvFrom:         container.EnvFrom,
		VolumeMounts:    container.VolumeMounts,
		SecurityContext: container.SecurityContext,
		Resources:       corev1.ResourceRequirements{Limits: amounts, Requests: amounts.DeepCopy()},
	}
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, *waiter.DeepCopy())
}

// firstHealthz is the version of Ray from which on one URL says whether a node
// is well.
var firstHealthz = version.MustParseGeneric("2.53.0")

// probe adds the probes that the author did not give.
func probe(cluster *v1.RayCluster, role *v1.RayRole, container *corev1.Container, params map[string]string) {
	handler := probeHandler(cluster, role, params)
	if container.LivenessProbe == nil {
		timeout := int32(2)
		if role.Name == v1.RoleHead {
			timeout = 5
		}
		container.LivenessProbe = &corev1.Probe{
			ProbeHandler: *handler.DeepCopy(), InitialDelaySeconds: 30, TimeoutSeconds: timeout, PeriodSeconds: 5, SuccessThreshold: 1, FailureThreshold: 120,
		}
	}
	if container.ReadinessProbe == nil {
		timeout := int32(2)
		if role.Name == v1.RoleHead {
			timeout = 5
		}
		container.ReadinessProbe = &corev1.Probe{
			ProbeHandler: handler, InitialDelaySeconds: 10, TimeoutSeconds: timeout, PeriodSeconds: 5, SuccessThreshold: 1, FailureThreshold: 10,
		}
	}
}

// probeHandler asks the node's agent, and of a head of an older version the
// control store as well.
func probeHandler(cluster *v1.RayCluster, role *v1.RayRole, params map[string]string) corev1.ProbeHandler {
	agent := params["dashboard-agent-listen-port"]
	if hasHealthz(cluster) {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/api/healthz", Port: intstr.Parse(agent)}}
	}
	urls := []string{"http://localhost:" + agent + "/api/local_raylet_healthz"}
	if role.Name == v1.RoleHead {
		dashboard := params["dashboard-port"]
		if dashboard == "" {
			dashboard = dashboardPort
		}
		urls = append(urls, "http://localhost:"+dashboard+"/api/gcs_healthz")
	}
	for i, url := range urls {
		urls[i] = "wget --tries 1 -T 2 -q -O- " + url + " | grep success"
	}
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"bash", "-c", strings.Join(urls, " && ")}}}
}

// hasHealthz says whether the cluster's version of Ray has that URL. Where no
// version is given, what every version has is asked.
func hasHealthz(cluster *v1.RayCluster) bool {
	v, err := version.ParseGeneric(ptr.Deref(cluster.Spec.RayVersion, ""))
	return err == nil && v.AtLeast(firstHealthz)
}
