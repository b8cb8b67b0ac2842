package integration

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// brokenHeads are services and ingresses of a Ray cluster's head with one fault
// that the API server refuses the child for.
var brokenHeads = []struct {
	name string
	// child is the spec of what Penstock would make, and of which kind.
	kind, child string
	// head is how the author says it, and field where Penstock finds the fault,
	// below spec.head.
	head, field string
}{
	{name: "a port's name twice", kind: "Service", child: `ports: [{name: a, port: 1}, {name: a, port: 2}]`,
		head: `service: {spec: {ports: [{name: a, port: 1}, {name: a, port: 2}]}}`, field: "service.spec.ports[1].name"},
	{name: "a port without a name", kind: "Service", child: `ports: [{port: 1}, {name: a, port: 2}]`,
		head: `service: {spec: {ports: [{port: 1}]}}`, field: "service.spec.ports[0].name"},
	{name: "a port's number", kind: "Service", child: `ports: [{name: a, port: 70000}]`,
		head: `service: {spec: {ports: [{name: a, port: 70000}]}}`, field: "service.spec.ports[0].port"},
	{name: "a target port's name", kind: "Service", child: `ports: [{name: a, port: 1, targetPort: a_b}]`,
		head: `service: {spec: {ports: [{name: a, port: 1, targetPort: a_b}]}}`, field: "service.spec.ports[0].targetPort"},
	{name: "a protocol", kind: "Service", child: `ports: [{name: a, port: 1, protocol: HTTP}]`,
		head: `service: {spec: {ports: [{name: a, port: 1, protocol: HTTP}]}}`, field: "service.spec.ports[0].protocol"},
	{name: "a node port of no type that has one", kind: "Service", child: `ports: [{name: a, port: 1, nodePort: 31000}]`,
		head: `service: {spec: {ports: [{name: a, port: 1, nodePort: 31000}]}}`, field: "service.spec.ports[0].nodePort"},
	{name: "a node port twice", kind: "Service", child: `{type: NodePort, ports: [{name: a, port: 1, nodePort: 31000}, {name: b, port: 2, nodePort: 31000}]}`,
		head: `service: {spec: {type: NodePort, ports: [{name: a, port: 1, nodePort: 31000}, {name: b, port: 2, nodePort: 31000}]}}`, field: "service.spec.ports[1].nodePort"},
	{name: "a type", kind: "Service", child: `{type: nodeport, ports: [{name: a, port: 1}]}`,
		head: `service: {spec: {type: nodeport}}`, field: "service.spec.type"},
	{name: "an address that the type needs", kind: "Service", child: `{type: NodePort, clusterIP: None, ports: [{name: a, port: 1}]}`,
		head: `{serviceType: NodePort, service: {spec: {clusterIP: None}}}`, field: "service.spec.clusterIP"},
	{name: "a traffic policy of no type that has one", kind: "Service", child: `{externalTrafficPolicy: Local, ports: [{name: a, port: 1}]}`,
		head: `service: {spec: {externalTrafficPolicy: Local}}`, field: "service.spec.externalTrafficPolicy"},
	{name: "an affinity", kind: "Service", child: `{sessionAffinity: Client, ports: [{name: a, port: 1}]}`,
		head: `service: {spec: {sessionAffinity: Client}}`, field: "service.spec.sessionAffinity"},

	{name: "a host with a scheme", kind: "Ingress", child: `rules: [{host: "http://a", ` + dashboard + `}]`,
		head: `ingress: {mode: Enabled, host: "http://a"}`, field: "ingress.host"},
	{name: "a host that is an address", kind: "Ingress", child: `rules: [{host: 10.0.0.1, ` + dashboard + `}]`,
		head: `ingress: {mode: Enabled, host: 10.0.0.1}`, field: "ingress.host"},
	{name: "a path without a slash", kind: "Ingress", child: `rules: [{` + strings.Replace(dashboard, "path: /", "path: a", 1) + `}]`,
		head: `ingress: {mode: Enabled, path: a}`, field: "ingress.path"},
	{name: "a path with a detour", kind: "Ingress", child: `rules: [{` + strings.Replace(dashboard, "path: /", "path: /a/..", 1) + `}]`,
		head: `ingress: {mode: Enabled, path: /a/..}`, field: "ingress.path"},
	{name: "a certificate's host", kind: "Ingress", child: `{rules: [{` + dashboard + `}], tls: [{hosts: [A_b]}]}`,
		head: `ingress: {mode: Enabled, tls: [{hosts: [A_b]}]}`, field: "ingress.tls[0].hosts[0]"},
	{name: "a certificate's secret", kind: "Ingress", child: `{rules: [{` + dashboard + `}], tls: [{secretName: A_b}]}`,
		head: `ingress: {mode: Enabled, tls: [{secretName: A_b}]}`, field: "ingress.tls[0].secretName"},
}

const dashboard = `http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 8265}}}}]}`

var _ = Describe("services and ingresses of Ray clusters", Ordered, ContinueOnFailure, func() {
	var namespace string
	BeforeAll(func(ctx context.Context) { namespace = newNamespace(ctx, nil) })

	try := func(ctx context.Context, apiVersion, kind, spec string) error {
		GinkgoHelper()
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte("spec: "+spec), &object.Object)).To(Succeed())
		object.SetAPIVersion(apiVersion)
		object.SetKind(kind)
		object.SetNamespace(namespace)
		object.SetName("broken")
		return k8s.Create(ctx, object, client.DryRunAll)
	}
	for _, broken := range brokenHeads {
		It("are refused for "+broken.name, func(ctx context.Context) {
			group := map[string]string{"Service": "v1", "Ingress": "networking.k8s.io/v1"}
			child := broken.child
			if !strings.HasPrefix(child, "{") {
				child = "{" + child + "}"
			}
			err := try(ctx, group[broken.kind], broken.kind, child)
			Expect(err).To(Satisfy(apierrors.IsInvalid), "the API server says %v", err)

			head := broken.head
			if !strings.HasPrefix(head, "{") {
				head = "{" + head + "}"
			}
			err = try(ctx, "penstock.dev/v1", "RayCluster", "{head: "+head+", roles: [{name: Head, template: {spec: {containers: [{name: ray, image: a}]}}}]}")
			Expect(err).To(Satisfy(apierrors.IsInvalid), "Penstock says %v", err)
			Expect(causes(err)).To(Equal([]string{"spec.head." + broken.field}), "once, and nothing else: %v", err)
		})
	}
})
