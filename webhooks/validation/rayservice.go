package validation

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// What the API server would refuse of the head's service and ingress: pods would
// wait for what is never made. Like ValidatePodTemplate these are the rules of
// Kubernetes for new objects, as far as no setting of the API server changes
// them.

func (f *findings) headService(head *v1.RayHead, path *field.Path) {
	if len(head.ServiceAnnotations) > 0 {
		f.annotationKeys(path.Child("serviceAnnotations"), head.ServiceAnnotations)
	}
	if head.Service == nil {
		return
	}
	path = path.Child("service")
	if meta := head.Service.Metadata; meta != nil {
		f.labels(path.Child("metadata", "labels"), meta.Labels)
		f.annotationKeys(path.Child("metadata", "annotations"), meta.Annotations)
	}
	if head.Service.Spec != nil {
		f.serviceSpec(head.Service.Spec, corev1.ServiceType(ptr.Deref(head.ServiceType, "")), path.Child("spec"))
	}
}

func (f *findings) annotationKeys(path *field.Path, annotations map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
			f.invalid(path.Key(key), key, keyForm)
		}
	}
}

func (f *findings) serviceSpec(spec *corev1.ServiceSpec, elsewhere corev1.ServiceType, path *field.Path) {
	kind := spec.Type
	if kind == "" {
		kind = elsewhere
	}
	if spec.Type == corev1.ServiceTypeExternalName {
		f.invalid(path.Child("type"), spec.Type, "leads away from the head, and workers find it by this service: write ClusterIP, NodePort or LoadBalancer")
	} else {
		oneOf(f, path.Child("type"), spec.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer)
	}
	oneOf(f, path.Child("sessionAffinity"), spec.SessionAffinity, corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP)
	oneOf(f, path.Child("externalTrafficPolicy"), spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	reachable := kind == corev1.ServiceTypeNodePort || kind == corev1.ServiceTypeLoadBalancer
	switch ip := spec.ClusterIP; {
	case ip == corev1.ClusterIPNone && reachable:
		f.invalid(path.Child("clusterIP"), ip, fmt.Sprintf("must not be None for type %s, which needs an address: leave it out", kind))
	case ip != "" && ip != corev1.ClusterIPNone:
		f.address(path.Child("clusterIP"), ip)
	}
	if spec.ExternalTrafficPolicy != "" && !reachable && len(spec.ExternalIPs) == 0 {
		f.invalid(path.Child("externalTrafficPolicy"), spec.ExternalTrafficPolicy, "is for types NodePort and LoadBalancer: remove it, or change type")
	}
	f.servicePorts(spec.Ports, reachable, path.Child("ports"))
}

func (f *findings) servicePorts(ports []corev1.ServicePort, reachable bool, path *field.Path) {
	type nodePort struct {
		number   int32
		protocol corev1.Protocol
	}
	names, numbers := map[string]bool{}, map[nodePort]bool{}
	for i, port := range ports {
		portPath := path.Index(i)
		switch {
		case port.Name == "":
			// Those of the head that are not in the list are added.
			f.required(portPath.Child("name"), "a service of several ports tells them apart by their names: write one, such as dashboard")
		case len(validation.IsDNS1123Label(port.Name)) > 0:
			f.label(portPath.Child("name"), port.Name)
		case names[port.Name]:
			f.duplicate(portPath.Child("name"), port.Name, "is the name of two ports of the service: rename one of them")
		}
		names[port.Name] = true
		oneOf(f, portPath.Child("protocol"), port.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
		f.port(portPath.Child("port"), port.Port, "give the port that clients connect to")
		f.targetPort(port.TargetPort, portPath.Child("targetPort"))
		if port.NodePort == 0 {
			continue
		}
		f.port(portPath.Child("nodePort"), port.NodePort, "give a port of the nodes, or leave it out")
		if !reachable {
			f.forbidden(portPath.Child("nodePort"), "is for types NodePort and LoadBalancer: remove it, or change type")
		}
		key := nodePort{port.NodePort, port.Protocol}
		if key.protocol == "" {
			key.protocol = corev1.ProtocolTCP
		}
		if numbers[key] {
			f.duplicate(portPath.Child("nodePort"), port.NodePort, "is given to two ports of the service: change one of them, or leave it out")
		}
		numbers[key] = true
	}
}

func (f *findings) port(path *field.Path, number int32, fix string) {
	f.between(path, int64(number), 1, 65535, fix)
}

func (f *findings) targetPort(target intstr.IntOrString, path *field.Path) {
	switch {
	case target == (intstr.IntOrString{}):
	case target.Type == intstr.Int:
		f.port(path, target.IntVal, "give the port that the head listens at, or leave it out")
	case len(validation.IsValidPortName(target.StrVal)) > 0:
		f.invalid(path, target.StrVal, "must be the number or the name of a port of the head: correct it, or leave it out")
	}
}

func (f *findings) ingress(ingress *v1.RayIngress, path *field.Path) {
	if ingress.Mode != v1.Enabled {
		return
	}
	if host := ptr.Deref(ingress.Host, ""); host != "" {
		f.host(path.Child("host"), host)
	}
	f.urlPath(path.Child("path"), ingress.Path, ingress.PathType)
	for i, tls := range ingress.TLS {
		tlsPath := path.Child("tls").Index(i)
		for j, host := range tls.Hosts {
			f.host(tlsPath.Child("hosts").Index(j), host)
		}
		f.subdomain(tlsPath.Child("secretName"), tls.SecretName)
	}
}

func (f *findings) host(path *field.Path, host string) {
	wildcard := strings.HasPrefix(host, "*.")
	switch {
	case net.ParseIP(host) != nil:
		f.invalid(path, host, "must be a name, and this is an address: write it as ray.example.com, or leave it out")
	case wildcard && len(validation.IsWildcardDNS1123Subdomain(host)) > 0,
		!wildcard && len(validation.IsDNS1123Subdomain(host)) > 0:
		f.invalid(path, host, "must be the name of a host, without scheme, port and path: write it as ray.example.com or *.example.com, in lower case")
	}
}

func (f *findings) urlPath(path *field.Path, given *string, kind networkingv1.PathType) {
	text := ptr.Deref(given, "/")
	anywhere := kind == networkingv1.PathTypeImplementationSpecific
	switch {
	case anywhere && text == "":
	case !strings.HasPrefix(text, "/"):
		f.invalid(path, text, "must begin with /: write it as /ray, or leave it out")
	case anywhere:
	case hasDetour(text):
		f.invalid(path, text, "must be a plain path, without //, /./, /../ and %2f: write it as /ray")
	}
}

func hasDetour(path string) bool {
	for _, detour := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(path, detour) {
			return true
		}
	}
	return strings.HasSuffix(path, "/..") || strings.HasSuffix(path, "/.")
}

// takenContainers refuses containers of the author's by the names of those that
// Penstock adds.
func takenContainers(spec *v1.RayClusterSpec, role *v1.RayRole, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	name, fix := "wait-gcs-ready", "is the name of the init container that Penstock adds, which waits for the head: remove this one, or rename it"
	if role.Name == v1.RoleHead {
		if !enablesAutoscaler(spec) {
			return nil
		}
		name, fix = "autoscaler", "is the name of the container that Penstock adds, which is described by the autoscaler: remove this one, or rename it"
	}
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", role.Template.Spec.InitContainers}, {"containers", role.Template.Spec.Containers}} {
		for i := range list.containers {
			if list.containers[i].Name == name {
				errs = append(errs, field.Forbidden(path.Child("template", "spec", list.name).Index(i).Child("name"), fix))
			}
		}
	}
	return errs
}
