package webhooks_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// TestValidateUpdate is of what was stored with faults, perhaps before their
// rules were.
func TestValidateUpdate(t *testing.T) {
	const gpus = ", resources: {limits: {nvidia.com/gpu: 16}}"
	twoMasters := role("Master", ", replicas: 2", "")
	// The pods of a job that is not suspended stay of one kind.
	paused := func(roles ...string) string {
		return strings.Replace(pytorch(roles...), "{", "{runPolicy: {suspend: true}, ", 1)
	}
	tests := map[string]struct {
		old, object string
		mods        []mod
		want        []string
	}{
		"an invariant that the stored object breaks too is tolerated": {
			old:    job(paused(twoMasters, role("Worker", "", ""))),
			object: job(paused(twoMasters, role("Worker", ", replicas: 3", ""))),
		},
		"an invariant is not tolerated where its field changes": {
			old:    job(paused(twoMasters)),
			object: job(paused(role("Master", ", replicas: 3", ""))),
			want: []string{
				"spec.roles[0].replicas: Invalid value: 3: must be 1: a PyTorch job has one master; put further pods in role Worker",
			},
		},
		"a fault stays tolerated when its role moves": {
			old:    job(paused(twoMasters, role("Worker", "", ""))),
			object: job(paused(role("Worker", ", replicas: 3", ""), twoMasters)),
		},
		"a policy that the stored object breaks too is tolerated": {
			old:    job(paused(role("Worker", "", gpus))),
			object: job(paused(role("Worker", "", gpus), role("Master", "", ""))),
		},
		"a policy is not tolerated where its field changes": {
			old:    job(pytorch(role("Worker", "", gpus))),
			object: job(pytorch(role("Worker", "", strings.Replace(gpus, "16", "32", 1)))),
			want: []string{
				"spec.roles[0].template: Forbidden: cannot change while the job is not suspended: suspend it first by runPolicy.suspend, or make a new job",
				"spec.roles[0].template.spec.containers[0].resources.limits[nvidia.com/gpu]: asks for 32 GPUs per pod; at most 8 are allowed: ask for at most 8 GPUs per pod, or use more pods (policy gpu-ceiling)",
			},
		},
		"a default that is written only now does not count as a change": {
			old:    job(paused(role("Master", ", replicas: 2", ""))),
			object: job(paused(role("Master", ", replicas: 2, restartPolicy: OnFailure", ""), role("Worker", "", ""))),
		},
		"a field that v1's schema does not allow is tolerated in v1alpha1 as long as it stays": {
			old:    job(strings.Replace(pytorch(role("Worker", "", "")), "{", "{runPolicy: {suspend: true, activeDeadlineSeconds: -1}, ", 1)),
			object: job(strings.Replace(pytorch(role("Worker", ", replicas: 3", "")), "{", "{runPolicy: {activeDeadlineSeconds: -1}, ", 1)),
			mods:   []mod{inOlderVersion},
		},
		"a label makes no fault of an old one": {
			old:    job(pytorch(twoMasters)),
			object: job(pytorch(twoMasters), "labels: {team: a}"),
		},
		"what cannot change is refused": {
			old:    job(strings.Replace(pytorch(role("Worker", "", "")), "{", "{gang: {queueName: a}, runPolicy: {managedBy: example.com/other}, ", 1)),
			object: job(strings.Replace(pytorch(role("Worker", "", "")), "{", "{gang: {queueName: b}, runPolicy: {suspend: true}, ", 1)),
			want: []string{
				`spec.runPolicy.managedBy: Invalid value: "": managedBy cannot change: make a new job instead`,
				`spec.gang.queueName: Invalid value: "b": queueName cannot change: make a new job instead`,
			},
		},
		"a stored object that does not decode tolerates nothing": {
			old:    job(pytorch(role("Worker", ", replicas: two", ""))),
			object: job(pytorch(twoMasters)),
			want: []string{
				"spec.roles[0].replicas: Invalid value: 2: must be 1: a PyTorch job has one master; put further pods in role Worker",
			},
		},
	}
	gate := onlineGate(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := create(t, tc.object, append(tc.mods, from(t, tc.old))...)
			response := gate.Validate(t.Context(), request)
			if diff := cmp.Diff(tc.want, causesOf(response)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			if response.Allowed != (len(tc.want) == 0) {
				t.Errorf("allowed is %v: %v", response.Allowed, response.Result)
			}
			checkRefusal(t, request, response)
		})
	}
}

// Whatever is stored, and whatever a policy says of it.
func TestWritesThatAreNeverBlocked(t *testing.T) {
	bad := pytorch(role("Boss", ", restartPolicy: Always", ", resources: {limits: {nvidia.com/gpu: 99}}"))
	worse := pytorch(role("Boss", ", restartPolicy: Always", ", resources: {limits: {nvidia.com/gpu: 100}}"))
	broken := onlineOptions(t)
	broken.Loaded = func() bool { return false }
	tests := map[string]*admissionv1.AdmissionRequest{
		"a write of status": create(t, job(worse), from(t, job(bad)), func(request *admissionv1.AdmissionRequest) {
			request.SubResource = "status"
		}),
		"a write of finalizers":                 create(t, job(bad, "finalizers: [a.b/c]"), from(t, job(bad))),
		"a storage migration":                   create(t, job(bad), from(t, job(bad))),
		"any write while it is being deleted":   create(t, job(worse), from(t, job(bad, `deletionTimestamp: "2026-03-01T12:00:00Z"`))),
		"a write of a policy being deleted":     create(t, policy(`{rego: "package b"}`), from(t, strings.Replace(policy(`{rego: "package a"}`), "name: p", `name: p, deletionTimestamp: "2026-03-01T12:00:00Z"`, 1))),
		"the removal of a policy":               create(t, policy(`{rego: nonsense}`), deleted),
		"a finalizer of a policy with old Rego": create(t, policy(`{rego: nonsense}`), from(t, strings.Replace(policy(`{rego: nonsense}`), "name: p", "name: p, finalizers: [a.b/c]", 1))),
	}
	gate := gateOf(t, broken)
	for name, request := range tests {
		t.Run(name, func(t *testing.T) {
			response := gate.Validate(t.Context(), request)
			if !response.Allowed {
				t.Errorf("refused: %v", response.Result)
			}
			checkRefusal(t, request, response)
		})
	}
}

func TestDeleteIsJudgedByPoliciesOnly(t *testing.T) {
	options := onlineOptions(t)
	engine, err := engineOf(&v1.WorkloadPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "keep", Generation: 1},
		Spec: v1.WorkloadPolicySpec{
			Match: v1.PolicyMatch{
				Resources:  []v1.PolicyResources{{Group: v1.GroupName, Kinds: []string{v1.TrainingJobKind}}},
				Operations: []v1.PolicyOperation{v1.OperationDelete},
			},
			Rego: "package keep\nviolation contains {\"msg\": \"is kept\"} if input.object.metadata.labels.keep == \"yes\"\n",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	options.Engine = engine
	gate := gateOf(t, options)
	bad := pytorch(role("Boss", "", ""))
	if response := gate.Validate(t.Context(), create(t, job(bad), deleted)); !response.Allowed {
		t.Errorf("an invalid job cannot be deleted: %v", response.Result)
	}
	kept := create(t, job(bad, "labels: {keep: 'yes'}"), deleted)
	response := gate.Validate(t.Context(), kept)
	if diff := cmp.Diff([]string{"spec: is kept (policy keep)"}, causesOf(response)); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	checkRefusal(t, kept, response)
	want := map[string]string{"policies": "keep", "snapshot-digest": engine.Snapshot().Digest(), "violations": "is kept (policy keep)"}
	if diff := cmp.Diff(want, response.AuditAnnotations); diff != "" {
		t.Errorf("audit annotations (-want +got):\n%s", diff)
	}
}

// No entry of the API server has the deletions of our own kinds, so that conditions
// on them are for the gate to evaluate, those on what users may do included.
func TestConditionsOnOwnDeletions(t *testing.T) {
	conditional := func(expression string) *v1.WorkloadPolicy {
		return policyOn("keep", v1.GroupName, v1.TrainingJobKind, `input.object.metadata.name; msg := "is kept"; field := "metadata.name"`,
			operations(v1.OperationDelete), func(spec *v1.WorkloadPolicySpec) {
				spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "when", Expression: expression}}
			})
	}
	mayBypass := authorizer.AuthorizerFunc(func(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
		if asked.GetUser().GetName() == "jo" && asked.GetVerb() == "bypass" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	const unlessBypassed = "!authorizer.group('').resource('pods').check('bypass').allowed()"
	kept := "metadata.name: is kept (policy keep)"
	tests := map[string]struct {
		expression string
		user       string
		authorizer authorizer.Authorizer
		namespace  string
		want       []string
	}{
		"the condition holds":                   {expression: "object.metadata.labels.keep == 'yes'", want: []string{kept}},
		"it does not":                           {expression: "object.metadata.labels.keep == 'no'"},
		"it fails":                              {expression: "object.metadata.labels.kept == 'yes'", want: []string{"no such key: kept"}},
		"the user may pass":                     {expression: unlessBypassed, user: "jo", authorizer: mayBypass},
		"the user may not":                      {expression: unlessBypassed, user: "mo", authorizer: mayBypass, want: []string{kept}},
		"nobody knows what the user may do":     {expression: unlessBypassed, user: "jo", want: []string{"what the user may do"}},
		"what is conditional is not asked here": {expression: "true", namespace: "kube-system"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			engine, err := engineOf(conditional(tc.expression))
			if err != nil {
				t.Fatal(err)
			}
			options := onlineOptions(t)
			options.Engine, options.Authorizer, options.Reach = engine, tc.authorizer, &policies.Reach{Unasked: []string{"kube-system"}}
			request := create(t, job(pytorch(role("Worker", "", "")), "labels: {keep: 'yes'}"), deleted)
			request.UserInfo.Username = tc.user
			if tc.namespace != "" {
				request.Namespace = tc.namespace
			}
			causes := causesOf(gateOf(t, options).Validate(t.Context(), request))
			if len(causes) != len(tc.want) {
				t.Fatalf("got %q, want %q", causes, tc.want)
			}
			for i, want := range tc.want {
				if !strings.Contains(causes[i], want) {
					t.Errorf("got %q, want %q", causes[i], want)
				}
			}
		})
	}
}

// scaleOf asks for another count by the scale subresource.
func scaleOf(name string, replicas string, mods ...mod) *admissionv1.AdmissionRequest {
	request := &admissionv1.AdmissionRequest{
		UID:         "2",
		Kind:        metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"},
		RequestKind: &metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"},
		Resource:    metav1.GroupVersionResource(v1.GroupVersion.WithResource("trainingjobs")),
		SubResource: "scale", Operation: admissionv1.Update, Name: name, Namespace: fixtures.Namespace,
		Object: runtime.RawExtension{Raw: []byte(`{"spec": {"replicas": ` + replicas + `}}`)},
	}
	for _, mod := range mods {
		mod(request)
	}
	return request
}

func TestScaleIsJudgedOnTheParent(t *testing.T) {
	throughOlderVersion := func(request *admissionv1.AdmissionRequest) {
		resource := request.Resource
		resource.Version = "v1alpha1"
		request.RequestResource = &resource
	}
	elastic := strings.Replace(pytorch(role("Worker", ", replicas: 2", ", resources: {limits: {nvidia.com/gpu: 8}}")),
		"{", "{elastic: {replicas: 2, minReplicas: 1, maxReplicas: 100}, ", 1)
	fixed := strings.Replace(elastic, "elastic: {replicas: 2, minReplicas: 1, maxReplicas: 100}, ", "", 1)
	options := onlineOptions(t)
	options.Cluster = world{"elastic": toJSON(t, job(elastic)), "fixed": toJSON(t, job(fixed)), "hollow": "{}"}
	gate := gateOf(t, options)
	tests := map[string]struct {
		request  *admissionv1.AdmissionRequest
		want     []string
		wantCode int32
	}{
		"a count within the bounds is admitted": {request: scaleOf("elastic", "10")},
		"a count beyond the bounds is refused at the field that scale writes": {
			request: scaleOf("elastic", "101"), wantCode: http.StatusUnprocessableEntity,
			want: []string{
				"spec.elastic.replicas: Invalid value: 101: must be at most maxReplicas, which is 100: lower it or raise maxReplicas",
				"spec.elastic.replicas: asks for 808 GPUs in total; at most 512 are allowed: use fewer pods or fewer GPUs per pod: 296 too many (policy gpu-ceiling)",
			},
		},
		"a count that was written through v1alpha1 is reported in v1alpha1": {
			request: scaleOf("elastic", "101", throughOlderVersion), wantCode: http.StatusUnprocessableEntity,
			want: []string{
				"spec.pytorchReplicaSpecs.Worker.replicas: Invalid value: 101: must be at most maxReplicas, which is 100: lower it or raise maxReplicas",
				"spec.pytorchReplicaSpecs.Worker.replicas: asks for 808 GPUs in total; at most 512 are allowed: use fewer pods or fewer GPUs per pod: 296 too many (policy gpu-ceiling)",
			},
		},
		"a policy that judges scaling refuses the count": {
			request: scaleOf("elastic", "65"), wantCode: http.StatusUnprocessableEntity,
			want: []string{
				"spec.elastic.replicas: asks for 520 GPUs in total; at most 512 are allowed: use fewer pods or fewer GPUs per pod: 8 too many (policy gpu-ceiling)",
			},
		},
		"a job that is not elastic has no count to change": {
			request:  scaleOf("fixed", "3"),
			wantCode: http.StatusUnprocessableEntity,
			want: []string{
				"spec.elastic: is not set, so there is no count to scale: set elastic, or change the replicas of a role, which takes a suspended job",
			},
		},
		"a job that is gone is an error of the call": {
			request: scaleOf("gone", "3"), wantCode: http.StatusInternalServerError,
		},
		"a scale that does not decode is an error of the call": {
			request: scaleOf("elastic", `"three"`), wantCode: http.StatusInternalServerError,
		},
		"an object without a spec is an error of the call": {
			request: scaleOf("hollow", "3"), wantCode: http.StatusInternalServerError,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			response := gate.Validate(t.Context(), tc.request)
			if diff := cmp.Diff(tc.want, causesOf(response)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			if response.Allowed != (tc.wantCode == 0) || !response.Allowed && response.Result.Code != tc.wantCode {
				t.Errorf("got %v %v, want code %d", response.Allowed, response.Result, tc.wantCode)
			}
			checkRefusal(t, tc.request, response)
		})
	}
}

// What only v1 can say has to fit into an annotation when it is read in v1alpha1.
func TestTooMuchThatOnlyV1CanSay(t *testing.T) {
	// There, roles have unique names.
	large := job(pytorch(role("Worker", "", ""), role("Worker", "", ", args: ["+strings.Repeat("x", 70_000)+"]")))
	gate := onlineGate(t)
	response := gate.Validate(t.Context(), create(t, large))
	if causes := causesOf(response); !strings.HasPrefix(causes[0], "spec: Too long: holds ") {
		t.Errorf("got causes %v, want one that says how much", causes)
	}
	labelled := strings.Replace(large, "name: a,", "name: a, labels: {team: a},", 1)
	if response := gate.Validate(t.Context(), create(t, labelled, from(t, large))); !response.Allowed {
		t.Errorf("what is stored cannot be labelled: %v", response.Result)
	}
}
