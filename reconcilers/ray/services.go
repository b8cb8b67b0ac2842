package ray

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

const (
	serveAnnotation = "ray.io/enable-serve-service"
	servePortName   = "serve"
	// appliedAnnotation holds a hash of what was applied, so that what is not
	// wanted any more, as an annotation, is seen to be missing from it.
	appliedAnnotation = "penstock.dev/applied"
)

var metricsPort = corev1.ContainerPort{Name: "metrics", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}

// headPorts are the ports of a head whose container names none.
func headPorts(role *v1.RayRole) []corev1.ContainerPort {
	gcs := int32(6379)
	if n, ok := number(rayStartParams(role)["port"]); ok && n > 0 {
		gcs = n
	}
	port := func(name string, n int32) corev1.ContainerPort {
		return corev1.ContainerPort{Name: name, ContainerPort: n, Protocol: corev1.ProtocolTCP}
	}
	return []corev1.ContainerPort{port("client", 10001), port("gcs-server", gcs), port("dashboard", 8265), metricsPort, port(servePortName, 8000)}
}

// containerPorts are the ports of the head, each with a name: those that its
// container declares, and metrics, or else the usual ones.
func containerPorts(cluster *v1.RayCluster) []corev1.ContainerPort {
	role := headOf(cluster)
	var declared []corev1.ContainerPort
	if containers := role.Template.Spec.Containers; len(containers) > 0 {
		declared = slices.Clone(containers[0].Ports)
	}
	if len(declared) == 0 {
		return headPorts(role)
	}
	hasMetrics := false
	for i := range declared {
		if declared[i].Name == "" {
			declared[i].Name = itoa(declared[i].ContainerPort) + "-port"
		}
		hasMetrics = hasMetrics || declared[i].Name == metricsPort.Name
	}
	if !hasMetrics {
		declared = append(declared, metricsPort)
	}
	return declared
}

// servicePorts are the ports of the head's service. Of two with one name or one
// number the first is taken: a service cannot have both.
func servicePorts(cluster *v1.RayCluster) []*corev1ac.ServicePortApplyConfiguration {
	names, numbers := map[string]bool{}, map[int32]bool{}
	var ports []*corev1ac.ServicePortApplyConfiguration
	for _, port := range containerPorts(cluster) {
		if names[port.Name] || numbers[port.ContainerPort] {
			continue
		}
		names[port.Name], numbers[port.ContainerPort] = true, true
		ports = append(ports, servicePort(port))
	}
	return ports
}

func servicePort(port corev1.ContainerPort) *corev1ac.ServicePortApplyConfiguration {
	protocol := port.Protocol
	if protocol == "" {
		protocol = corev1.ProtocolTCP
	}
	return corev1ac.ServicePort().WithName(port.Name).WithPort(port.ContainerPort).
		WithTargetPort(intstr.FromInt32(port.ContainerPort)).WithProtocol(protocol).WithAppProtocol("tcp")
}

// planServices asks for the services of a cluster, and for no other.
func (p *planner) planServices() {
	wanted := map[string]*corev1ac.ServiceApplyConfiguration{}
	for _, service := range p.services() {
		wanted[*service.Name] = service
		if there := p.service(*service.Name); there != nil && isHeadless(there) != isHeadlessWanted(service) {
			// A service cannot get or lose an address of its own.
			p.remove(there, "made anew with another kind of address")
			continue
		}
		p.result.Apply = append(p.result.Apply, service)
	}
	for _, service := range plan.ChildrenOf[*corev1.Service](p.observed) {
		if wanted[service.Name] == nil && !p.isInUse(service) {
			p.remove(service, "the cluster has no such service")
		}
	}
}

// isInUse says whether a service that is not wanted any more is the head's by an
// earlier name, and there are workers of an older template, who may know the
// head by that. It still selects the head.
func (p *planner) isInUse(service *corev1.Service) bool {
	return service.Labels[rayNodeTypeLabel] == headNodeType && !p.suspends() &&
		slices.ContainsFunc(p.census.groups, func(g *group) bool { return slices.ContainsFunc(g.staying(), p.outdated) })
}

func (p *planner) service(name string) *corev1.Service {
	for _, service := range plan.ChildrenOf[*corev1.Service](p.observed) {
		if service.Name == name {
			return service
		}
	}
	return nil
}

func isHeadless(service *corev1.Service) bool { return service.Spec.ClusterIP == corev1.ClusterIPNone }

func isHeadlessWanted(service *corev1ac.ServiceApplyConfiguration) bool {
	return service.Spec.ClusterIP != nil && *service.Spec.ClusterIP == corev1.ClusterIPNone
}

func (p *planner) services() []*corev1ac.ServiceApplyConfiguration {
	services := []*corev1ac.ServiceApplyConfiguration{p.headService()}
	if slices.ContainsFunc(p.cluster.Spec.Roles, func(r v1.RayRole) bool { return hostsOf(&r) > 1 }) {
		services = append(services, p.headlessService())
	}
	if serve := p.serveService(); serve != nil {
		services = append(services, serve)
	}
	for _, service := range services {
		service.WithAnnotations(map[string]string{appliedAnnotation: digest(service)})
	}
	return services
}

// digest tells one configuration from another.
func digest(configuration any) string {
	// Every apply configuration can be encoded.
	text, _ := json.Marshal(configuration)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:10]
}

// headSelector selects the pod of the head.
func headSelector(cluster *v1.RayCluster) map[string]string {
	return map[string]string{v1.ClusterNameLabel: cluster.Name, rayClusterLabel: cluster.Name, rayNodeTypeLabel: headNodeType}
}

// headService is where workers and clients find the head. It has no address of
// its own, and so leads to the pod, unless it is asked for as something else.
func (p *planner) headService() *corev1ac.ServiceApplyConfiguration {
	head := p.cluster.Spec.Head
	if head == nil {
		head = &v1.RayHead{}
	}
	labels, annotations := clusterLabels(p.cluster), head.ServiceAnnotations
	labels[rayNodeTypeLabel] = headNodeType
	spec := corev1ac.ServiceSpec()
	if head.Service != nil {
		if meta := head.Service.Metadata; meta != nil {
			labels, annotations = pods.WithLabels(meta.Labels, labels), pods.WithLabels(annotations, meta.Annotations)
		}
		if head.Service.Spec != nil {
			spec = givenSpec(head.Service.Spec)
		}
	}
	kind := corev1.ServiceTypeClusterIP
	if head.ServiceType != nil && *head.ServiceType != "" {
		kind = corev1.ServiceType(*head.ServiceType)
	}
	if spec.Type == nil {
		spec.WithType(kind)
	}
	if *spec.Type == corev1.ServiceTypeClusterIP && (head.Service == nil || head.Service.Spec == nil) {
		spec.WithClusterIP(corev1.ClusterIPNone)
	}
	spec.Selector = headSelector(p.cluster)
	if len(spec.Ports) == 0 {
		spec.WithPorts(servicePorts(p.cluster)...)
	} else {
		addMissingPorts(spec, servicePorts(p.cluster))
	}
	// Workers must find the head in order to make it useful.
	spec.WithPublishNotReadyAddresses(true)
	return corev1ac.Service(headServiceName(p.cluster), p.cluster.Namespace).
		WithLabels(labels).WithAnnotations(annotations).WithSpec(spec)
}

// givenSpec is the spec of a service as its author wrote it.
func givenSpec(given *corev1.ServiceSpec) *corev1ac.ServiceSpecApplyConfiguration {
	spec := corev1ac.ServiceSpec()
	// One is the other with pointers: what is not given stays so.
	text, _ := json.Marshal(given)
	if err := json.Unmarshal(text, spec); err != nil {
		return corev1ac.ServiceSpec()
	}
	for i := range spec.Ports {
		if target := spec.Ports[i].TargetPort; target != nil && *target == (intstr.IntOrString{}) {
			// Text has a 0 where none is given, and the API server puts the port's own
			// number there.
			spec.Ports[i].TargetPort = nil
		}
		if spec.Ports[i].Protocol == nil {
			// It is part of the key that a port goes by.
			spec.Ports[i].WithProtocol(corev1.ProtocolTCP)
		}
	}
	return spec
}

// addMissingPorts adds the ports of the head that a service does not have.
func addMissingPorts(spec *corev1ac.ServiceSpecApplyConfiguration, ports []*corev1ac.ServicePortApplyConfiguration) {
	for _, port := range ports {
		taken := slices.ContainsFunc(spec.Ports, func(there corev1ac.ServicePortApplyConfiguration) bool {
			return there.Name != nil && *there.Name == *port.Name || there.Port != nil && *there.Port == *port.Port
		})
		if !taken {
			spec.WithPorts(port)
		}
	}
}

// headlessService gives the hosts of a replica names.
func (p *planner) headlessService() *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(headlessName(p.cluster), p.cluster.Namespace).
		WithLabels(clusterLabels(p.cluster)).
		WithSpec(corev1ac.ServiceSpec().
			WithClusterIP(corev1.ClusterIPNone).
			WithSelector(map[string]string{
				v1.ClusterNameLabel: p.cluster.Name, rayClusterLabel: p.cluster.Name, rayNodeTypeLabel: workerNodeType,
			}).
			// Hosts must find each other in order to become ready.
			WithPublishNotReadyAddresses(true))
}

// servesApplications says whether the cluster asks for a service of what Ray
// Serve runs on it.
func servesApplications(cluster *v1.RayCluster) bool {
	return cluster.Annotations[serveAnnotation] == "true"
}

// serveService leads to the ports of Ray Serve alone; nil where there is none.
func (p *planner) serveService() *corev1ac.ServiceApplyConfiguration {
	if !servesApplications(p.cluster) {
		return nil
	}
	spec := corev1ac.ServiceSpec().WithSelector(map[string]string{
		v1.ClusterNameLabel: p.cluster.Name, rayClusterLabel: p.cluster.Name, rayServeLabel: "true",
	})
	for _, port := range servicePorts(p.cluster) {
		if *port.Name == servePortName || strings.HasPrefix(*port.Name, servePortName+"-") {
			spec.WithPorts(port)
		}
	}
	if len(spec.Ports) == 0 {
		return nil
	}
	return corev1ac.Service(serveServiceName(p.cluster), p.cluster.Namespace).WithLabels(clusterLabels(p.cluster)).WithSpec(spec)
}
