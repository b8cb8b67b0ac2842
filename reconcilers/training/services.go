package training

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// planServices gives every member a headless service of the pod's name, by
// which its peers find it, and removes those of members that are not wanted.
func (p *planner) planServices() {
	wanted := map[string]bool{}
	for _, crew := range p.census.crews {
		for _, m := range crew.members {
			service := p.service(m)
			wanted[*service.Name] = true
			p.result.Apply = append(p.result.Apply, service)
		}
	}
	for _, service := range plan.ChildrenOf[*corev1.Service](p.observed) {
		if !wanted[service.Name] {
			p.remove(service, "its pod is not wanted")
		}
	}
}

func (p *planner) service(m *member) *corev1ac.ServiceApplyConfiguration {
	labels := memberLabels(p.job, m.role.Name, m.index)
	return corev1ac.Service(childName(p.job, m.role.Name, m.index), p.job.Namespace).
		WithLabels(labels).
		WithSpec(corev1ac.ServiceSpec().
			WithClusterIP(corev1.ClusterIPNone).
			WithSelector(labels).
			WithPorts(servicePorts(m.role, p.census.container())...).
			// Peers must find each other in order to become ready.
			WithPublishNotReadyAddresses(true))
}

// servicePorts are the named ports of the main container. Of two with one
// number or one name the first is taken: a service cannot have both, and a
// headless one needs neither.
func servicePorts(role *v1.Role, name string) []*corev1ac.ServicePortApplyConfiguration {
	container := pods.MainContainer(&role.Template.Spec, name)
	if container == nil {
		return nil
	}
	type endpoint struct {
		number   int32
		protocol corev1.Protocol
	}
	names, endpoints := map[string]bool{}, map[endpoint]bool{}
	var ports []*corev1ac.ServicePortApplyConfiguration
	for _, port := range container.Ports {
		protocol := port.Protocol
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		e := endpoint{port.ContainerPort, protocol}
		if port.Name == "" || names[port.Name] || endpoints[e] {
			continue
		}
		names[port.Name], endpoints[e] = true, true
		ports = append(ports, corev1ac.ServicePort().
			WithName(port.Name).WithPort(port.ContainerPort).WithProtocol(protocol))
	}
	return ports
}
