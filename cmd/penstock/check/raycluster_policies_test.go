package check_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/cmd/penstock/check"
)

// rayVerdicts are what the library says to Ray clusters, at the fields of
// KubeRay's shape: a head, members of the spec besides, and a group of workers.
var rayVerdicts = map[string]struct {
	// head and group are the fields of the two besides their templates, and the
	// fields of their pods and containers.
	head, headContainer, group, pod, container string
	spec                                       string
	policy                                     string
	refused                                    bool
	field                                      string
}{
	"a misspelt resource": {
		container: `resources: {limits: {nvidia/gpu: 1}}`,
		policy:    "gpu-resource-names", refused: true,
		field: "spec.workerGroupSpecs[0].template.spec.containers[0].resources.limits[nvidia/gpu]",
	},
	"a part of a GPU": {
		container: `resources: {limits: {nvidia.com/gpu: "0.5"}}`,
		policy:    "gpu-requests", refused: true,
		field: "spec.workerGroupSpecs[0].template.spec.containers[0].resources.limits[nvidia.com/gpu]",
	},
	"hosts that are too many GPUs": {
		group: `replicas: 20, minReplicas: 0, maxReplicas: 20, numOfHosts: 4`, container: `resources: {limits: {nvidia.com/gpu: 8}}`,
		policy: "gpu-ceiling", refused: true, field: "spec.workerGroupSpecs[0].replicas",
	},
	"a smallest number that is too many GPUs": {
		group: `replicas: 0, minReplicas: 100, maxReplicas: 100`, container: `resources: {limits: {nvidia.com/gpu: 8}}`,
		policy: "gpu-ceiling", refused: true, field: "spec.workerGroupSpecs[0].minReplicas",
	},
	"a zero too many": {
		group:  `replicas: 1000, minReplicas: 0, maxReplicas: 1000`,
		policy: "worker-bounds", refused: true, field: "spec.workerGroupSpecs[0].replicas",
	},
	"a taint that is not tolerated": {
		container: `resources: {limits: {nvidia.com/gpu: 1}}`,
		policy:    "gpu-tolerations", field: "spec.workerGroupSpecs[0].template.spec.tolerations",
	},
	"GPUs beyond the limit": {
		group: `rayStartParams: {num-gpus: "2"}`, container: `resources: {limits: {nvidia.com/gpu: 1}}`,
		policy: "ray-gpu-params", refused: true, field: "spec.workerGroupSpecs[0].rayStartParams[num-gpus]",
	},
	"GPUs of the head beyond the limit": {
		head:   `rayStartParams: {num-gpus: "1"}`,
		policy: "ray-gpu-params", refused: true, field: "spec.headGroupSpec.rayStartParams[num-gpus]",
	},
	"resources beyond the limit": {
		group: `resources: {GPU: "2"}`, container: `resources: {limits: {nvidia.com/gpu: 1}}`,
		policy: "ray-gpu-params", refused: true, field: "spec.workerGroupSpecs[0].resources[GPU]",
	},
	"GPUs on the head": {
		headContainer: `resources: {limits: {nvidia.com/gpu: 1}}`, container: `resources: {limits: {nvidia.com/gpu: 1}}`,
		policy: "ray-head-gpus", field: "spec.headGroupSpec.template.spec.containers[0].resources.limits[nvidia.com/gpu]",
	},
	"a slice in parts": {
		group: `numOfHosts: 3`, pod: `nodeSelector: {cloud.google.com/gke-tpu-topology: 2x2x2}`, container: `resources: {limits: {google.com/tpu: 4}}`,
		policy: "ray-host-counts", field: "spec.workerGroupSpecs[0].numOfHosts",
	},
	"no bound for the autoscaler": {
		spec: `enableInTreeAutoscaling: true`, group: `minReplicas: 0`, container: `resources: {limits: {nvidia.com/gpu: 1}}`,
		policy: "ray-group-bounds", refused: true, field: "spec.workerGroupSpecs[0].maxReplicas",
	},
	"a bound beyond the ceiling": {
		spec: `enableInTreeAutoscaling: true`, group: `minReplicas: 0, maxReplicas: 100`, container: `resources: {limits: {nvidia.com/gpu: 8}}`,
		policy: "ray-group-bounds", refused: true, field: "spec.workerGroupSpecs[0].maxReplicas",
	},
	"workers that restart": {
		spec: `enableInTreeAutoscaling: true`, group: `maxReplicas: 3`, pod: `restartPolicy: Always`,
		policy: "ray-autoscaler-restarts", field: "spec.workerGroupSpecs[0].template.spec.restartPolicy",
	},
	"workers that restart, of the second autoscaler": {
		spec: `enableInTreeAutoscaling: true, autoscalerOptions: {version: v2}`, group: `maxReplicas: 3`, pod: `restartPolicy: Always`,
		policy: "ray-autoscaler-restarts", refused: true, field: "spec.workerGroupSpecs[0].template.spec.restartPolicy",
	},
	"a password in a parameter": {
		head:   `rayStartParams: {redis-password: hunter2}`,
		policy: "ray-redis-password", refused: true, field: "spec.headGroupSpec.rayStartParams[redis-password]",
	},
	"a password in an address": {
		spec:   `gcsFaultToleranceOptions: {redisAddress: "redis://:hunter2@redis:6379"}`,
		policy: "ray-redis-password", refused: true, field: "spec.gcsFaultToleranceOptions.redisAddress",
	},
}

func TestRayClusterVerdicts(t *testing.T) {
	checker := newChecker(t)
	for name, tc := range rayVerdicts {
		for _, apiVersion := range []string{"ray.io/v1", "penstock.dev/v1alpha1"} {
			t.Run(name+" of "+apiVersion, func(t *testing.T) {
				template := func(pod, container string) string {
					return fmt.Sprintf(`template: {spec: {%scontainers: [{name: ray, image: registry.example/ray:1%s}]}}`, member(pod), strings.TrimSuffix(", "+container, ", "))
				}
				manifest := fmt.Appendf(nil, "apiVersion: %s\nkind: RayCluster\nmetadata: {name: tuner}\nspec: {%sheadGroupSpec: {%s%s}, workerGroupSpecs: [{groupName: w, %s%s}]}\n",
					apiVersion, member(tc.spec), member(tc.head), template("", tc.headContainer), member(tc.group), template(tc.pod, tc.container))
				objects, unreadable := check.Read("-", manifest)
				if len(unreadable) > 0 {
					t.Fatal(unreadable)
				}
				result := checker.Check(t.Context(), objects[0])
				if !result.Judged || result.Allowed == tc.refused {
					t.Errorf("allowed: %v", result.Allowed)
				}
				found := result.Warnings
				if tc.refused {
					found = result.Faults
				}
				if !slices.ContainsFunc(found, func(f check.Fault) bool { return f.Policy == tc.policy && f.Field == tc.field }) {
					t.Errorf("%s says nothing at %s: %v", tc.policy, tc.field, found)
				}
			})
		}
	}
}

// member is text that more members can follow.
func member(text string) string {
	if text == "" {
		return ""
	}
	return text + ", "
}

// Whoever comes from KubeRay comes with these: the library has nothing to say.
func TestUpstreamRaySamplesAreExemplary(t *testing.T) {
	dir := sharedDir(t, "upstream/ray")
	checker := newChecker(t)
	objects, unreadable := check.Load([]string{dir}, true, nil)
	for _, fault := range unreadable {
		t.Error(fault)
	}
	clusters := 0
	for _, object := range objects {
		result := checker.Check(t.Context(), object)
		if result.Kind != v1.RayClusterKind {
			continue
		}
		clusters++
		for _, fault := range append(result.Faults, result.Warnings...) {
			t.Errorf("%s: %s", filepath.Base(object.File), fault)
		}
	}
	if clusters == 0 {
		t.Error("no cluster found")
	}
}
