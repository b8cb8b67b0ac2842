package check_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/cmd/penstock/check"
	"github.com/penstock-dev/penstock/conversion"
)

// trainingRules are the rules of the Training Operator's and the MPI Operator's
// webhooks and controllers, and those that they lack: each spec breaks one, at
// a field of its own shape and of v1's.
var trainingRules = map[string]struct {
	kind, spec string
	// name of the job where it is what is wrong.
	name string
	// field in the upstream shape, and in v1; no field in v1 where it cannot
	// be said there.
	field, hub string
}{
	"no replica map": {kind: "PyTorchJob", spec: `{runPolicy: {}}`, field: "spec"},
	"no roles":       {kind: "PyTorchJob", spec: `{pytorchReplicaSpecs: {}}`, field: "spec.pytorchReplicaSpecs", hub: "spec.roles"},
	"a null role": {
		kind: "PyTorchJob", spec: `{pytorchReplicaSpecs: {Master: null}}`,
		field: "spec.pytorchReplicaSpecs.Master.template", hub: "spec.roles[0].template",
	},
	"a null role beside another": {
		kind: "PyTorchJob", spec: `{pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: a}]}}}, Master: null}}`,
		field: "spec.pytorchReplicaSpecs.Master.template", hub: "spec.roles[0].template",
	},
	"an empty role": {
		kind: "XGBoostJob", spec: `{xgbReplicaSpecs: {Master: {}}}`,
		field: "spec.xgbReplicaSpecs.Master.template", hub: "spec.roles[0].template",
	},
	"a null template": {
		kind: "MPIJob", spec: `{mpiReplicaSpecs: {Launcher: {replicas: 1, template: null}}}`,
		field: "spec.mpiReplicaSpecs.Launcher.template", hub: "spec.roles[0].template",
	},
	"no container": {
		kind: "JAXJob", spec: `{jaxReplicaSpecs: {Worker: {template: {spec: {containers: []}}}}}`,
		field: "spec.jaxReplicaSpecs.Worker.template.spec.containers", hub: "spec.roles[0].template.spec.containers",
	},
	"no image": {
		kind: "JAXJob", spec: `{jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax}]}}}}}`,
		field: "spec.jaxReplicaSpecs.Worker.template.spec.containers[0].image", hub: "spec.roles[0].template.spec.containers[0].image",
	},
	"no container of the framework's name": {
		kind: "PaddleJob", spec: `{paddleReplicaSpecs: {Worker: {template: {spec: {containers: [{name: main, image: a}]}}}}}`,
		field: "spec.paddleReplicaSpecs.Worker.template.spec.containers[0].name", hub: "spec.roles[0].template.spec.containers[0].name",
	},
	"a name that is no label": {
		kind: "JAXJob", name: "9-lives", spec: `{jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: a}]}}}}}`,
		field: "metadata.name", hub: "metadata.name",
	},
	"managed by a bare word": {
		kind: "JAXJob", spec: `{runPolicy: {managedBy: kueue}, jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: a}]}}}}}`,
		field: "spec.runPolicy.managedBy", hub: "spec.runPolicy.managedBy",
	},
	"managed by nobody": {
		kind: "JAXJob", spec: `{runPolicy: {managedBy: ""}, jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: a}]}}}}}`,
		field: "spec.runPolicy.managedBy", hub: "spec.runPolicy.managedBy",
	},
	"a PyTorch role that there is not": {
		kind: "PyTorchJob", spec: `{pytorchReplicaSpecs: {PS: {template: {spec: {containers: [{name: pytorch, image: a}]}}}}}`,
		field: "spec.pytorchReplicaSpecs.PS", hub: "spec.roles[0].name",
	},
	"a JAX master": {
		kind: "JAXJob", spec: `{jaxReplicaSpecs: {Master: {template: {spec: {containers: [{name: jax, image: a}]}}}}}`,
		field: "spec.jaxReplicaSpecs.Master", hub: "spec.roles[0].name",
	},
	"two PyTorch masters": {
		kind: "PyTorchJob", spec: `{pytorchReplicaSpecs: {Master: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: a}]}}}}}`,
		field: "spec.pytorchReplicaSpecs.Master.replicas", hub: "spec.roles[0].replicas",
	},
	"no PyTorch worker in a role of them": {
		kind: "PyTorchJob", spec: `{pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: pytorch, image: a}]}}}, Worker: {replicas: 0, template: {spec: {containers: [{name: pytorch, image: a}]}}}}}`,
		field: "spec.pytorchReplicaSpecs.Worker.replicas", hub: "spec.roles[1].replicas",
	},
	"elastic without workers": {
		kind: "PyTorchJob", spec: `{elasticPolicy: {}, pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: pytorch, image: a}]}}}}}`,
		field: "spec.elasticPolicy", hub: "spec.elastic",
	},
	"both spellings of the processes": {
		kind: "PyTorchJob", spec: `{nprocPerNode: "2", elasticPolicy: {nProcPerNode: 2}, pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: a}]}}}}}`,
		field: "spec.elasticPolicy.nProcPerNode",
	},
	"crossed elastic bounds": {
		kind: "PyTorchJob", spec: `{elasticPolicy: {minReplicas: 3, maxReplicas: 2}, pytorchReplicaSpecs: {Worker: {replicas: 3, template: {spec: {containers: [{name: pytorch, image: a}]}}}}}`,
		field: "spec.elasticPolicy.maxReplicas", hub: "spec.elastic.maxReplicas",
	},
	"less workers than the elastic bound": {
		kind: "PyTorchJob", spec: `{elasticPolicy: {minReplicas: 3, maxReplicas: 4}, pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: a}]}}}}}`,
		field: "spec.pytorchReplicaSpecs.Worker.replicas", hub: "spec.elastic.replicas",
	},
	"a chief and a master": {
		kind: "TFJob", spec: `{tfReplicaSpecs: {Chief: {template: {spec: {containers: [{name: tensorflow, image: a}]}}}, Master: {template: {spec: {containers: [{name: tensorflow, image: a}]}}}}}`,
		field: "spec.tfReplicaSpecs.Master", hub: "spec.roles[1].name",
	},
	"parameter servers only": {
		kind: "TFJob", spec: `{tfReplicaSpecs: {PS: {template: {spec: {containers: [{name: tensorflow, image: a}]}}}}}`,
		field: "spec.tfReplicaSpecs", hub: "spec.roles",
	},
	"two XGBoost masters": {
		kind: "XGBoostJob", spec: `{xgbReplicaSpecs: {Master: {replicas: 2, template: {spec: {containers: [{name: xgboost, image: a}]}}}}}`,
		field: "spec.xgbReplicaSpecs.Master.replicas", hub: "spec.roles[0].replicas",
	},
	"XGBoost workers only": {
		kind: "XGBoostJob", spec: `{xgbReplicaSpecs: {Worker: {template: {spec: {containers: [{name: xgboost, image: a}]}}}}}`,
		field: "spec.xgbReplicaSpecs", hub: "spec.roles",
	},
	"MPI workers only": {
		kind: "MPIJob", spec: `{mpiReplicaSpecs: {Worker: {template: {spec: {containers: [{name: mpi, image: a}]}}}}}`,
		field: "spec.mpiReplicaSpecs", hub: "spec.roles",
	},
	"two launchers": {
		kind: "MPIJob", spec: `{mpiReplicaSpecs: {Launcher: {replicas: 2, template: {spec: {containers: [{name: mpi, image: a}]}}}}}`,
		field: "spec.mpiReplicaSpecs.Launcher.replicas", hub: "spec.roles[0].replicas",
	},
	"no MPI worker in a role of them": {
		kind: "MPIJob", spec: `{mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: mpi, image: a}]}}}, Worker: {replicas: 0, template: {spec: {containers: [{name: mpi, image: a}]}}}}}`,
		field: "spec.mpiReplicaSpecs.Worker.replicas", hub: "spec.roles[1].replicas",
	},
	"negative slots": {
		kind: "MPIJob", spec: `{slotsPerWorker: -1, mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: mpi, image: a}]}}}}}`,
		field: "spec.slotsPerWorker", hub: "spec.mpi.slotsPerWorker",
	},
	"no slots": {
		kind: "MPIJob", spec: `{slotsPerWorker: 0, mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: mpi, image: a}]}}}}}`,
		field: "spec.slotsPerWorker", hub: "spec.mpi.slotsPerWorker",
	},
	"an MPI that there is not": {
		kind: "MPIJob", spec: `{mpiImplementation: LAM, mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: mpi, image: a}]}}}}}`,
		field: "spec.mpiImplementation", hub: "spec.mpi.implementation",
	},
	"ssh keys at a relative path": {
		kind: "MPIJob", spec: `{sshAuthMountPath: keys, mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: mpi, image: a}]}}}}}`,
		field: "spec.sshAuthMountPath", hub: "spec.mpi.sshAuthMountPath",
	},
	"a volume that collides with the ssh keys": {
		kind: "MPIJob", spec: `{mpiReplicaSpecs: {Launcher: {template: {spec: {volumes: [{name: ssh-auth, emptyDir: {}}], containers: [{name: mpi, image: a}]}}}}}`,
		field: "spec.mpiReplicaSpecs.Launcher.template.spec.volumes[0].name", hub: "spec.roles[0].template.spec.volumes[0].name",
	},
	"one number for two ports": {
		kind: "JAXJob", spec: `{jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: a, ports: [{name: one, containerPort: 80, protocol: TCP}, {name: two, containerPort: 80, protocol: TCP}]}]}}}}}`,
		field: "spec.jaxReplicaSpecs.Worker.template.spec.containers[0].ports[1].containerPort",
		hub:   "spec.roles[0].template.spec.containers[0].ports[1]",
	},
	"two containers of one name": {
		kind: "JAXJob", spec: `{jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: a}, {name: jax, image: b}]}}}}}`,
		field: "spec.jaxReplicaSpecs.Worker.template.spec.containers[1]", hub: "spec.roles[0].template.spec.containers[1]",
	},
	"two init containers of one name": {
		kind: "JAXJob", spec: `{jaxReplicaSpecs: {Worker: {template: {spec: {initContainers: [{name: a, image: a}, {name: a, image: b}], containers: [{name: jax, image: a}]}}}}}`,
		field: "spec.jaxReplicaSpecs.Worker.template.spec.initContainers[1]", hub: "spec.roles[0].template.spec.initContainers[1]",
	},
	"two roles that differ in case": {
		kind: "JAXJob", spec: `{jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: a}]}}}, worker: {replicas: 2, template: {spec: {containers: [{name: jax, image: a}]}}}}}`,
		field: "spec.jaxReplicaSpecs.worker", hub: "spec.roles[1].name",
	},
	"a gang larger than the job": {
		kind: "JAXJob", spec: `{runPolicy: {schedulingPolicy: {minAvailable: 9}}, jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: a}]}}}}}`,
		field: "spec.runPolicy.schedulingPolicy.minAvailable", hub: "spec.gang.minAvailable",
	},
	"a restart policy that there is not": {
		kind: "JAXJob", spec: `{jaxReplicaSpecs: {Worker: {restartPolicy: Sometimes, template: {spec: {containers: [{name: jax, image: a}]}}}}}`,
		field: "spec.jaxReplicaSpecs.Worker.restartPolicy", hub: "spec.roles[0].restartPolicy",
	},
	"a cleanPodPolicy that there is not": {
		kind: "JAXJob", spec: `{runPolicy: {cleanPodPolicy: Some}, jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: a}]}}}}}`,
		field: "spec.runPolicy.cleanPodPolicy", hub: "spec.runPolicy.cleanPodPolicy",
	},
}

// withJAX is the spec of a JAX job with more, and withPyTorch that of an elastic
// PyTorch job.
func withJAX(more string) string {
	return `{` + more + `, jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: a}]}}}}}`
}

func withPyTorch(more string) string {
	return `{` + more + `, pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: a}]}}}}}`
}

func init() {
	add := func(name, kind, spec, field, hub string) {
		rule := trainingRules["managed by nobody"]
		rule.kind, rule.spec, rule.field, rule.hub = kind, spec, field, hub
		trainingRules[name] = rule
	}
	for _, kind := range []struct{ kind, roles, leader, container string }{
		{"TFJob", "tfReplicaSpecs", "Worker", "tensorflow"}, {"MPIJob", "mpiReplicaSpecs", "Launcher", "mpi"},
		{"PaddleJob", "paddleReplicaSpecs", "Worker", "paddle"}, {"XGBoostJob", "xgbReplicaSpecs", "Master", "xgboost"},
	} {
		template := fmt.Sprintf(`{template: {spec: {containers: [{name: %s, image: a}]}}}`, kind.container)
		add("a role that "+kind.kind+" has not", kind.kind, fmt.Sprintf(`{%s: {%s: %s, Helper: %s}}`, kind.roles, kind.leader, template, template),
			"spec."+kind.roles+".Helper", "spec.roles[1].name")
	}
	add("a launcher that comes at no time there is", "MPIJob", `{launcherCreationPolicy: Later, mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: mpi, image: a}]}}}}}`,
		"spec.launcherCreationPolicy", "spec.mpi.launcherCreation")
	add("a success that there is not", "TFJob", `{successPolicy: Most, tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow, image: a}]}}}}}`,
		"spec.successPolicy", "spec.tensorflow.successPolicy")
	add("more workers than the elastic bound", "PyTorchJob", withPyTorch(`elasticPolicy: {minReplicas: 1, maxReplicas: 1}`),
		"spec.pytorchReplicaSpecs.Worker.replicas", "spec.elastic.replicas")
	add("a rendezvous that there is not", "PyTorchJob", withPyTorch(`elasticPolicy: {rdzvBackend: gossip}`),
		"spec.elasticPolicy.rdzvBackend", "spec.pytorch.rendezvous.backend")
	add("workers that stand alone", "PyTorchJob", withPyTorch(`elasticPolicy: {standalone: true}`),
		"spec.elasticPolicy.standalone", "spec.pytorch.rendezvous.mode")
	add("a rendezvous at no host", "PyTorchJob", withPyTorch(`elasticPolicy: {rdzvHost: a b}`),
		"spec.elasticPolicy.rdzvHost", "spec.pytorch.rendezvous.host")
	for _, number := range []string{`"two"`, `"0"`, `"-1"`} {
		add("processes by number "+number, "PyTorchJob", withPyTorch(`nprocPerNode: `+number), "spec.nprocPerNode", "spec.pytorch.processesPerNode")
	}
	for field, hub := range map[string]string{
		"minReplicas": "spec.elastic.minReplicas", "maxReplicas": "spec.elastic.maxReplicas",
		"maxRestarts": "spec.pytorch.maxRestarts", "rdzvPort": "spec.pytorch.rendezvous.port",
	} {
		add("a negative "+field, "PyTorchJob", withPyTorch(`elasticPolicy: {`+field+`: -1}`), "spec.elasticPolicy."+field, hub)
	}
	// The older spelling is read as the newer one.
	add("a negative nProcPerNode", "PyTorchJob", withPyTorch(`elasticPolicy: {nProcPerNode: -1}`), "spec.nprocPerNode", "spec.pytorch.processesPerNode")
	for _, number := range []string{"minAvailable", "scheduleTimeoutSeconds"} {
		add("a negative "+number, "JAXJob", withJAX(`runPolicy: {schedulingPolicy: {`+number+`: -1}}`),
			"spec.runPolicy.schedulingPolicy."+number, "spec.gang."+number)
	}
	for name, broken := range map[string]struct{ container, field string }{
		"a negative port":         {"ports: [{containerPort: -1}]", "ports[0].containerPort"},
		"a port beyond all":       {"ports: [{containerPort: 70000}]", "ports[0].containerPort"},
		"a port of no such name":  {"ports: [{name: the_port, containerPort: 80}]", "ports[0].name"},
		"a negative limit":        {"resources: {limits: {cpu: -1}}", "resources.limits[cpu]"},
		"a negative request":      {"resources: {requests: {memory: -1Gi}}", "resources.requests[memory]"},
		"a variable without name": {`env: [{name: "", value: b}]`, "env[0].name"},
		"a variable twice":        {"env: [{name: A, value: b}, {name: A, value: c}]", "env[1]"},
		"a mount of nothing":      {"volumeMounts: [{name: data, mountPath: /data}]", "volumeMounts[0].name"},
	} {
		add(name, "JAXJob", `{jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: a, `+broken.container+`}]}}}}}`,
			"spec.jaxReplicaSpecs.Worker.template.spec.containers[0]."+broken.field, "spec.roles[0].template.spec.containers[0]."+broken.field)
	}
	add("a negative amount of a resource", "JAXJob", withJAX(`runPolicy: {schedulingPolicy: {minResources: {cpu: -1}}}`),
		"spec.runPolicy.schedulingPolicy.minResources[cpu]", "spec.gang.minResources[cpu]")
	add("a name too long for its pods", "JAXJob", withJAX(`runPolicy: {}`), "metadata.name", "metadata.name")
	long := trainingRules["a name too long for its pods"]
	long.name = strings.Repeat("n", 55)
	trainingRules["a name too long for its pods"] = long
	for _, number := range []string{"activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"} {
		rule := trainingRules["managed by nobody"]
		rule.spec = fmt.Sprintf(`{runPolicy: {%s: -1}, jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: a}]}}}}}`, number)
		rule.field, rule.hub = "spec.runPolicy."+number, "spec.runPolicy."+number
		trainingRules["a negative "+number] = rule
	}
	rule := trainingRules["managed by nobody"]
	rule.spec = `{jaxReplicaSpecs: {Worker: {replicas: -1, template: {spec: {containers: [{name: jax, image: a}]}}}}}`
	rule.field, rule.hub = "spec.jaxReplicaSpecs.Worker.replicas", "spec.roles[0].replicas"
	trainingRules["a negative number of replicas"] = rule
}

// TestTrainingRules holds every rule to every version, as an upstream manifest,
// as v1alpha1 and as v1.
func TestTrainingRules(t *testing.T) {
	checker := newChecker(t)
	for name, rule := range trainingRules {
		t.Run(name, func(t *testing.T) {
			job := rule.name
			if job == "" {
				job = "job"
			}
			manifest := func(apiVersion, kind string) []byte {
				return fmt.Appendf(nil, "apiVersion: %s\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", apiVersion, kind, job, rule.spec)
			}
			refusedAt(t, checker, manifest("kubeflow.org/v1", rule.kind), rule.field)
			refusedAt(t, checker, manifest("penstock.dev/v1alpha1", v1.TrainingJobKind), rule.field)
			if rule.hub == "" {
				return
			}
			alpha, err := yaml.YAMLToJSON(manifest("penstock.dev/v1alpha1", v1.TrainingJobKind))
			if err != nil {
				t.Fatal(err)
			}
			hub, err := conversion.Convert(alpha, v1.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			var object map[string]any
			if err := json.Unmarshal(hub, &object); err != nil {
				t.Fatal(err)
			}
			object["metadata"] = map[string]any{"name": job}
			hub, err = yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			refusedAt(t, checker, hub, rule.hub)
		})
	}
}

func refusedAt(t *testing.T, checker *check.Checker, manifest []byte, field string) {
	t.Helper()
	objects, unreadable := check.Read("job.yaml", manifest)
	if len(unreadable) > 0 || len(objects) != 1 {
		t.Fatalf("%d objects, %v\n%s", len(objects), unreadable, manifest)
	}
	result := checker.Check(t.Context(), objects[0])
	if !result.Judged || result.Allowed || !slices.ContainsFunc(result.Faults, func(f check.Fault) bool { return f.Field == field }) {
		t.Errorf("allowed %v, faults %v; want one at %s\n%s", result.Allowed, result.Faults, field, manifest)
	}
}

// A job that another controller runs asks for the same nodes as all others.
func TestManagedByExemptsFromNoPolicy(t *testing.T) {
	checker := newChecker(t)
	for _, manifest := range []string{
		`{apiVersion: penstock.dev/v1, kind: TrainingJob, metadata: {name: a}, spec: {framework: JAX, runPolicy: {managedBy: kueue.x-k8s.io/multikueue},
  roles: [{name: Worker, template: {spec: {containers: [{name: jax, image: a, resources: {limits: {nvidia.com/gpu: 9}}}]}}}]}}`,
		`{apiVersion: kubeflow.org/v1, kind: JAXJob, metadata: {name: a}, spec: {runPolicy: {managedBy: kueue.x-k8s.io/multikueue},
  jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: a, resources: {limits: {nvidia.com/gpu: 9}}}]}}}}}}`,
	} {
		objects, _ := check.Read("job.yaml", []byte(manifest))
		result := checker.Check(t.Context(), objects[0])
		if result.Allowed || !slices.ContainsFunc(result.Faults, func(f check.Fault) bool { return f.Policy == "gpu-ceiling" }) {
			t.Errorf("allowed %v, faults %v; want one of policy gpu-ceiling", result.Allowed, result.Faults)
		}
	}
}
