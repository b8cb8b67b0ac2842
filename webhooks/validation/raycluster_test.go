package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// clusterOf reads a cluster as a user writes it and defaults it, as the flow
// does.
func clusterOf(t testing.TB, text string) *v1.RayCluster {
	t.Helper()
	cluster := &v1.RayCluster{}
	if err := yaml.UnmarshalStrict([]byte(text), cluster); err != nil {
		t.Fatalf("failed to decode the test's cluster: %v\n%s", err, text)
	}
	if cluster.Name == "" && cluster.GenerateName == "" {
		cluster.Name = "search"
	}
	defaulting.DefaultRayCluster(cluster)
	return cluster
}

const (
	ray     = `template: {spec: {containers: [{name: ray, image: a}]}}`
	rayHead = `{name: Head, ` + ray + `}`
	keyForm = `must be a key: write it as team or example.com/team, of letters, digits, -, _ and dots, with a letter or digit at both ends`
	name53  = `interactive-feature-exploration-for-ranking-models-a1`
)

func TestValidateRayCluster(t *testing.T) {
	tests := map[string]struct {
		cluster string
		want    []string
	}{
		"a head alone":     {cluster: `spec: {roles: [` + rayHead + `]}`},
		"a head second":    {cluster: `spec: {roles: [{name: "4xa100", replicas: 9, scaling: {maxReplicas: 3}, ` + ray + `}, ` + rayHead + `]}`},
		"the longest name": {cluster: `{metadata: {name: ` + name53 + `}, spec: {roles: [` + rayHead + `]}}`},
		"a name too long": {
			cluster: `{metadata: {name: ` + name53 + `b}, spec: {roles: [` + rayHead + `]}}`,
			want: []string{`metadata.name: Invalid value: "` + name53 + `b": is 1 character too long: the service ` + name53 +
				`b-serve-svc would have 64, and 63 is the most; shorten it to 53 or fewer`},
		},
		"a name that services cannot have": {
			cluster: `{metadata: {name: 4a.b}, spec: {roles: [` + rayHead + `]}}`,
			want: []string{`metadata.name: Invalid value: "4a.b": must be a DNS label, as pods and services are named after the cluster: ` +
				`use lower-case letters, digits and -, beginning with a letter and ending with a letter or digit`},
		},
		"no head": {
			cluster: `spec: {roles: [{name: gpu, ` + ray + `}]}`,
			want:    []string{`spec.roles: Required value: a cluster needs a head: add role Head`},
		},
		"a group called head": {
			cluster: `spec: {roles: [` + rayHead + `, {name: head, ` + ray + `}]}`,
			want: []string{`spec.roles[1].name: Invalid value: "head": is the name of the head, whose pods its own would be taken for: ` +
				`give the group another name`},
		},
		"twin groups": {
			cluster: `spec: {roles: [` + rayHead + `, {name: gpu, ` + ray + `}, {name: GPU, ` + ray + `}]}`,
			want: []string{`spec.roles[2].name: Duplicate value: "GPU": stands twice, as names that differ only in case are one: ` +
				`both make pods of the same names; join the two under gpu`},
		},
		"two groups of one name": {
			cluster: `spec: {roles: [` + rayHead + `, {name: gpu, ` + ray + `}, {name: gpu, ` + ray + `}]}`,
			want:    []string{`spec.roles[2].name: Duplicate value: "gpu": stands twice, and both make pods of the same names: join the two, or rename one`},
		},
		"a group by the name of the head": {
			cluster: `spec: {roles: [` + rayHead + `, {name: Head, scaling: {minReplicas: 1}, replicas: 2}]}`,
			want: []string{`spec.roles[1].name: Duplicate value: "Head": is the name of the head, whose pods its own would be taken for: ` +
				`give the group another name`},
		},
		"a group without a name": {
			cluster: `spec: {roles: [` + rayHead + `, {` + ray + `}]}`,
			want:    []string{`spec.roles[1].name: Required value: a group of workers needs a name: its pods are named and found by it`},
		},
		"a head as a group": {
			cluster: `spec: {roles: [{name: Head, replicas: 2, hosts: 2, suspend: true, scaling: {minReplicas: 1}, ` + ray + `}]}`,
			want: []string{
				`spec.roles[0].replicas: Invalid value: 2: must be 1: a cluster has one head; put further pods in a group of workers`,
				`spec.roles[0].scaling: Forbidden: is for groups of workers, and a cluster has one head: remove it`,
				`spec.roles[0].hosts: Forbidden: is for groups of workers, and the head is one pod: remove it`,
				`spec.roles[0].suspend: Forbidden: is for groups of workers: suspend the cluster by runPolicy.suspend`,
			},
		},
		"crossed bounds": {
			cluster: `spec: {roles: [` + rayHead + `, {name: gpu, scaling: {minReplicas: 3, maxReplicas: 2}, ` + ray + `}]}`,
			want:    []string{`spec.roles[1].scaling.maxReplicas: Invalid value: 2: must be at least minReplicas, which is 3: raise it or lower minReplicas`},
		},
		"a group suspended beside the autoscaler": {
			cluster: `spec: {autoscaler: {mode: Enabled}, roles: [` + rayHead + `, {name: gpu, suspend: true, ` + ray + `}]}`,
			want: []string{`spec.roles[1].suspend: Forbidden: cannot be while the autoscaler runs, which would fill the group again: ` +
				`set maxReplicas to 0, or disable the autoscaler`},
		},
		"what only the second autoscaler knows": {
			cluster: `spec: {autoscaler: {mode: Enabled}, roles: [` + rayHead + `, {name: gpu, scaling: {idleTimeoutSeconds: 5, priority: 1}, ` + ray + `}]}`,
			want: []string{
				`spec.roles[1].scaling.idleTimeoutSeconds: Forbidden: is for the autoscaler's version v2: enable that, or say it for all groups, as idleTimeoutSeconds of the autoscaler`,
				`spec.roles[1].scaling.priority: Forbidden: is for the autoscaler's version v2: enable that, or remove the priority`,
			},
		},
		"a priority before its time": {
			cluster: `spec: {rayVersion: 2.55.1, autoscaler: {mode: Enabled, version: v2}, roles: [` + rayHead + `, {name: gpu, scaling: {priority: 1}, ` + ray + `}]}`,
			want:    []string{`spec.roles[1].scaling.priority: Forbidden: needs Ray 2.56, and rayVersion is 2.55.1: raise it, or remove the priority`},
		},
		"two sources of truth": {
			cluster: `spec: {roles: [{name: Head, ray: {resources: {GPU: "1"}, startParams: {num-gpus: "1", labels: a=b}}, ` + ray + `}]}`,
			want: []string{
				`spec.roles[0].ray.startParams[num-gpus]: Forbidden: cannot stand beside resources, which say the same: keep one of the two`,
				`spec.roles[0].ray.startParams[labels]: Forbidden: is written from the labels of the group: write them there, as a map`,
			},
		},
		"labels that no pod can have": {
			cluster: `spec: {roles: [{name: Head, ray: {labels: {"a b": c, d: "e f"}}, ` + ray + `}]}`,
			want: []string{
				`spec.roles[0].ray.labels[a b]: Invalid value: "a b": must be the key of a label: use letters, digits, -, _ and ., with a DNS name and / before them if need be`,
				`spec.roles[0].ray.labels[d]: Invalid value: "e f": must be the value of a label: use at most 63 letters, digits, -, _ and ., beginning and ending with a letter or digit`,
			},
		},
		"restart policies": {
			cluster: `spec: {roles: [{name: Head, restartPolicy: ExitCode, ` + ray + `},
  {name: gpu, restartPolicy: Never, template: {spec: {restartPolicy: Always, containers: [{name: ray, image: a}]}}}]}`,
			want: []string{
				`spec.roles[0].restartPolicy: Unsupported value: "ExitCode": supported values: "Always", "OnFailure", "Never"`,
				`spec.roles[1].template.spec.restartPolicy: Invalid value: "Always": contradicts the role's restartPolicy, which is Never: keep one of the two`,
			},
		},
		"pods of nothing": {
			cluster: `spec: {roles: [{name: Head}, {name: gpu, template: {metadata: {labels: {a: b}}}}]}`,
			want: []string{
				`spec.roles[0].template: Required value: the head says nothing of its pods: write what they are`,
				`spec.roles[1].template.spec.containers: Required value: a pod needs a container: add one that runs Ray`,
			},
		},
		"a gang too large": {
			cluster: `spec: {gang: {minAvailable: 6}, roles: [` + rayHead + `, {name: gpu, replicas: 2, hosts: 2, ` + ray + `}, {name: idle, replicas: 9, suspend: true, ` + ray + `}]}`,
			want:    []string{`spec.gang.minAvailable: Invalid value: 6: must be at most 5, the number of pods of all roles: the gang would wait for ever; lower it or leave it out`},
		},
		"the autoscaler's own variable, and one that contradicts": {
			cluster: `spec: {autoscaler: {mode: Enabled, version: v1, env: [{name: KUBERAY_GEN_AUTOSCALER_START_CMD, value: a}]},
  roles: [{name: Head, template: {spec: {containers: [{name: ray, image: a, env: [{name: RAY_enable_autoscaler_v2, value: "true"}]}]}}}]}`,
			want: []string{
				`spec.autoscaler.env[0].name: Forbidden: is set by Penstock to the generated command: remove it, and write command and args to run another`,
				`spec.roles[0].template.spec.containers[0].env[0]: Forbidden: contradicts the autoscaler's version, which is v1: remove the variable, and say the version that is meant`,
			},
		},
		"the second autoscaler turned on behind the first's back": {
			cluster: `spec: {roles: [{name: Head, template: {spec: {containers: [{name: ray, image: a, env: [{name: RAY_enable_autoscaler_v2, value: "1"}]}]}}}]}`,
			want:    []string{`spec.roles[0].template.spec.containers[0].env[0]: Forbidden: turns on an autoscaler that is not enabled: enable it, or remove the variable`},
		},
		"rolling updates": {
			cluster: `spec: {upgradeStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: "20%"}}, roles: [` + rayHead + `]}`,
		},
		"a rolling update of none": {
			cluster: `spec: {upgradeStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0}}, roles: [` + rayHead + `]}`,
			want: []string{`spec.upgradeStrategy.rollingUpdate.maxUnavailable: Invalid value: "0": must be a number from 1, or a percentage up to 100%: ` +
				`say how many replicas of a group may be missing at once`},
		},
		"a rolling update that is none": {
			cluster: `spec: {upgradeStrategy: {rollingUpdate: {maxUnavailable: 1}}, roles: [` + rayHead + `]}`,
			want:    []string{`spec.upgradeStrategy.rollingUpdate: Forbidden: is for type RollingUpdate, and type is None: remove it or change type`},
		},
		"fault tolerance": {
			cluster: `spec: {gcsFaultTolerance: {redisAddress: "redis:6379", redisPassword: {valueFrom: {secretKeyRef: {name: a, key: b}}}}, roles: [` + rayHead + `]}`,
		},
		"fault tolerance said twice, and a password for all to read": {
			cluster: `{metadata: {annotations: {ray.io/ft-enabled: "true"}}, spec: {gcsFaultTolerance: {redisPassword: {value: secret}},
  roles: [{name: Head, ray: {startParams: {redis-password: a}}, template: {spec: {containers: [{name: ray, image: a, env: [{name: REDIS_PASSWORD, value: a}]}]}}}]}}`,
			want: []string{
				`spec.gcsFaultTolerance.redisAddress: Required value: the state is kept in Redis: say where it is, such as redis:6379`,
				`spec.gcsFaultTolerance.redisPassword.value: Forbidden: is a password in plain text, for everybody to read who may read the cluster: ` +
					`put it into a Secret, and name that by valueFrom.secretKeyRef`,
				`metadata.annotations[ray.io/ft-enabled]: Invalid value: "true": is the older form of gcsFaultTolerance (gcsFaultToleranceOptions in v1alpha1) and cannot stand beside it: remove it`,
				`spec.roles[0].ray.startParams[redis-password]: Forbidden: is said by gcsFaultTolerance (gcsFaultToleranceOptions in v1alpha1): remove it, and write it there`,
				`spec.roles[0].template.spec.containers[0].env[0]: Forbidden: REDIS_PASSWORD is set by Penstock from gcsFaultTolerance (gcsFaultToleranceOptions in v1alpha1): remove it, and write it there`,
			},
		},
		"fault tolerance behind the back": {
			cluster: `spec: {roles: [{name: Head, template: {spec: {containers: [{name: ray, image: a, env: [{name: RAY_REDIS_ADDRESS, value: a}]}]}}}]}`,
			want: []string{`spec.roles[0].template.spec.containers[0].env[0]: Forbidden: turns on fault tolerance behind the operator's back, ` +
				`and nothing is cleaned up: write gcsFaultTolerance (gcsFaultToleranceOptions in v1alpha1) instead`},
		},
		"tokens without a version": {
			cluster: `spec: {auth: {mode: Token}, roles: [` + rayHead + `]}`,
			want:    []string{`spec.rayVersion: Required value: tokens need Ray 2.52: say which version is in the image`},
		},
		"tokens of Kubernetes": {
			cluster: `spec: {rayVersion: 2.52.0, auth: {mode: Token, tokens: Kubernetes, secretName: a}, roles: [` + rayHead + `]}`,
			want: []string{
				`spec.auth.secretName: Forbidden: is for a shared token, and tokens are Kubernetes': remove it, or set tokens to Shared`,
				`spec.rayVersion: Invalid value: "2.52.0": is too old, as tokens of Kubernetes need Ray 2.55: use a newer image, or set auth.mode to Disabled (authOptions.mode: disabled in v1alpha1)`,
			},
		},
		"a version that is none": {
			cluster: `spec: {rayVersion: nightly, auth: {mode: Token}, roles: [` + rayHead + `]}`,
			want:    []string{`spec.rayVersion: Invalid value: "nightly": must be a version of Ray such as 2.52.0, as tokens need Ray 2.52: write the one in the image`},
		},
		"a manager's name": {
			cluster: `spec: {runPolicy: {managedBy: kuberay}, roles: [` + rayHead + `]}`,
			want: []string{`spec.runPolicy.managedBy: Invalid value: "kuberay": must be a domain-prefixed path such as penstock.dev/manager: ` +
				`name the controller so, or remove the field`},
		},
		"the name of another service of the cluster": {
			cluster: `{metadata: {name: a}, spec: {head: {service: {metadata: {name: a-serve-svc}}}, roles: [` + rayHead + `]}}`,
			want:    []string{`spec.head.service.metadata.name: Invalid value: "a-serve-svc": is the name of another service of this cluster: use another, or leave it out`},
		},
		"a service that the API server refuses": {
			cluster: `spec: {head: {serviceAnnotations: {"a b": c}, service: {metadata: {labels: {a: "b c"}, annotations: {"d e": f}}, spec: {type: nodeport, clusterIP: a, sessionAffinity: Client, ports: [
  {name: a, port: 1, nodePort: 31000}, {name: a, port: 0, targetPort: 70000}, {port: 2, targetPort: a_b, protocol: HTTP}, {name: A_b, port: 3}]}}}, roles: [` + rayHead + `]}`,
			want: []string{
				`spec.head.serviceAnnotations[a b]: Invalid value: "a b": ` + keyForm,
				`spec.head.service.metadata.labels[a]: Invalid value: "b c": must be the value of a label: use at most 63 letters, digits, -, _ and dots, with a letter or digit at both ends`,
				`spec.head.service.metadata.annotations[d e]: Invalid value: "d e": ` + keyForm,
				`spec.head.service.spec.type: Unsupported value: "nodeport": must be ClusterIP, NodePort or LoadBalancer: did you mean NodePort?`,
				`spec.head.service.spec.sessionAffinity: Unsupported value: "Client": must be None or ClientIP: did you mean ClientIP?`,
				`spec.head.service.spec.clusterIP: Invalid value: "a": must be an IP address: write it as 10.0.0.10 or fd00::10`,
				`spec.head.service.spec.ports[0].nodePort: Forbidden: is for types NodePort and LoadBalancer: remove it, or change type`,
				`spec.head.service.spec.ports[1].name: Duplicate value: "a": is the name of two ports of the service: rename one of them`,
				`spec.head.service.spec.ports[1].port: Invalid value: 0: must be from 1 to 65535: give the port that clients connect to`,
				`spec.head.service.spec.ports[1].targetPort: Invalid value: 70000: must be from 1 to 65535: give the port that the head listens at, or leave it out`,
				`spec.head.service.spec.ports[2].name: Required value: a service of several ports tells them apart by their names: write one, such as dashboard`,
				`spec.head.service.spec.ports[2].protocol: Unsupported value: "HTTP": must be TCP, UDP or SCTP: write one of these, or leave it out`,
				`spec.head.service.spec.ports[2].targetPort: Invalid value: "a_b": must be the number or the name of a port of the head: correct it, or leave it out`,
				`spec.head.service.spec.ports[3].name: Invalid value: "A_b": must be a DNS label: use at most 63 lower-case letters, digits and -, with a letter or digit at both ends`,
			},
		},
		"a service without an address that must have one, and a port given twice": {
			cluster: `spec: {head: {serviceType: LoadBalancer, service: {spec: {clusterIP: None, externalTrafficPolicy: Local, ports: [{name: a, port: 1, nodePort: 31000}, {name: b, port: 2, nodePort: 31000}]}}}, roles: [` + rayHead + `]}`,
			want: []string{
				`spec.head.service.spec.clusterIP: Invalid value: "None": must not be None for type LoadBalancer, which needs an address: leave it out`,
				`spec.head.service.spec.ports[1].nodePort: Duplicate value: 31000: is given to two ports of the service: change one of them, or leave it out`,
			},
		},
		"a service that leads away from the head": {
			cluster: `spec: {head: {service: {spec: {type: ExternalName, externalName: a.example, externalTrafficPolicy: Local}}}, roles: [` + rayHead + `]}`,
			want: []string{
				`spec.head.service.spec.type: Invalid value: "ExternalName": leads away from the head, and workers find it by this service: write ClusterIP, NodePort or LoadBalancer`,
				`spec.head.service.spec.externalTrafficPolicy: Invalid value: "Local": is for types NodePort and LoadBalancer: remove it, or change type`,
			},
		},
		"an ingress that the API server takes": {
			cluster: `spec: {head: {ingress: {mode: Enabled, host: "*.ray.example", path: "", pathType: ImplementationSpecific, tls: [{hosts: [a.example], secretName: a}]}}, roles: [` + rayHead + `]}`,
		},
		"an ingress that is not made": {
			cluster: `spec: {head: {ingress: {host: "http://a"}}, roles: [` + rayHead + `]}`,
		},
		"an ingress that the API server refuses": {
			cluster: `spec: {head: {ingress: {mode: Enabled, host: "http://a:80", path: ray, tls: [{hosts: [10.0.0.1], secretName: A_b}]}}, roles: [` + rayHead + `]}`,
			want: []string{
				`spec.head.ingress.host: Invalid value: "http://a:80": must be the name of a host, without scheme, port and path: write it as ray.example.com or *.example.com, in lower case`,
				`spec.head.ingress.path: Invalid value: "ray": must begin with /: write it as /ray, or leave it out`,
				`spec.head.ingress.tls[0].hosts[0]: Invalid value: "10.0.0.1": must be a name, and this is an address: write it as ray.example.com, or leave it out`,
				`spec.head.ingress.tls[0].secretName: Invalid value: "A_b": must be the name of an object: use at most 253 lower-case letters, digits, - and dots, with a letter or digit at both ends`,
			},
		},
		"an ingress with a detour": {
			cluster: `spec: {head: {ingress: {mode: Enabled, path: /a/../b, pathType: Exact}}, roles: [` + rayHead + `]}`,
			want:    []string{`spec.head.ingress.path: Invalid value: "/a/../b": must be a plain path, without //, /./, /../ and %2f: write it as /ray`},
		},
		"containers by the names of those that are added": {
			cluster: `spec: {autoscaler: {mode: Enabled}, roles: [
  {name: Head, template: {spec: {containers: [{name: ray, image: a}, {name: autoscaler, image: a}], initContainers: [{name: wait-gcs-ready, image: a}]}}},
  {name: gpu, template: {spec: {containers: [{name: autoscaler, image: a}], initContainers: [{name: a, image: a}, {name: wait-gcs-ready, image: a}]}}}]}`,
			want: []string{
				`spec.roles[0].template.spec.containers[1].name: Forbidden: is the name of the container that Penstock adds, which is described by the autoscaler: remove this one, or rename it`,
				`spec.roles[1].template.spec.initContainers[1].name: Forbidden: is the name of the init container that Penstock adds, which waits for the head: remove this one, or rename it`,
			},
		},
		"a container named autoscaler without the autoscaler": {
			cluster: `spec: {roles: [{name: Head, template: {spec: {containers: [{name: ray, image: a}, {name: autoscaler, image: a}]}}}]}`,
		},
		"a service's name": {
			cluster: `spec: {head: {service: {metadata: {name: A_b}}}, roles: [` + rayHead + `]}`,
			want:    []string{`spec.head.service.metadata.name: Invalid value: "A_b": must be a DNS label: use at most 63 lower-case letters, digits and -, beginning with a letter`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, words(validation.ValidateRayCluster(nil, clusterOf(t, tc.cluster)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateRayClusterUpdate(t *testing.T) {
	old := clusterOf(t, `spec: {runPolicy: {managedBy: penstock.dev/manager}, gang: {queueName: a}, roles: [`+rayHead+`]}`)
	same := clusterOf(t, `spec: {gang: {queueName: a}, roles: [`+rayHead+`, {name: gpu, `+ray+`}]}`)
	if errs := validation.ValidateRayCluster(old, same); len(errs) > 0 {
		t.Errorf("refused a new group, or the manager's own name left out: %v", errs)
	}
	other := clusterOf(t, `spec: {runPolicy: {managedBy: kueue.x-k8s.io/multikueue}, gang: {queueName: b}, roles: [`+rayHead+`]}`)
	want := []string{
		`spec.runPolicy.managedBy: Invalid value: "kueue.x-k8s.io/multikueue": managedBy cannot change: make a new cluster instead`,
		`spec.gang.queueName: Invalid value: "b": queueName cannot change: make a new cluster instead`,
	}
	if diff := cmp.Diff(want, words(validation.ValidateRayCluster(old, other))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAdviseRayCluster(t *testing.T) {
	cluster := clusterOf(t, `spec: {runPolicy: {managedBy: ray.io/kuberay-operator}, roles: [`+rayHead+`,
  {name: gpu, replicas: 9, scaling: {maxReplicas: 3}, template: {metadata: {labels: {ray.io/group: a}}, spec: {containers: [{name: ray, image: a}]}}}]}`)
	want := []string{
		`spec.runPolicy.managedBy: Forbidden: names KubeRay's operator, which runs no RayCluster of penstock.dev, and Penstock leaves the cluster to it: ` +
			`nobody will run it; make it without managedBy`,
		`spec.roles[1].replicas: Forbidden: is 9, out of the group's bounds: it has 3`,
		`spec.roles[1].template.metadata.labels[ray.io/group]: Forbidden: is a label that Penstock sets on every pod, and this value is dropped: remove it`,
	}
	if diff := cmp.Diff(want, words(validation.AdviseRayCluster(nil, cluster))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := validation.AdviseRayCluster(cluster, cluster); len(again) > 0 {
		t.Errorf("said again what the author knows: %v", again)
	}
}

// TestAdviseIdleOptions: options that say nothing, or say it to nobody.
func TestAdviseIdleOptions(t *testing.T) {
	cluster := clusterOf(t, `spec: {auth: {secretName: a}, gcsFaultTolerance: {redisAddress: a, redisPassword: {}, redisUsername: {value: b}},
  head: {service: {spec: {type: NodePort, ports: [{name: a, port: 1, nodePort: 80}, {name: b, port: 2, nodePort: 30000}]}}}, roles: [`+rayHead+`]}`)
	if errs := validation.ValidateRayCluster(nil, cluster); len(errs) > 0 {
		t.Errorf("refused: %v", errs)
	}
	want := []string{
		`spec.auth.secretName: Forbidden: has no effect, as nobody is asked for a token: set mode to Token, or remove it`,
		`spec.gcsFaultTolerance.redisPassword: Forbidden: is empty, and Redis is asked without: name a Secret by valueFrom.secretKeyRef, or remove it`,
		`spec.head.service.spec.ports[0].nodePort: Forbidden: is out of 30000 to 32767, which is what most API servers give out: where this one does, neither the service nor the pods are made`,
	}
	if diff := cmp.Diff(want, words(validation.AdviseRayCluster(nil, cluster))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAdvisePortChange: workers that run know the head by its old port.
func TestAdvisePortChange(t *testing.T) {
	cluster := func(port, upgrade string) *v1.RayCluster {
		return clusterOf(t, fmt.Sprintf(`spec: {upgradeStrategy: {type: %s}, roles: [{name: Head, ray: {startParams: {port: %q}}, %s}]}`, upgrade, port, ray))
	}
	want := []string{`spec.roles[0].ray.startParams[port]: Forbidden: takes effect with the next pods: workers that run know the head by port 6379, ` +
		`and lose it when it is made anew; let upgradeStrategy replace them, or delete the pods`}
	plain := clusterOf(t, `spec: {roles: [`+rayHead+`]}`)
	if diff := cmp.Diff(want, words(validation.AdviseRayCluster(plain, cluster("6380", "None")))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, quiet := range []*v1.RayCluster{cluster("6379", "None"), cluster("6380", "RollingUpdate")} {
		if advice := validation.AdviseRayCluster(plain, quiet); len(advice) > 0 {
			t.Errorf("advised %v", advice)
		}
	}
}

// TestAdviseRayChange: what a change does not do to a cluster that runs.
func TestAdviseRayChange(t *testing.T) {
	const (
		state = "spec.gcsFaultTolerance: Forbidden: leads the cluster away from the state that it has in Redis: that stays there, and nothing removes it " +
			"when the cluster is deleted; remove it by hand, or make a new cluster instead"
		autoscaler = "spec.autoscaler.mode: Forbidden: takes effect with the next head: the one that runs has no autoscaler; delete its pod, or let upgradeStrategy replace it"
	)
	for name, tc := range map[string]struct {
		old, spec string
		want      []string
	}{
		"nothing of the kind": {"gcsFaultTolerance: {redisAddress: a}", "gcsFaultTolerance: {redisAddress: a, redisUsername: {value: b}}", nil},
		"turned on":           {"", "gcsFaultTolerance: {redisAddress: a}", nil},
		"turned off":          {"gcsFaultTolerance: {redisAddress: a}", "", []string{state}},
		"another Redis":       {"gcsFaultTolerance: {redisAddress: a}", "gcsFaultTolerance: {redisAddress: b}", []string{state}},
		"another namespace":   {"gcsFaultTolerance: {redisAddress: a}", "gcsFaultTolerance: {redisAddress: a, externalStorageNamespace: b}", []string{state}},
		"an autoscaler":       {"", "autoscaler: {mode: Enabled}", []string{autoscaler}},
		"it was on":           {"autoscaler: {mode: Enabled}", "autoscaler: {mode: Enabled, version: v2}", nil},
		"the head is replaced": {
			"", "autoscaler: {mode: Enabled}, upgradeStrategy: {type: Recreate}", nil,
		},
	} {
		cluster := func(spec string) *v1.RayCluster {
			return clusterOf(t, "spec: {"+strings.TrimPrefix(spec+", ", ", ")+"roles: ["+rayHead+"]}")
		}
		if diff := cmp.Diff(tc.want, words(validation.AdviseRayCluster(cluster(tc.old), cluster(tc.spec)))); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}

// TestAdvisePorts: what is only information to Kubernetes is a fault all the same
// where both containers mean it.
func TestAdvisePorts(t *testing.T) {
	role := func(name string) string {
		return `{name: ` + name + `, template: {spec: {containers: [
  {name: ray, image: a, ports: [{containerPort: 80}, {containerPort: 81, protocol: UDP}]},
  {name: side, image: a, ports: [{containerPort: 81}, {containerPort: 80, name: a}]}]}}}`
	}
	const want = `.template.spec.containers[1].ports[1].containerPort: Forbidden: is 80, a port of container ray too: ` +
		`containers of a pod share its network, and only one of them can listen there`
	cluster := clusterOf(t, `spec: {roles: [`+rayHead+`, `+role("gpu")+`]}`)
	if diff := cmp.Diff([]string{"spec.roles[1]" + want}, words(validation.AdviseRayCluster(nil, cluster))); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
	job := jobOf(t, `spec: {framework: JAX, roles: [`+role("Worker")+`]}`)
	if diff := cmp.Diff([]string{"spec.roles[0]" + want}, words(validation.AdviseTrainingJob(nil, job))); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
}
