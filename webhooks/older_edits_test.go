package webhooks_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// TestOlderEdits makes edits of running jobs in v1alpha1: each replaces one
// text of the stored job by another, and is refused at fields of v1alpha1.
func TestOlderEdits(t *testing.T) {
	const (
		until  = ": Forbidden: cannot change while the job is not suspended: suspend it first by runPolicy.suspend, or make a new job"
		torch  = "template: {spec: {containers: [{name: pytorch, image: registry.example/train:1}]}}"
		mpi    = "template: {spec: {containers: [{name: mpi, image: registry.example/train:1}]}}"
		tensor = "template: {spec: {containers: [{name: tensorflow, image: registry.example/train:1}]}}"
	)
	pytorch := "pytorchReplicaSpecs: {Master: {" + torch + "}, Worker: {replicas: 1, " + torch + "}}"
	elastic := "elasticPolicy: {minReplicas: 1, maxReplicas: 4, rdzvBackend: c10d}, pytorchReplicaSpecs: {Worker: {replicas: 1, " + torch + "}}"
	tests := map[string]struct {
		job, old, new string
		want          []string
	}{
		"replicas": {
			job: pytorch, old: "replicas: 1", new: "replicas: 3", want: []string{"spec.pytorchReplicaSpecs.Worker.replicas" + until},
		},
		"replicas of an elastic job": {job: elastic, old: "replicas: 1", new: "replicas: 3"},
		"replicas of MPI workers": {
			job: "mpiReplicaSpecs: {Launcher: {" + mpi + "}, Worker: {replicas: 1, " + mpi + "}}", old: "replicas: 1", new: "replicas: 3",
		},
		"a role less": {
			job: pytorch, old: "Master: {" + torch + "}, ", new: "",
			want: []string{"spec.pytorchReplicaSpecs" + strings.Replace(until, "cannot change", "role Master cannot be removed", 1)},
		},
		"a null role": {
			job: pytorch, old: "Master: {" + torch + "}, ", new: "Master: null, ",
			want: []string{
				"spec.pytorchReplicaSpecs.Master.template: Required value: role Master says nothing of its pods: write what they are, or remove the role",
				"spec.pytorchReplicaSpecs.Master.template" + until,
			},
		},
		"a role more": {
			job: "pytorchReplicaSpecs: {Master: {" + torch + "}}", old: "Master:", new: "Worker: {" + torch + "}, Master:",
			want: []string{"spec.pytorchReplicaSpecs.Worker" + strings.Replace(until, "cannot change", "role Worker cannot be added", 1)},
		},
		"elastic no longer": {
			job: elastic, old: "elasticPolicy: {minReplicas: 1, maxReplicas: 4, rdzvBackend: c10d}, ", new: "",
			want: []string{"spec.elasticPolicy" + strings.Replace(until, "cannot change", "cannot be removed", 1)},
		},
		"bounds and rendezvous": {
			job: elastic, old: "maxReplicas: 4, rdzvBackend: c10d", new: "maxReplicas: 5, rdzvBackend: etcd",
			want: []string{"spec.elasticPolicy.maxReplicas" + until, "spec.elasticPolicy.rdzvBackend" + until},
		},
		"processes": {
			job: pytorch, old: "pytorchReplicaSpecs", new: `nprocPerNode: "2", pytorchReplicaSpecs`, want: []string{"spec.nprocPerNode" + until},
		},
		"slots": {
			job: "mpiReplicaSpecs: {Launcher: {" + mpi + "}}", old: "mpiReplicaSpecs", new: "slotsPerWorker: 2, mpiReplicaSpecs",
			want: []string{"spec.slotsPerWorker" + until},
		},
		"dynamic workers": {
			job: "tfReplicaSpecs: {Worker: {" + tensor + "}}", old: "tfReplicaSpecs", new: "enableDynamicWorker: true, tfReplicaSpecs",
			want: []string{"spec.enableDynamicWorker" + until},
		},
	}
	hub := func(t *testing.T, spec string) string {
		t.Helper()
		raw, err := yaml.YAMLToJSON([]byte("{apiVersion: penstock.dev/v1alpha1, kind: TrainingJob, metadata: {name: a, namespace: " + fixtures.Namespace + "}, spec: {" + spec + "}}"))
		if err != nil {
			t.Fatal(err)
		}
		converted, err := conversion.Convert(raw, v1.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		return string(converted)
	}
	gate := onlineGate(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edited := strings.Replace(tc.job, tc.old, tc.new, 1)
			if edited == tc.job {
				t.Fatal("the edit changes nothing")
			}
			request := create(t, hub(t, edited), inOlderVersion, from(t, hub(t, tc.job)))
			response := gate.Validate(t.Context(), request)
			if diff := cmp.Diff(tc.want, causesOf(response)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			checkRefusal(t, request, response)
			const paused = "runPolicy: {suspend: true}, "
			if response := gate.Validate(t.Context(), create(t, hub(t, paused+edited), inOlderVersion, from(t, hub(t, paused+tc.job)))); !response.Allowed && name != "a null role" {
				t.Errorf("refused while the job is suspended: %v", response.Result)
			}
		})
	}
}

// TestOlderAdvice holds that warnings name fields of the version that was written.
func TestOlderAdvice(t *testing.T) {
	const more = ", env: [{name: PET_NNODES, value: a}]"
	const says = "PET_NNODES is set by Penstock in the PyTorch container pytorch, and this value is dropped: remove it or give it another name"
	gate := onlineGate(t)
	for path, mods := range map[string][]mod{
		"spec.roles[0].template":                   nil,
		"spec.pytorchReplicaSpecs.Worker.template": {inOlderVersion},
	} {
		response := gate.Validate(t.Context(), create(t, job(pytorch(role("Worker", "", more))), mods...))
		if !response.Allowed {
			t.Errorf("refused: %v", response.Result)
		}
		if want := path + ".spec.containers[0].env[0]: " + says; !slices.Contains(response.Warnings, want) {
			t.Errorf("warnings %q; want one %q", response.Warnings, want)
		}
	}
}
