package ray

import (
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

const (
	ingressClassAnnotation = "kubernetes.io/ingress.class"
	dashboardPortName      = "dashboard"
	// lastAppliedAnnotation is kubectl's own, of the cluster as a whole.
	lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"
)

func ingressName(cluster *v1.RayCluster) string { return fitted(cluster, "-head-ingress") }

// planIngress asks for the way to the dashboard from outside, or for none.
func (p *planner) planIngress() {
	head := p.cluster.Spec.Head
	if head == nil || head.Ingress == nil || head.Ingress.Mode != v1.Enabled {
		for _, ingress := range plan.ChildrenOf[*networkingv1.Ingress](p.observed) {
			p.remove(ingress, "the dashboard has no ingress")
		}
		return
	}
	o := head.Ingress
	pathType := networkingv1.PathTypePrefix
	if o.PathType != "" {
		pathType = o.PathType
	}
	rule := networkingv1ac.IngressRule().WithHTTP(networkingv1ac.HTTPIngressRuleValue().WithPaths(
		networkingv1ac.HTTPIngressPath().WithPath(ptr.Deref(o.Path, "/")).WithPathType(pathType).
			WithBackend(networkingv1ac.IngressBackend().WithService(networkingv1ac.IngressServiceBackend().
				WithName(headServiceName(p.cluster)).WithPort(networkingv1ac.ServiceBackendPort().WithNumber(dashboardOf(p.cluster))))),
	))
	if o.Host != nil {
		rule.WithHost(*o.Host)
	}
	spec := networkingv1ac.IngressSpec().WithRules(rule)
	for _, tls := range o.TLS {
		certified := networkingv1ac.IngressTLS().WithHosts(tls.Hosts...)
		if tls.SecretName != "" {
			certified.WithSecretName(tls.SecretName)
		}
		spec.WithTLS(certified)
	}
	// Ingress controllers are told what to do by annotations, which are given on
	// the cluster.
	annotations := pods.WithLabels(p.cluster.Annotations, nil)
	for _, key := range []string{v1.RestoreAnnotation, lastAppliedAnnotation, ingressClassAnnotation} {
		delete(annotations, key)
	}
	if class := p.cluster.Annotations[ingressClassAnnotation]; class != "" {
		spec.WithIngressClassName(class)
	}
	ingress := networkingv1ac.Ingress(ingressName(p.cluster), p.cluster.Namespace).
		WithLabels(clusterLabels(p.cluster)).WithAnnotations(annotations).WithSpec(spec)
	ingress.WithAnnotations(map[string]string{appliedAnnotation: digest(ingress)})
	p.result.Apply = append(p.result.Apply, ingress)
}

// dashboardOf is the port of the dashboard.
func dashboardOf(cluster *v1.RayCluster) int32 {
	for _, port := range containerPorts(cluster) {
		if port.Name == dashboardPortName {
			return port.ContainerPort
		}
	}
	n, _ := number(dashboardPort)
	return n
}
