package webhooks_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// causesOf gives what a response says, one line a cause.
func causesOf(response *admissionv1.AdmissionResponse) []string {
	if response.Result == nil || response.Result.Details == nil {
		return nil
	}
	var lines []string
	for _, cause := range response.Result.Details.Causes {
		lines = append(lines, cause.Field+": "+cause.Message)
	}
	return lines
}

func TestValidateCreate(t *testing.T) {
	worker := role("Worker", "", "")
	tests := map[string]struct {
		object       string
		mods         []mod
		want         []string
		wantWarnings []string
	}{
		"a job that breaks nothing is admitted": {object: job(pytorch(worker))},
		"a job made in v1alpha1 that breaks nothing is admitted": {
			object: job(pytorch(worker)), mods: []mod{inOlderVersion},
		},
		"every fault is a cause, of invariants and of policies": {
			object: job(pytorch(
				role("Master", ", restartPolicy: Always, replicas: 2", ""),
				role("Boss", "", ""),
				role("Worker", "", ", resources: {limits: {nvidia.com/gpu: 16}}"),
			)),
			want: []string{
				`spec.roles[1].name: Invalid value: "Boss": is no role of PyTorch: use Master or Worker`,
				"spec.roles[0].replicas: Invalid value: 2: must be 1: a PyTorch job has one master; put further pods in role Worker",
				"spec.roles[2].template.spec.containers[0].resources.limits[nvidia.com/gpu]: asks for 16 GPUs per pod; at most 8 are allowed: ask for at most 8 GPUs per pod, or use more pods (policy gpu-ceiling)",
				"spec.roles[0].restartPolicy: restarts Master even when it has succeeded, so the job never ends: write OnFailure or Never instead of Always (policy restart-policy)",
			},
		},
		"faults have the paths of the version that was written": {
			object: job(pytorch(
				role("Worker", "", ", resources: {limits: {nvidia.com/gpu: 16}}"),
				role("Master", ", restartPolicy: Always, replicas: 2", ""),
			)),
			mods: []mod{inOlderVersion},
			want: []string{
				"spec.pytorchReplicaSpecs.Master.replicas: Invalid value: 2: must be 1: a PyTorch job has one master; put further pods in role Worker",
				"spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].resources.limits[nvidia.com/gpu]: asks for 16 GPUs per pod; at most 8 are allowed: ask for at most 8 GPUs per pod, or use more pods (policy gpu-ceiling)",
				"spec.pytorchReplicaSpecs.Master.restartPolicy: restarts Master even when it has succeeded, so the job never ends: write OnFailure or Never instead of Always (policy restart-policy)",
			},
		},
		"what v1's schema refuses is refused in v1alpha1 as well": {
			object: job(strings.Replace(pytorch(role("Worker", ", replicas: -1, restartPolicy: Sometimes", ", imagePullPolicy: 3")), "{", "{runPolicy: {backoffLimit: -1}, ", 1)),
			mods:   []mod{inOlderVersion},
			want: []string{
				"spec.pytorchReplicaSpecs.Worker.replicas: Invalid value: -1: must be at least 0: raise it, or leave the field out",
				`spec.pytorchReplicaSpecs.Worker.restartPolicy: Unsupported value: "Sometimes": must be Always, OnFailure, Never or ExitCode: write one of these, or leave it out`,
				`spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].imagePullPolicy: Invalid value: must be of type string, and is of type integer: put it in quotes`,
				"spec.runPolicy.backoffLimit: Invalid value: -1: must be at least 0: raise it, or leave the field out",
			},
		},
		"what v1's schema does not know is refused in v1alpha1": {
			object: job(pytorch(role("Worker", "", ", imge: b"))),
			mods:   []mod{inOlderVersion},
			want: []string{
				`spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].imge: Forbidden: unknown field, did you mean "image"?`,
			},
		},
		"an object that does not decode is refused, not an error": {
			object: job(pytorch(role("Worker", ", replicas: two", ""))),
			want: []string{
				"spec.roles[0].replicas: Invalid value: cannot be a JSON string: write a value of the field's type",
			},
		},
		"a value that its type cannot read is refused": {
			object: job(pytorch(role("Worker", "", ", resources: {limits: {nvidia.com/gpu: eight}}"))),
			want: []string{
				"spec.roles[0].template.spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
				"spec.roles[0].template.spec.containers[0].resources.limits[nvidia.com/gpu]: asks for eight of nvidia.com/gpu, which comes in whole devices only: ask for a whole number; to share a device use a MIG profile or a shared resource (policy gpu-requests)",
			},
		},
		"a job that only warns is admitted with a warning": {
			object:       job(pytorch(role("Worker", ", restartPolicy: ExitCode", ""))),
			wantWarnings: []string{"spec.runPolicy.backoffLimit: replaces killed pods of Worker for ever: restartPolicy ExitCode has no bound: set a bound, for example 3 (policy exit-code-backoff)"},
		},
		"a field that only v1 has is reported in the annotation that keeps it": {
			object: job(pytorch(role("Worker", ", topology: {required: Not-A-Key/}", ""))),
			mods:   []mod{inOlderVersion},
			want: []string{
				`metadata.annotations[penstock.dev/restore]: Invalid value: "Not-A-Key/": must be the key of a node label: write it as topology.kubernetes.io/zone`,
				"metadata.annotations[penstock.dev/restore]: Not-A-Key/ is not a topology of this fleet: use one of cloud.google.com/gce-topology-block, cloud.google.com/gce-topology-host, cloud.google.com/gce-topology-subblock, cloud.google.com/gke-nodepool, cloud.provider.com/topology-block, cloud.provider.com/topology-rack, kubernetes.io/hostname, network.topology.nvidia.com/accelerator, network.topology.nvidia.com/block, network.topology.nvidia.com/datacenter, network.topology.nvidia.com/spine, nvidia.com/gpu.clique, topology.k8s.aws/network-node-layer-1, topology.k8s.aws/network-node-layer-2, topology.k8s.aws/network-node-layer-3, topology.kubernetes.io/block, topology.kubernetes.io/rack, topology.kubernetes.io/region, topology.kubernetes.io/zone (policy topology-keys)",
			},
		},
		"a policy that does not compile is refused with line and column": {
			object: policy(`{match: {resources: [{group: penstock.dev, kinds: [TrainingJob]}]}, rego: "package a\nviolation contains x if {\n\tx := http.send({})\n}\n"}`),
			want: []string{
				"spec.rego: Invalid value: 3:7: rego_type_error: builtin http.send is not allowed in a policy",
			},
		},
		"a policy without a rule is refused": {
			object: policy(`{match: {resources: [{group: penstock.dev, kinds: [TrainingJob]}]}, rego: "package a\n"}`),
			want: []string{
				"spec.rego: Invalid value: 1:1: rego_compile_error: there is no rule violation (or deny, or warn)",
			},
		},
	}
	gate := onlineGate(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := create(t, tc.object, tc.mods...)
			response := gate.Validate(t.Context(), request)
			if diff := cmp.Diff(tc.want, causesOf(response)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, response.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			checkRefusal(t, request, response)
		})
	}
}

func policy(spec string) string {
	return "{apiVersion: penstock.dev/v1, kind: WorkloadPolicy, metadata: {name: p}, spec: " + spec + "}"
}

// checkRefusal holds what is so of every answer.
func checkRefusal(t *testing.T, request *admissionv1.AdmissionRequest, response *admissionv1.AdmissionResponse) {
	t.Helper()
	if response.UID != request.UID {
		t.Errorf("got uid %q, want %q", response.UID, request.UID)
	}
	if response.Allowed {
		if response.Result != nil {
			t.Errorf("admitted, and says %v", response.Result)
		}
		return
	}
	result := response.Result
	if result == nil || result.Status != metav1.StatusFailure || result.Message == "" {
		t.Fatalf("refused without a reason: %+v", result)
	}
	if result.Reason != metav1.StatusReasonInvalid {
		return
	}
	if result.Code != http.StatusUnprocessableEntity || result.Details == nil || len(result.Details.Causes) == 0 {
		t.Fatalf("refused as Invalid by %+v, want 422 with causes", result)
	}
	for _, cause := range result.Details.Causes {
		if cause.Field == "" || cause.Type == "" || cause.Message == "" {
			t.Errorf("a cause says too little: %+v", cause)
		}
		if !strings.Contains(result.Message, cause.Field+": "+cause.Message) {
			t.Errorf("the message does not repeat %+v:\n%s", cause, result.Message)
		}
	}
}

func TestRefusalNamesTheObject(t *testing.T) {
	response := onlineGate(t).Validate(t.Context(), create(t, job(pytorch(role("Boss", "", "")))))
	want := &metav1.StatusDetails{Group: "penstock.dev", Kind: "TrainingJob", Name: "a"}
	if diff := cmp.Diff(want, response.Result.Details, cmpopts.IgnoreFields(metav1.StatusDetails{}, "Causes")); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	if prefix := `TrainingJob.penstock.dev "a" is invalid: `; !strings.HasPrefix(response.Result.Message, prefix) {
		t.Errorf("got message %q, want it to begin with %q", response.Result.Message, prefix)
	}
}
