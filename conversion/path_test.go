package conversion

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

func TestFieldPaths(t *testing.T) {
	hub := fromYAML(t, `
apiVersion: penstock.dev/v1
kind: TrainingJob
spec:
  framework: PyTorch
  roles: [{name: Master}, {name: Worker}]
  mpi: {slotsPerWorker: 2}
`)
	alpha := schema.GroupVersionKind{Group: "penstock.dev", Version: "v1alpha1", Kind: "TrainingJob"}
	upstream := schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}
	own := v1.GroupVersion.WithKind(v1.TrainingJobKind)
	tests := map[string]struct {
		kind       schema.GroupVersionKind
		path, want string
	}{
		"v1 stays as it is":       {own, "spec.roles[1].replicas", "spec.roles[1].replicas"},
		"a role's field":          {alpha, "spec.roles[1].replicas", "spec.pytorchReplicaSpecs.Worker.replicas"},
		"a role":                  {alpha, "spec.roles[0]", "spec.pytorchReplicaSpecs.Master"},
		"a role's name":           {alpha, "spec.roles[0].name", "spec.pytorchReplicaSpecs.Master"},
		"all roles":               {alpha, "spec.roles", "spec.pytorchReplicaSpecs"},
		"the framework":           {alpha, "spec.framework", "spec.pytorchReplicaSpecs"},
		"a key with dots":         {upstream, "spec.roles[1].template.spec.containers[0].resources.limits[nvidia.com/gpu]", "spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].resources.limits[nvidia.com/gpu]"},
		"a key with dots, quoted": {upstream, `spec.roles[1].template.metadata.labels["a.b/c"]`, `spec.pytorchReplicaSpecs.Worker.template.metadata.labels["a.b/c"]`},
		"the queue":               {alpha, "spec.gang.queueName", "spec.runPolicy.schedulingPolicy.queue"},
		"the gang":                {alpha, "spec.gang", "spec.runPolicy.schedulingPolicy"},
		"the scaled count":        {alpha, "spec.elastic.replicas", "spec.pytorchReplicaSpecs.Worker.replicas"},
		"the elastic bound":       {alpha, "spec.elastic.maxReplicas", "spec.elasticPolicy.maxReplicas"},
		"rendezvous options":      {alpha, "spec.pytorch.rendezvous.options[2].key", "spec.elasticPolicy.rdzvConf[2].key"},
		"a field v1alpha1 lacks":  {alpha, "spec.roles[1].topology.required", "metadata.annotations[penstock.dev/restore]"},
		"a block v1alpha1 lacks":  {alpha, "spec.mpi", "spec.slotsPerWorker"},
		"a block that is not set": {alpha, "spec.tensorflow", "metadata.annotations[penstock.dev/restore]"},
		"the spec":                {alpha, "spec", "spec"},
		"the name":                {alpha, "metadata.name", "metadata.name"},
		"no such role":            {alpha, "spec.roles[7].replicas", "spec.pytorchReplicaSpecs.7.replicas"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := FieldPaths(tc.kind, hub)(tc.path); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
