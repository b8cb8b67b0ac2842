package defaulting_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
)

func rayOf(t testing.TB, text string) *v1.RayCluster {
	t.Helper()
	cluster := &v1.RayCluster{}
	if err := yaml.UnmarshalStrict([]byte("apiVersion: penstock.dev/v1\nkind: RayCluster\nmetadata: {name: a}\nspec:\n"+text), cluster); err != nil {
		t.Fatalf("failed to decode the test's spec: %v\n%s", err, text)
	}
	return cluster
}

func TestDefaultRayCluster(t *testing.T) {
	tests := map[string]struct{ spec, want string }{
		"a head and a group with nothing but images": {`
  roles:
  - {name: Head, template: {spec: {containers: [{name: ray, image: a, ports: [{containerPort: 6379}]}]}}}
  - {name: gpu, template: {spec: {containers: [{name: ray, image: a, resources: {limits: {nvidia.com/gpu: 1}}}]}}}
`, `
  runPolicy: {suspend: false}
  roles:
  - {name: Head, replicas: 1, template: {spec: {containers: [{name: ray, image: a, ports: [{containerPort: 6379, protocol: TCP}]}]}}}
  - name: gpu
    replicas: 0
    hosts: 1
    scaling: {minReplicas: 0}
    template: {spec: {containers: [{name: ray, image: a, resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}}]}}
`},
		"a group has its smallest number, and what is said stays": {`
  roles:
  - {name: a, scaling: {minReplicas: 2}}
  - {name: b, replicas: 1, hosts: 4, scaling: {minReplicas: 2, maxReplicas: 3}}
`, `
  runPolicy: {suspend: false}
  roles:
  - {name: a, replicas: 2, hosts: 1, scaling: {minReplicas: 2}}
  - {name: b, replicas: 1, hosts: 4, scaling: {minReplicas: 2, maxReplicas: 3}}
`},
		"blocks are spelt out where they are written": {`
  head: {ingress: {host: ray.example}}
  autoscaler: {idleTimeoutSeconds: 60}
  upgradeStrategy: {}
  gcsFaultTolerance: {redisAddress: "redis:6379"}
  auth: {mode: Token}
`, `
  runPolicy: {suspend: false}
  head: {ingress: {mode: Disabled, host: ray.example}}
  autoscaler: {mode: Disabled, idleTimeoutSeconds: 60}
  upgradeStrategy: {type: None}
  gcsFaultTolerance: {backend: redis, redisAddress: "redis:6379"}
  auth: {mode: Token, tokens: Shared}
`},
		"the first autoscaler restarts pods as they say": {`
  autoscaler: {mode: Enabled}
  roles: [{name: Head, template: {spec: {containers: [{name: ray, image: a}]}}}]
`, `
  runPolicy: {suspend: false}
  autoscaler: {mode: Enabled, version: v1}
  roles: [{name: Head, replicas: 1, template: {spec: {containers: [{name: ray, image: a}]}}}]
`},
		"the second autoscaler restarts none": {`
  autoscaler: {mode: Enabled, version: v2}
  roles:
  - {name: Head, template: {spec: {containers: [{name: ray, image: a}]}}}
  - {name: b, restartPolicy: Always, template: {spec: {containers: [{name: ray, image: a}]}}}
  - {name: c, template: {spec: {restartPolicy: OnFailure, containers: [{name: ray, image: a}]}}}
`, `
  runPolicy: {suspend: false}
  autoscaler: {mode: Enabled, version: v2}
  roles:
  - {name: Head, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: ray, image: a}]}}}
  - {name: b, replicas: 0, hosts: 1, scaling: {minReplicas: 0}, restartPolicy: Always, template: {spec: {containers: [{name: ray, image: a}]}}}
  - {name: c, replicas: 0, hosts: 1, scaling: {minReplicas: 0}, template: {spec: {restartPolicy: OnFailure, containers: [{name: ray, image: a}]}}}
`},
		"the older switch of the second autoscaler": {`
  autoscaler: {mode: Enabled}
  roles: [{name: Head, template: {spec: {containers: [{name: ray, image: a, env: [{name: RAY_enable_autoscaler_v2, value: "1"}]}]}}}]
`, `
  runPolicy: {suspend: false}
  autoscaler: {mode: Enabled, version: v2}
  roles: [{name: Head, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: ray, image: a, env: [{name: RAY_enable_autoscaler_v2, value: "1"}]}]}}}]
`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, want := rayOf(t, tc.spec), rayOf(t, tc.want)
			for range 2 {
				defaulting.DefaultRayCluster(got)
				if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Each default can be said in v1alpha1: reading a stored cluster there keeps
// nothing in the annotation.
func TestDefaultsOfRayClustersAreSaidInV1alpha1(t *testing.T) {
	cluster := rayOf(t, `
  head: {ingress: {}}
  autoscaler: {mode: Enabled, version: v2}
  upgradeStrategy: {}
  gcsFaultTolerance: {}
  auth: {mode: Token}
  roles:
  - {name: Head, template: {spec: {containers: [{name: ray, image: a}]}}}
  - {name: gpu, template: {spec: {containers: [{name: ray, image: a}]}}}
`)
	defaulting.DefaultRayCluster(cluster)
	raw, err := json.Marshal(cluster)
	if err != nil {
		t.Fatal(err)
	}
	alpha, err := conversion.Convert(raw, v1alpha1.GroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	var read v1alpha1.RayCluster
	if err := yaml.UnmarshalStrict(alpha, &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Annotations) > 0 {
		t.Errorf("v1alpha1 cannot say %v", read.Annotations)
	}
}

func TestInheritRayCluster(t *testing.T) {
	group := func(name v1.RoleName, replicas *int32) v1.RayRole {
		return v1.RayRole{Role: v1.Role{Name: name, Replicas: replicas}}
	}
	cluster := func(mode v1.Switch, roles ...v1.RayRole) *v1.RayCluster {
		return &v1.RayCluster{Spec: v1.RayClusterSpec{Autoscaler: &v1.RayAutoscaler{Mode: mode}, Roles: roles}}
	}
	three := int32(3)
	for name, tc := range map[string]struct {
		old, updated *v1.RayCluster
		want         []*int32
	}{
		"left out":             {cluster(v1.Enabled, group("a", &three)), cluster(v1.Enabled, group("b", nil), group("a", nil)), []*int32{nil, &three}},
		"said":                 {cluster(v1.Enabled, group("a", &three)), cluster(v1.Enabled, group("a", new(int32(1)))), []*int32{new(int32(1))}},
		"the head has its own": {cluster(v1.Enabled, group(v1.RoleHead, &three)), cluster(v1.Enabled, group(v1.RoleHead, nil)), []*int32{nil}},
		"nobody scales it":     {cluster(v1.Disabled, group("a", &three)), cluster(v1.Disabled, group("a", nil)), []*int32{nil}},
		"turned on only now":   {cluster(v1.Disabled, group("a", &three)), cluster(v1.Enabled, group("a", nil)), []*int32{nil}},
	} {
		defaulting.InheritRayCluster(tc.old, tc.updated)
		var got []*int32
		for i := range tc.updated.Spec.Roles {
			got = append(got, tc.updated.Spec.Roles[i].Replicas)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: replicas (-want +got):\n%s", name, diff)
		}
	}
}
