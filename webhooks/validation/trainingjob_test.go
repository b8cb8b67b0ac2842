package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// jobOf reads a job as a user writes it and defaults it, as the flow does.
func jobOf(t testing.TB, text string) *v1.TrainingJob {
	t.Helper()
	job := &v1.TrainingJob{}
	if err := yaml.UnmarshalStrict([]byte(text), job); err != nil {
		t.Fatalf("failed to decode the test's job: %v\n%s", err, text)
	}
	if job.Name == "" && job.GenerateName == "" {
		job.Name = "digits"
	}
	defaulting.DefaultTrainingJob(job)
	return job
}

func words(errs field.ErrorList) []string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return texts
}

const (
	torch  = `template: {spec: {containers: [{name: pytorch, image: a}]}}`
	tensor = `template: {spec: {containers: [{name: tensorflow, image: a}]}}`
	boost  = `template: {spec: {containers: [{name: xgboost, image: a}]}}`
	mpi    = `template: {spec: {containers: [{name: mpi, image: a}]}}`
)

func TestValidateTrainingJob(t *testing.T) {
	tests := map[string]struct {
		job  string
		want []string
	}{
		"a master and workers": {
			job: `spec: {framework: PyTorch, roles: [{name: master, ` + torch + `}, {name: Worker, replicas: 3, ` + torch + `}]}`,
		},
		"elastic workers without a master": {
			job: `spec: {framework: PyTorch, elastic: {minReplicas: 1, maxReplicas: 3}, roles: [{name: Worker, replicas: 2, ` + torch + `}]}`,
		},
		"a side car before the framework's container": {
			job: `spec: {framework: JAX, roles: [{name: Worker, template: {spec: {containers: [{name: log, image: b}, {name: jax, image: a}]}}}]}`,
		},
		"a worker role without pods beside a master": {
			job:  `spec: {framework: PyTorch, roles: [{name: Master, ` + torch + `}, {name: Worker, replicas: 0, ` + torch + `}]}`,
			want: []string{`spec.roles[1].replicas: Invalid value: 0: must be at least 1: remove role Worker, or suspend the job to free its pods`},
		},
		"a worker role without pods beside a chief": {
			job: `spec: {framework: TensorFlow, roles: [{name: Chief, ` + tensor + `}, {name: Worker, replicas: 0, ` + tensor + `}]}`,
		},
		"a role that always restarts in a gang": {
			job: `spec: {framework: PyTorch, runPolicy: {restart: Gang}, roles: [{name: Worker, restartPolicy: Always, ` + torch + `}]}`,
			want: []string{`spec.roles[0].restartPolicy: Invalid value: "Always": must not be Always where runPolicy.restart is Gang: ` +
				`a pod that has succeeded would restart all others; write OnFailure`},
		},
		"options that torchrun would take for others": {
			job: `spec: {framework: PyTorch, pytorch: {rendezvous: {options: [{key: "a,b"}, {key: ok, value: "c=d"}, {key: x, value: "c,d"}]}}, roles: [{name: Worker, ` + torch + `}]}`,
			want: []string{
				`spec.pytorch.rendezvous.options[0].key: Invalid value: "a,b": must be one name, as torchrun is given options as key=value,key=value: take out , and =`,
				`spec.pytorch.rendezvous.options[2].value: Invalid value: "c,d": must not have a comma, at which torchrun begins the next option: take it out`,
			},
		},
		"the name of the container that brings kubectl": {
			job: `spec: {framework: MPI, mpi: {transport: Exec, kubectlImage: a}, roles: [{name: Launcher, template: {spec: {
  initContainers: [{name: kubectl-delivery, image: a}], containers: [{name: mpi, image: a}]}}}, {name: Worker, ` + mpi + `}]}`,
			want: []string{`spec.roles[0].template.spec.initContainers[0].name: Invalid value: "kubectl-delivery": is the container that brings kubectl to the launcher: ` +
				`rename yours, or take out kubectlImage where yours brings it`},
		},
		"no processes": {
			job: `spec: {framework: MPI, mpi: {slotsPerWorker: 0}, roles: [{name: Launcher, ` + mpi + `}]}`,
			want: []string{`spec.mpi.slotsPerWorker: Invalid value: 0: must be at least 1: no process would be started in any worker; ` +
				`give the number of processes in each, or leave it out for 1`},
		},
		"two workers that each meet themselves": {
			job: `spec: {framework: PyTorch, pytorch: {rendezvous: {mode: Standalone}}, roles: [{name: Worker, replicas: 2, ` + torch + `}]}`,
			want: []string{`spec.pytorch.rendezvous.mode: Invalid value: "Standalone": must not be set for a job of up to 2 pods: ` +
				`each would meet nobody but itself, and train alone; remove it, or make the job of 1 pod`},
		},
		"a worker that meets itself, and may have a second beside it": {
			job: `spec: {framework: PyTorch, elastic: {minReplicas: 1, maxReplicas: 2}, pytorch: {rendezvous: {mode: Standalone}}, roles: [{name: Worker, ` + torch + `}]}`,
			want: []string{`spec.pytorch.rendezvous.mode: Invalid value: "Standalone": must not be set for a job of up to 2 pods: ` +
				`each would meet nobody but itself, and train alone; remove it, or make the job of 1 pod`},
		},
		"a worker that meets itself": {
			job: `spec: {framework: PyTorch, pytorch: {rendezvous: {mode: Standalone}}, roles: [{name: Worker, ` + torch + `}]}`,
		},
		"a rendezvous at no host": {
			job: `spec: {framework: PyTorch, pytorch: {rendezvous: {host: a b}}, roles: [{name: Worker, ` + torch + `}]}`,
			want: []string{`spec.pytorch.rendezvous.host: Invalid value: "a b": must be the name or the address of a host: ` +
				`write it as etcd.storage.svc, with the port in its own field, or leave it out for the first worker`},
		},
		"a rendezvous at a host with a port": {
			job: `spec: {framework: PyTorch, pytorch: {rendezvous: {host: "etcd:2379"}}, roles: [{name: Worker, ` + torch + `}]}`,
			want: []string{`spec.pytorch.rendezvous.host: Invalid value: "etcd:2379": must be the name or the address of a host: ` +
				`write it as etcd.storage.svc, with the port in its own field, or leave it out for the first worker`},
		},
		"a rendezvous at an address": {
			job: `spec: {framework: PyTorch, pytorch: {rendezvous: {host: "[fd00::1]"}}, roles: [{name: Worker, ` + torch + `}]}`,
		},
		"a rendezvous at a name": {
			job: `spec: {framework: PyTorch, pytorch: {rendezvous: {host: Etcd.storage.svc}}, roles: [{name: Worker, ` + torch + `}]}`,
		},
		"a rendezvous at what a variable says": {
			job: `spec: {framework: PyTorch, pytorch: {rendezvous: {host: $(STORE)}}, roles: [{name: Worker, ` + torch + `}]}`,
		},
		"kubectl for ssh": {
			job:  `spec: {framework: MPI, mpi: {kubectlImage: k}, roles: [{name: Launcher, ` + mpi + `}]}`,
			want: []string{`spec.mpi.kubectlImage: Forbidden: is only for transport Exec: remove it or set transport`},
		},
		"ssh keys at a relative path": {
			job: `spec: {framework: MPI, mpi: {sshAuthMountPath: .ssh/}, roles: [{name: Launcher, ` + mpi + `}]}`,
			want: []string{`spec.mpi.sshAuthMountPath: Invalid value: ".ssh/": must be an absolute path without a colon, a dot or a slash at its end: ` +
				`write it as /root/.ssh`},
		},
		"ssh keys over the hosts": {
			job: `spec: {framework: MPI, mpi: {sshAuthMountPath: /etc/mpi}, roles: [{name: Launcher, ` + mpi + `}]}`,
			want: []string{`spec.mpi.sshAuthMountPath: Invalid value: "/etc/mpi": is where something else is mounted: ` +
				`use the .ssh directory of the user that runs sshd`},
		},
		"a volume and mounts that collide with the job's own": {
			job: `spec: {framework: MPI, roles: [{name: Launcher, template: {spec: {volumes: [{name: ssh-auth}, {name: v}],
  containers: [{name: log, image: b, volumeMounts: [{name: v, mountPath: /etc/mpi}]}, {name: mpi, image: a, volumeMounts: [{name: v, mountPath: /etc/mpi/}, {name: v, mountPath: /root/.ssh}]}]}}}]}`,
			want: []string{
				`spec.roles[0].template.spec.volumes[0].name: Invalid value: "ssh-auth": is the volume that holds the ssh keys in every MPI job: rename yours`,
				`spec.roles[0].template.spec.containers[1].volumeMounts[0].mountPath: Invalid value: "/etc/mpi/": is where an MPI job mounts the list of hosts: mount yours elsewhere`,
				`spec.roles[0].template.spec.containers[1].volumeMounts[1].mountPath: Invalid value: "/root/.ssh": is where an MPI job mounts the ssh keys: mount yours elsewhere, or set sshAuthMountPath`,
			},
		},
		"a volume of that name where the keys are not needed": {
			job: `spec: {framework: MPI, mpi: {transport: Exec}, roles: [{name: Launcher, template: {spec: {volumes: [{name: ssh-auth}], containers: [{name: mpi, image: a}]}}}]}`,
		},
		"two masters": {
			job: `spec: {framework: PyTorch, roles: [{name: Master, replicas: 2, ` + torch + `}]}`,
			want: []string{`spec.roles[0].replicas: Invalid value: 2: must be 1: a PyTorch job has one master; ` +
				`put further pods in role Worker`},
		},
		"a role that the framework does not know, near to one": {
			job: `spec: {framework: PyTorch, roles: [{name: Worker, ` + torch + `}, {name: Workers, ` + torch + `}]}`,
			want: []string{`spec.roles[1].name: Invalid value: "Workers": is no role of PyTorch: ` +
				`did you mean Worker? The roles are Master or Worker`},
		},
		"a role that the framework does not know": {
			job: `spec: {framework: TensorFlow, roles: [{name: Worker, ` + tensor + `}, {name: Scheduler, ` + tensor + `}]}`,
			want: []string{`spec.roles[1].name: Invalid value: "Scheduler": is no role of TensorFlow: ` +
				`use Chief, Master, Worker, PS or Evaluator`},
		},
		"one role twice": {
			job: `spec: {framework: PyTorch, roles: [{name: Worker, ` + torch + `}, {name: worker, replicas: 2, ` + torch + `}]}`,
			want: []string{`spec.roles[1].name: Duplicate value: "worker": stands twice, ` +
				`as names that differ only in case are one: both make pods of the same names; join the two under Worker`},
		},
		"a chief beside a master": {
			job: `spec: {framework: TensorFlow, roles: [{name: Chief, ` + tensor + `}, {name: Master, ` + tensor + `}]}`,
			want: []string{`spec.roles[1].name: Invalid value: "Master": must not stand beside Chief: ` +
				`both lead the job; keep one of them`},
		},
		"parameter servers alone": {
			job: `spec: {framework: TensorFlow, roles: [{name: PS, ` + tensor + `}]}`,
			want: []string{`spec.roles: Required value: no pod would decide when the job has succeeded: ` +
				`add role Chief, or role Worker, with 1 replica`},
		},
		"XGBoost without a master": {
			job: `spec: {framework: XGBoost, roles: [{name: Worker, replicas: 3, ` + boost + `}]}`,
			want: []string{`spec.roles: Required value: an XGBoost job needs role Master, which runs the tracker: ` +
				`add it with 1 replica`},
		},
		"MPI without a launcher": {
			job: `spec: {framework: MPI, roles: [{name: Worker, ` + mpi + `}]}`,
			want: []string{`spec.roles: Required value: an MPI job needs role Launcher, which starts the processes: ` +
				`add it with 1 replica`},
		},
		"no roles": {
			job:  `spec: {framework: JAX}`,
			want: []string{`spec.roles: Required value: a job needs at least one role: add Worker`},
		},
		"the framework's container under another name": {
			job: `spec: {framework: PyTorch, roles: [{name: Master, template: {spec: {containers: [{name: pytorch1, image: a}]}}}]}`,
			want: []string{`spec.roles[0].template.spec.containers[0].name: Invalid value: "pytorch1": ` +
				`must be pytorch in one container: port, environment and exit code hang on that name; rename the container that trains`},
		},
		"an empty template": {
			job:  `spec: {framework: PyTorch, roles: [{name: Master, template: {}}]}`,
			want: []string{`spec.roles[0].template: Required value: role Master says nothing of its pods: write what they are, or remove the role`},
		},
		"a template with no containers": {
			job:  `spec: {framework: PyTorch, roles: [{name: Master, template: {spec: {containers: []}}}]}`,
			want: []string{`spec.roles[0].template.spec.containers: Required value: a pod needs a container: add one called pytorch`},
		},
		"faults of containers, all at once": {
			job: `spec: {framework: PyTorch, roles: [{name: Master, template: {spec: {volumes: [{name: data}], containers: [
  {name: pytorch, env: [{name: ""}], volumeMounts: [{name: date, mountPath: /d}, {name: other, mountPath: /o}],
   ports: [{containerPort: 80, name: x}, {containerPort: 80, name: y}, {containerPort: 81, name: x}, {containerPort: 80, protocol: UDP}]},
  {name: pytorch, image: a}, {name: Up, image: a}]}}}]}`,
			want: []string{
				`spec.roles[0].template.spec.containers[0].image: Required value: the pod cannot start without: name the image`,
				`spec.roles[0].template.spec.containers[0].env[0].name: Required value: name the variable or remove it`,
				`spec.roles[0].template.spec.containers[0].volumeMounts[0].name: Not found: "date": is no volume of the pod: did you mean data?`,
				`spec.roles[0].template.spec.containers[0].volumeMounts[1].name: Not found: "other": is no volume of the pod: add a volume of that name to the template`,
				`spec.roles[0].template.spec.containers[0].ports[1].containerPort: Duplicate value: 80: is declared twice in the container: keep one of the two, under the name that is used`,
				`spec.roles[0].template.spec.containers[0].ports[2].name: Duplicate value: "x": is the name of two ports of the container: rename one of them`,
				`spec.roles[0].template.spec.containers[1].name: Duplicate value: "pytorch": must be unique in the pod, init containers included: rename one of them`,
				`spec.roles[0].template.spec.containers[2].name: Invalid value: "Up": must be a DNS label: use at most 63 lower-case letters, digits and -`,
			},
		},
		"two containers at one port of the node": {
			job: `spec: {framework: PyTorch, roles: [{name: Master, template: {spec: {hostNetwork: true, containers: [
  {name: pytorch, image: a, ports: [{containerPort: 80}]}, {name: side, image: a, ports: [{containerPort: 80}]}]}}}]}`,
			want: []string{`spec.roles[0].template.spec.containers[1].ports[0].containerPort: Duplicate value: 80: ` +
				`is a port of container pytorch too, and both share the host network: move one of them`},
		},
		"two containers at one port of the pod": {
			job: `spec: {framework: PyTorch, roles: [{name: Master, template: {spec: {containers: [
  {name: pytorch, image: a, ports: [{containerPort: 80}]}, {name: side, image: a, ports: [{containerPort: 80}]}]}}}]}`,
		},
		"an MPI main container that no role has": {
			job:  `spec: {framework: MPI, mpi: {mainContainer: mpl}, roles: [{name: Launcher, ` + mpi + `}]}`,
			want: []string{`spec.mpi.mainContainer: Invalid value: "mpl": is no container of any role: did you mean mpi?`},
		},
		"an unknown framework": {
			job: `spec: {framework: Torch, roles: [{name: Master, ` + torch + `}]}`,
			want: []string{`spec.framework: Unsupported value: "Torch": supported values: ` +
				`"PyTorch", "TensorFlow", "MPI", "PaddlePaddle", "XGBoost", "JAX"`},
		},
		"another framework's block": {
			job:  `spec: {framework: JAX, pytorch: {}, roles: [{name: Worker, template: {spec: {containers: [{name: jax, image: a}]}}}]}`,
			want: []string{`spec.pytorch: Forbidden: pytorch is only for framework PyTorch: remove it or change framework`},
		},
		"a gang larger than the job, and two topologies": {
			job: `spec: {framework: PyTorch, gang: {minAvailable: 5, topology: {required: a b}}, roles: [{name: Worker, replicas: 4, topology: {required: a, preferred: b}, ` + torch + `}]}`,
			want: []string{
				`spec.roles[0].topology: Invalid value: {"required":"a","preferred":"b"}: must have exactly one of required and preferred: keep the one that is meant`,
				`spec.gang.topology.required: Invalid value: "a b": must be the key of a node label: write it as topology.kubernetes.io/zone`,
				`spec.gang.minAvailable: Invalid value: 5: must be at most 4, the number of pods of all roles: the gang would wait for ever; lower it or leave it out`,
			},
		},
		"managed by a bare word": {
			job: `spec: {framework: PyTorch, runPolicy: {managedBy: kueue}, roles: [{name: Worker, ` + torch + `}]}`,
			want: []string{`spec.runPolicy.managedBy: Invalid value: "kueue": must be a domain-prefixed path such as ` +
				`penstock.dev/manager: name the controller so, or remove the field`},
		},
		"more processes than an int32 holds": {
			job: `spec: {framework: PyTorch, pytorch: {processesPerNode: "9999999999"}, roles: [{name: Worker, ` + torch + `}]}`,
			want: []string{`spec.pytorch.processesPerNode: Invalid value: "9999999999": must be a number from 1, ` +
				`or one of auto, cpu and gpu: give the number of processes in each pod`},
		},
		"crossed elastic bounds": {
			job: `spec: {framework: PyTorch, elastic: {minReplicas: 4, maxReplicas: 2}, roles: [{name: Worker, replicas: 3, ` + torch + `}]}`,
			want: []string{`spec.elastic.maxReplicas: Invalid value: 2: must be at least minReplicas, which is 4: ` +
				`raise it or lower minReplicas`},
		},
		"more elastic workers than the bound": {
			job: `spec: {framework: PyTorch, elastic: {minReplicas: 1, maxReplicas: 2}, roles: [{name: Worker, replicas: 3, ` + torch + `}]}`,
			want: []string{`spec.elastic.replicas: Invalid value: 3: must be at most maxReplicas, which is 2: ` +
				`lower it or raise maxReplicas`},
		},
		"elastic without workers": {
			job:  `spec: {framework: PyTorch, elastic: {}, roles: [{name: Master, ` + torch + `}]}`,
			want: []string{`spec.elastic: Forbidden: only role Worker is elastic, and the job has none: add it or remove this block`},
		},
		"elastic TensorFlow with fixed workers": {
			job: `spec: {framework: TensorFlow, elastic: {}, roles: [{name: Worker, ` + tensor + `}]}`,
			want: []string{`spec.elastic: Forbidden: a TensorFlow job fixes its workers at the start: ` +
				`set tensorflow.workers to Dynamic, which is enableDynamicWorker in v1alpha1, or remove this block`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := words(validation.ValidateTrainingJob(nil, jobOf(t, tc.job)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateTrainingJobName(t *testing.T) {
	const of54 = "nightly-recommender-embedding-refresh-europe-west-s003"
	workers := func(count string) string {
		return `spec: {framework: TensorFlow, roles: [{name: Worker, replicas: ` + count + `, ` + tensor + `}]}`
	}
	tests := map[string]struct {
		job  string
		want []string
	}{
		"a name that fits for worker 9": {job: `{metadata: {name: ` + of54 + `}, ` + workers("10") + `}`},
		"a name that does not fit for worker 11": {
			job: `{metadata: {name: ` + of54 + `}, ` + workers("12") + `}`,
			want: []string{`metadata.name: Invalid value: "` + of54 + `": is 1 character too long: the pod ` + of54 +
				`-worker-11 would have 64, and 63 is the most; shorten it to 53 or fewer`},
		},
		"a name that does not fit when scaled up": {
			job: `{metadata: {name: ` + of54 + `}, spec: {framework: PyTorch, elastic: {minReplicas: 1, maxReplicas: 101}, roles: [{name: Worker, ` + torch + `}]}}`,
			want: []string{`metadata.name: Invalid value: "` + of54 + `": is 2 characters too long: the pod ` + of54 +
				`-worker-100 would have 65, and 63 is the most; shorten it to 52 or fewer`},
		},
		"a name that is no label": {
			job: `{metadata: {name: 3.digits}, ` + workers("1") + `}`,
			want: []string{`metadata.name: Invalid value: "3.digits": must be a DNS label, as pods and services are named after the job: ` +
				`use lower-case letters, digits and -, beginning with a letter and ending with a letter or digit`},
		},
		"a generated name counts with what is appended": {
			job: `{metadata: {generateName: ` + of54 + `-}, ` + workers("1") + `}`,
			want: []string{`metadata.generateName: Invalid value: "` + of54 + `-xxxxx": is 6 characters too long: the pod ` + of54 +
				`-xxxxx-worker-0 would have 69, and 63 is the most; shorten it to 49 or fewer`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := words(validation.ValidateTrainingJob(nil, jobOf(t, tc.job)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateTrainingJobUpdate(t *testing.T) {
	stored := `spec: {framework: PyTorch, runPolicy: {suspend: true, managedBy: a.dev/b}, gang: {queueName: q}, roles: [{name: Master, ` + torch + `}]}`
	tests := map[string]struct {
		job  string
		want []string
	}{
		"a queue admits the job": {
			job: `spec: {framework: PyTorch, runPolicy: {suspend: false, managedBy: a.dev/b}, gang: {queueName: q}, roles: [{name: Master,
  template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {a: b}, containers: [{name: pytorch, image: a}]}}}]}`,
		},
		"what cannot change": {
			job: `spec: {framework: JAX, roles: [{name: Worker, template: {spec: {containers: [{name: jax, image: a}]}}}]}`,
			want: []string{
				`spec.framework: Invalid value: "JAX": framework cannot change: make a new job instead`,
				`spec.runPolicy.managedBy: Invalid value: "": managedBy cannot change: make a new job instead`,
				`spec.gang.queueName: Invalid value: "": queueName cannot change: make a new job instead`,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := words(validation.ValidateTrainingJob(jobOf(t, stored), jobOf(t, tc.job)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected faults (-want +got):\n%s", diff)
			}
		})
	}
	running := `spec: {framework: PyTorch, roles: [{name: Master, ` + torch + `}]}`
	edited := strings.Replace(running, "image: a", "image: b", 1)
	if errs := validation.ValidateTrainingJob(jobOf(t, running), jobOf(t, running)); len(errs) > 0 {
		t.Errorf("a running job that does not change is at fault: %v", errs)
	}
	want := []string{"spec.roles[0].template: Forbidden: cannot change while the job is not suspended: suspend it first by runPolicy.suspend, or make a new job"}
	if diff := cmp.Diff(want, words(validation.ValidateTrainingJob(jobOf(t, running), jobOf(t, edited)))); diff != "" {
		t.Errorf("the template of a running job (-want +got):\n%s", diff)
	}
	restarts := `spec: {framework: PyTorch, runPolicy: {restart: Gang}, roles: [{name: Master, restartPolicy: ExitCode, ` + torch + `}]}`
	const fix = "Forbidden: cannot change while the job is not suspended: suspend it first by runPolicy.suspend, or make a new job"
	want = []string{"spec.runPolicy.restart: " + fix, "spec.roles[0].restartPolicy: " + fix}
	if diff := cmp.Diff(want, words(validation.ValidateTrainingJob(jobOf(t, running), jobOf(t, restarts)))); diff != "" {
		t.Errorf("the restarts of a running job (-want +got):\n%s", diff)
	}
	ganged := strings.Replace(running, "PyTorch,", "PyTorch, gang: {minAvailable: 1, topology: {required: rack}},", 1)
	for edit, want := range map[string][]string{
		"gang: {minAvailable: 1, topology: {required: rack}}, ": {"spec.gang: " + fix},
		"minAvailable: 1, ":            nil,
		", topology: {required: rack}": {"spec.gang.topology: " + fix},
	} {
		if diff := cmp.Diff(want, words(validation.ValidateTrainingJob(jobOf(t, ganged), jobOf(t, strings.Replace(ganged, edit, "", 1))))); diff != "" {
			t.Errorf("a gang without %q (-want +got):\n%s", edit, diff)
		}
	}
	if diff := cmp.Diff([]string{
		"spec.gang.scheduler: " + fix, "spec.gang.priorityClassName: " + fix, "spec.roles[0].topology: " + fix,
	}, words(validation.ValidateTrainingJob(jobOf(t, ganged), jobOf(t, strings.NewReplacer(
		"gang: {", "gang: {scheduler: volcano, priorityClassName: high, ", "name: Master,", "name: Master, topology: {preferred: rack},").Replace(ganged))))); diff != "" {
		t.Errorf("another gang (-want +got):\n%s", diff)
	}
	suspended := strings.Replace(running, "PyTorch,", "PyTorch, runPolicy: {suspend: true},", 1)
	if errs := validation.ValidateTrainingJob(jobOf(t, suspended), jobOf(t, restarts)); len(errs) > 0 {
		t.Errorf("the restarts of a suspended job: %v", errs)
	}
	if errs := validation.ValidateTrainingJob(&v1.TrainingJob{}, nil); len(errs) > 0 {
		t.Errorf("nothing is at fault: %v", errs)
	}
}

// Every fault tells what to do: the part after the predicate.
func TestMessagesCarryAFix(t *testing.T) {
	job := &v1.TrainingJob{Spec: v1.TrainingJobSpec{Framework: v1.FrameworkXGBoost, Elastic: &v1.Elastic{},
		Roles: []v1.Role{{Name: "Boss"}, {}}}}
	for _, err := range validation.ValidateTrainingJob(nil, job) {
		if !strings.ContainsAny(err.Detail, ":;,") {
			t.Errorf("%v names no fix", err)
		}
	}
}
