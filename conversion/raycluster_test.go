package conversion

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
)

const kubeRayCluster = `
apiVersion: penstock.dev/v1alpha1
kind: RayCluster
metadata: {name: a}
spec:
  rayVersion: "2.52.0"
  suspend: false
  enableInTreeAutoscaling: true
  autoscalerOptions: {version: v2, resources: {limits: {cpu: "0.5"}}, env: []}
  headServiceAnnotations: {a: b}
  gcsFaultToleranceOptions:
    redisAddress: redis:6379
    redisPassword: {valueFrom: {secretKeyRef: {name: redis, key: password}}}
  authOptions: {mode: token, enableK8sTokenAuth: false}
  upgradeStrategy: {type: Recreate}
  headGroupSpec:
    serviceType: NodePort
    enableIngress: true
    ingressOptions: {host: ray.example}
    headService: {metadata: {name: head}, spec: {ports: [{port: 1}]}}
    rayStartParams: {}
    template: {metadata: {labels: {}}, spec: {containers: [{name: ray-head}]}}
  workerGroupSpecs:
  - groupName: small-group
    replicas: 1
    minReplicas: 1
    maxReplicas: 10
    numOfHosts: 2
    scaleStrategy: {workersToDelete: [a-small-group-0]}
    rayStartParams: {num-cpus: "1"}
    template: {spec: {containers: [{name: ray-worker}]}}
  - groupName: big
    template: {}
`

const normalCluster = `
apiVersion: penstock.dev/v1
kind: RayCluster
metadata: {name: a}
spec:
  rayVersion: "2.52.0"
  runPolicy: {suspend: false}
  autoscaler: {mode: Enabled, version: v2, resources: {limits: {cpu: "0.5"}}, env: []}
  head:
    serviceAnnotations: {a: b}
    serviceType: NodePort
    ingress: {mode: Enabled, host: ray.example}
    service: {metadata: {name: head}, spec: {ports: [{port: 1}]}}
  gcsFaultTolerance:
    redisAddress: redis:6379
    redisPassword: {valueFrom: {secretKeyRef: {name: redis, key: password}}}
  auth: {mode: Token, tokens: Shared}
  upgradeStrategy: {type: Recreate}
  roles:
  - name: Head
    replicas: 1
    ray: {startParams: {}}
    template: {metadata: {labels: {}}, spec: {containers: [{name: ray-head}]}}
  - name: small-group
    replicas: 1
    hosts: 2
    scaling: {minReplicas: 1, maxReplicas: 10, workersToDelete: [a-small-group-0]}
    ray: {startParams: {num-cpus: "1"}}
    template: {spec: {containers: [{name: ray-worker}]}}
  - name: big
    template: {}
`

// Both ways without an annotation: nothing that people write of a cluster is
// lost in the other version.
func TestConvertRayCluster(t *testing.T) {
	tests := map[string]struct {
		object, want string
		to           schema.GroupVersion
	}{
		"a KubeRay cluster's groups become roles": {kubeRayCluster, normalCluster, v1.GroupVersion},
		"roles become groups":                     {normalCluster, kubeRayCluster, v1alpha1.GroupVersion},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := convertYAML(t, tc.object, tc.to)
			if diff := cmp.Diff(mustTree(t, fromYAML(t, tc.want)), any(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			object, err := splitObject(fromYAML(t, tc.object))
			if err != nil {
				t.Fatal(err)
			}
			if _, exact, err := object.convertSpec(rayClusterV1alpha1.half(tc.to == v1.GroupVersion)); err != nil || !exact {
				t.Errorf("converted on the careful path: exact %v, %v", exact, err)
			}
		})
	}
}

func TestRayClusterKeepsWhatV1alpha1CannotSay(t *testing.T) {
	hub := fromYAML(t, `
apiVersion: penstock.dev/v1
kind: RayCluster
metadata: {name: a}
spec:
  gang: {queueName: q}
  roles:
  - {name: gpu, topology: {required: rack}, template: {}}
  - {name: Head, restartPolicy: Always, template: {}}
`)
	alpha, err := Convert(hub, v1alpha1.GroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	got := mustTree(t, alpha).(map[string]any)
	want := `{"order":["gpu","Head"],"set":{"/gang":{"queueName":"q"},"/roles/Head/restartPolicy":"Always","/roles/gpu/topology":{"required":"rack"}},"unset":["/roles/Head/replicas"]}`
	if kept := at(got, "metadata", "annotations")[v1.RestoreAnnotation]; kept != want {
		t.Errorf("kept %v, want %s", kept, want)
	}
	back, err := Convert(alpha, v1.GroupVersion)
	if err != nil || !sameMeaning(t, hub, back) {
		t.Errorf("came back as %s, %v", back, err)
	}

	t.Run("a group that is removed takes its topology along", func(t *testing.T) {
		delete(at(got, "spec"), "workerGroupSpecs")
		edited := convertYAML(t, string(encode(t, got)), v1.GroupVersion)
		if diff := cmp.Diff(mustTree(t, []byte(`{"gang":{"queueName":"q"},"roles":[{"name":"Head","restartPolicy":"Always","template":{}}]}`)), any(at(edited, "spec"))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestRayClusterCarriesIllTypedValues(t *testing.T) {
	for name, spec := range map[string]string{
		"a start parameter": `{headGroupSpec: {rayStartParams: {num-cpus: 1}}}`,
		"replicas":          `{workerGroupSpecs: [{groupName: a}, {groupName: b, replicas: three}]}`,
		"a field unknown":   `{workerGroupSpecs: [{groupName: b, replica: 3, scaleStrategy: {workerToDelete: [x]}}], headgroupSpec: {}}`,
		"a list":            `{headGroupSpec: {}, workerGroupSpecs: {}}`,
		"a group":           `{headGroupSpec: {}, workerGroupSpecs: [x]}`,
		"a head":            `{headGroupSpec: [], workerGroupSpecs: [{groupName: a}]}`,
		"a group's name":    `{headGroupSpec: {}, workerGroupSpecs: [{groupName: 1}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			alpha := fromYAML(t, "{apiVersion: penstock.dev/v1alpha1, kind: RayCluster, metadata: {}, spec: "+spec+"}")
			hub, err := Convert(alpha, v1.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			back, err := Convert(hub, v1alpha1.GroupVersion)
			if err != nil || !sameMeaning(t, alpha, back) {
				t.Errorf("came back as %s by %s, %v", back, hub, err)
			}
		})
	}
}

func TestRayClusterFieldPaths(t *testing.T) {
	hub := fromYAML(t, `
apiVersion: penstock.dev/v1
kind: RayCluster
spec:
  roles: [{name: small}, {name: Head}, {name: big}, {name: big}, {name: Head}]
  autoscaler: {mode: Enabled}
`)
	alpha := v1.RayClusterGroupKind.WithVersion("v1alpha1")
	upstream := schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayCluster"}
	tests := map[string]struct {
		kind       schema.GroupVersionKind
		path, want string
	}{
		"a group's field":        {alpha, "spec.roles[0].replicas", "spec.workerGroupSpecs[0].replicas"},
		"after the head":         {upstream, "spec.roles[2].template.spec.containers[0].resources.limits[nvidia.com/gpu]", "spec.workerGroupSpecs[1].template.spec.containers[0].resources.limits[nvidia.com/gpu]"},
		"a twin's name":          {alpha, "spec.roles[3].name", "spec.workerGroupSpecs[2].groupName"},
		"a bound":                {alpha, "spec.roles[2].scaling.maxReplicas", "spec.workerGroupSpecs[1].maxReplicas"},
		"victims":                {alpha, "spec.roles[2].scaling.workersToDelete[0]", "spec.workerGroupSpecs[1].scaleStrategy.workersToDelete[0]"},
		"hosts":                  {alpha, "spec.roles[2].hosts", "spec.workerGroupSpecs[1].numOfHosts"},
		"a start parameter":      {alpha, "spec.roles[2].ray.startParams[num-gpus]", "spec.workerGroupSpecs[1].rayStartParams[num-gpus]"},
		"the head":               {alpha, "spec.roles[1]", "spec.headGroupSpec"},
		"the head's name":        {alpha, "spec.roles[1].name", "spec.headGroupSpec"},
		"the head's template":    {alpha, "spec.roles[1].template.spec", "spec.headGroupSpec.template.spec"},
		"the head's parameter":   {alpha, "spec.roles[1].ray.startParams[num-cpus]", "spec.headGroupSpec.rayStartParams[num-cpus]"},
		"the head's topology":    {alpha, "spec.roles[1].topology", "metadata.annotations[penstock.dev/restore]"},
		"the head's replicas":    {alpha, "spec.roles[1].replicas", "metadata.annotations[penstock.dev/restore]"},
		"the head's service":     {alpha, "spec.head.service.spec.ports[0].name", "spec.headGroupSpec.headService.spec.ports[0].name"},
		"the ingress":            {alpha, "spec.head.ingress.host", "spec.headGroupSpec.ingressOptions.host"},
		"all roles":              {alpha, "spec.roles", "spec.workerGroupSpecs"},
		"a role":                 {alpha, "spec.roles[2]", "spec.workerGroupSpecs[1]"},
		"the autoscaler's mode":  {alpha, "spec.autoscaler.mode", "spec.enableInTreeAutoscaling"},
		"the autoscaler":         {alpha, "spec.autoscaler.env[0].name", "spec.autoscalerOptions.env[0].name"},
		"who sees to it":         {alpha, "spec.runPolicy", "spec.managedBy"},
		"tokens":                 {alpha, "spec.auth.tokens", "spec.authOptions.enableK8sTokenAuth"},
		"fault tolerance":        {alpha, "spec.gcsFaultTolerance.redisPassword.value", "spec.gcsFaultToleranceOptions.redisPassword.value"},
		"the version":            {alpha, "spec.rayVersion", "spec.rayVersion"},
		"a field v1alpha1 lacks": {alpha, "spec.gang.queueName", "metadata.annotations[penstock.dev/restore]"},
		"a group called Head":    {alpha, "spec.roles[4].name", "spec.workerGroupSpecs[3].groupName"},
		"no field of v1":         {alpha, "spec.workerGroupSpecs", "spec.workerGroupSpecs"},
		"no such role":           {alpha, "spec.roles[7].replicas", "spec.workerGroupSpecs.7.replicas"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := FieldPaths(tc.kind, hub)(tc.path); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func encode(t *testing.T, object any) []byte {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
