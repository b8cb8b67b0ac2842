package webhooks_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/test/fixtures"
	"github.com/penstock-dev/penstock/webhooks"
)

// policyOn is a policy on kinds of a group, with a rule's body.
func policyOn(name, group, kind, body string, mods ...func(*v1.WorkloadPolicySpec)) *v1.WorkloadPolicy {
	policy := &v1.WorkloadPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.Match.Resources = []v1.PolicyResources{{Group: group, Kinds: []string{kind}}}
	policy.Spec.Rego = "package p\nviolation contains {\"msg\": msg, \"field\": field} if {\n" + body + "\n}\n"
	for _, mod := range mods {
		mod(&policy.Spec)
	}
	return policy
}

func subresources(names ...string) func(*v1.WorkloadPolicySpec) {
	return func(spec *v1.WorkloadPolicySpec) { spec.Match.Resources[0].Subresources = names }
}

func operations(names ...v1.PolicyOperation) func(*v1.WorkloadPolicySpec) {
	return func(spec *v1.WorkloadPolicySpec) { spec.Match.Operations = names }
}

// selecting is of the namespaces with a label, and fails open.
func selecting(gpus string) func(*v1.WorkloadPolicySpec) {
	return func(spec *v1.WorkloadPolicySpec) {
		spec.FailurePolicy = v1.FailurePolicyIgnore
		spec.Match.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"gpus": gpus}}
	}
}

func inNamespace(name string) mod {
	return func(request *admissionv1.AdmissionRequest) { request.Namespace = name }
}

func when(expression string) func(*v1.WorkloadPolicySpec) {
	return func(spec *v1.WorkloadPolicySpec) {
		spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "when", Expression: expression}}
	}
}

// of makes a request one for another resource and subresource.
func of(group, resource, subresource string) mod {
	return func(request *admissionv1.AdmissionRequest) {
		request.Resource = metav1.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
		request.SubResource = subresource
	}
}

// as makes the request one for a kind.
func as(group, version, kind string) mod {
	return func(request *admissionv1.AdmissionRequest) {
		request.Kind = metav1.GroupVersionKind{Group: group, Version: version, Kind: kind}
		request.RequestKind = nil
	}
}

func connected(request *admissionv1.AdmissionRequest) { request.Operation = admissionv1.Connect }

func judging(t *testing.T, objects world, all ...*v1.WorkloadPolicy) *webhooks.Gate {
	t.Helper()
	engine, err := engineOf(all...)
	if err != nil {
		t.Fatal(err)
	}
	options := onlineOptions(t)
	options.Engine, options.Cluster = engine, objects
	return gateOf(t, options)
}

const pod = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: " + fixtures.Namespace + ", labels: {team: blue}}, spec: {nodeName: n, containers: [{name: a, image: b}]}}"

func TestJudgeAnyKind(t *testing.T) {
	asPod, pods := as("", "v1", "Pod"), of("", "pods", "")
	named := "msg := sprintf(\"%s %s\", [input.operation, input.object.metadata.name]); field := \"spec.nodeName\""
	tests := map[string]struct {
		policies []*v1.WorkloadPolicy
		world    world
		object   string
		mods     []mod
		entry    policies.Entry
		want     []string
	}{
		"a kind that a policy names": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "", "Pod", named)}, object: pod, mods: []mod{asPod, pods}, entry: policies.EntryFail,
			want: []string{"spec.nodeName: CREATE a (policy p)"},
		},
		"a namespace has the labels that are written": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "", "Namespace", named, selecting("team")), policyOn("q", "", "Namespace", named, selecting("lab"))},
			object:   "{apiVersion: v1, kind: Namespace, metadata: {name: made, labels: {gpus: team}}}",
			mods:     []mod{as("", "v1", "Namespace"), of("", "namespaces", ""), inNamespace("made")},
			entry:    policies.EntryIgnore,
			want:     []string{"spec.nodeName: CREATE made (policy p)"},
		},
		"a kind that none names": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "", "Node", named)}, object: pod, mods: []mod{asPod, pods}, entry: policies.EntryFail,
		},
		"a deletion sees what is deleted": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "", "Pod", named, operations(v1.OperationDelete))}, object: pod, mods: []mod{asPod, pods, deleted}, entry: policies.EntryFail,
			want: []string{"spec.nodeName: DELETE a (policy p)"},
		},
		"a subresource is judged where the policy names it": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "", "Pod", named, subresources("resize"))}, object: pod, mods: []mod{asPod, of("", "pods", "resize")}, entry: policies.EntryFail,
			want: []string{"spec.nodeName: CREATE a (policy p)"},
		},
		"and not where it does not": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "", "Pod", named, subresources("resize"))}, object: pod, mods: []mod{asPod, pods}, entry: policies.EntryFail,
		},
		"a subresource of another kind is its parent's": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "", "Pod", `msg := input.object.command[0]; field := "command"`, subresources("exec"), operations(v1.OperationConnect))},
			object:   "{apiVersion: v1, kind: PodExecOptions, command: [sh]}", mods: []mod{as("", "v1", "PodExecOptions"), of("", "pods", "exec"), connected}, entry: policies.EntryFail,
			want: []string{"command: sh (policy p)"},
		},
		"a subresource of an unknown resource is answered by the failure policy": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "", "Widget", named, subresources("spin"))}, object: pod, mods: []mod{as("", "v1", "Spin"), of("", "widgets", "spin")}, entry: policies.EntryFail,
			want: []string{"failed to find the kind of widgets: there is no such resource"},
		},
		"which lets it pass under Ignore": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "", "Widget", named, subresources("spin"))}, object: pod, mods: []mod{as("", "v1", "Spin"), of("", "widgets", "spin")}, entry: policies.EntryIgnore,
		},
		"a scale is judged on what is scaled": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "apps", "Deployment", `input.object.spec.replicas > input.oldObject.spec.replicas; msg := input.object.spec.paused; field := "spec.replicas"`, subresources("scale"))},
			world:    world{"a": `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":1,"paused":"yes"}}`},
			object:   "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: a, namespace: " + fixtures.Namespace + "}, spec: {replicas: 5}}",
			mods:     []mod{as("autoscaling", "v1", "Scale"), of("apps", "deployments", "scale"), from(t, "{spec: {replicas: 1}}")}, entry: policies.EntryFail,
			want: []string{"spec.replicas: yes (policy p)"},
		},
		"conditions that hold are the entry's": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "", "Pod", named, when("true")), policyOn("q", "", "Pod", named)}, object: pod, mods: []mod{asPod, pods},
			entry: policies.EntryOf(&policyOn("p", "", "Pod", named, when("true")).Spec),
			want:  []string{"spec.nodeName: CREATE a (policy p)"},
		},
		"an entry without conditions leaves those with to theirs": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "", "Pod", named, when("true")), policyOn("q", "", "Pod", named)}, object: pod, mods: []mod{asPod, pods}, entry: policies.EntryFail,
			want: []string{"spec.nodeName: CREATE a (policy q)"},
		},
		"an entry that is not known yet asks all of its failure policy": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "", "Pod", named, when("true")), policyOn("q", "", "Pod", named)}, object: pod, mods: []mod{asPod, pods}, entry: "fail-12345678",
			want: []string{"spec.nodeName: CREATE a (policy p)", "spec.nodeName: CREATE a (policy q)"},
		},
		"our own kinds are judged once": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "*", "*", named)}, object: job(pytorch(role("Worker", "", ""))), entry: policies.EntryFail,
		},
		"unless conditions are handed to the API server": {
			policies: []*v1.WorkloadPolicy{policyOn("p", v1.GroupName, v1.TrainingJobKind, named, when("true"))}, object: job(pytorch(role("Worker", "", ""))),
			entry: policies.EntryOf(&policyOn("p", "", "Pod", named, when("true")).Spec), mods: []mod{of(v1.GroupName, "trainingjobs", "")},
			want: []string{"spec.nodeName: CREATE a (policy p)"},
		},
		"finalizers and status of any kind are nobody's business": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "", "Pod", named)}, object: pod, entry: policies.EntryFail,
			mods: []mod{asPod, pods, from(t, strings.Replace(pod, "metadata: {", "status: {phase: Running}, metadata: {finalizers: [example.com/a], ", 1))},
		},
		"labels are": {
			policies: []*v1.WorkloadPolicy{policyOn("p", "", "Pod", "input.object.metadata.labels.team; msg := \"labelled\"; field := \"metadata.labels\"")}, object: pod, entry: policies.EntryFail,
			mods: []mod{asPod, pods, from(t, strings.Replace(pod, ", labels: {team: blue}", "", 1))},
			want: []string{"metadata.labels: labelled (policy p)"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			gate := judging(t, tc.world, tc.policies...)
			response := gate.Judge(t.Context(), create(t, tc.object, tc.mods...), tc.entry)
			got := causesOf(response)
			if !response.Allowed && got == nil {
				got = []string{response.Result.Message}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

const upstreamJob = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: a, namespace: ` + fixtures.Namespace + `},
  spec: {pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: a, resources: {limits: {nvidia.com/gpu: 9}}}]}}}}}}`

func TestJudgeUpstreamKinds(t *testing.T) {
	const body = `some i, role in input.object.spec.roles
	role.replicas > 1
	input.object.kind == "TrainingJob"
	msg := "too many"
	field := sprintf("spec.roles[%d].replicas", [i])`
	judge := func(spec *v1.WorkloadPolicySpec) { spec.UpstreamKinds = v1.UpstreamKindsJudge }
	mods := []mod{as("kubeflow.org", "v1", "PyTorchJob"), of("kubeflow.org", "pytorchjobs", "")}
	own := policyOn("own", v1.GroupName, v1.TrainingJobKind, body)
	both := policyOn("both", v1.GroupName, v1.TrainingJobKind, body, judge)
	theirs := policyOn("theirs", "kubeflow.org", "PyTorchJob", `input.object.spec.pytorchReplicaSpecs.Worker.replicas > 1; msg := "theirs"; field := "spec.pytorchReplicaSpecs.Worker.replicas"`)
	gate := judging(t, nil, own, both, theirs)

	response := gate.Judge(t.Context(), create(t, upstreamJob, mods...), policies.EntryFail)
	want := []string{"spec.pytorchReplicaSpecs.Worker.replicas: theirs (policy theirs)", "spec.pytorchReplicaSpecs.Worker.replicas: too many (policy both)"}
	if diff := cmp.Diff(want, causesOf(response)); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	if got := response.AuditAnnotations["policies"]; got != "both,theirs" {
		t.Errorf("policies %q were asked", got)
	}
	// A job that was there before and does not get worse is let through.
	update := create(t, upstreamJob, append(mods, from(t, strings.Replace(upstreamJob, "image: a", "image: b", 1)))...)
	if response := gate.Judge(t.Context(), update, policies.EntryFail); len(causesOf(response)) != 0 {
		t.Errorf("refused: %v", causesOf(response))
	}
	broken := create(t, "{}", mods...)
	broken.Object = runtime.RawExtension{Raw: []byte(`{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","spec":7}`)}
	if response := gate.Judge(t.Context(), broken, policies.EntryFail); response.Result != nil && response.Result.Code >= 500 {
		t.Errorf("an ill-typed spec is a fault of ours: %v", response.Result)
	}
}

// An object that loses its exemption has to conform; one that never had one may
// keep its fault.
func TestExemptionsThatAreDropped(t *testing.T) {
	const body = `input.object.data.size == "large"; msg := "must be small"; field := "data.size"`
	object := func(labels string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: " + fixtures.Namespace + ", labels: {" + labels + "}}, data: {size: large}}"
	}
	unless := when("!('exempt' in object.metadata.?labels.orValue({}))")
	selected := func(spec *v1.WorkloadPolicySpec) {
		spec.Match.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "exempt", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	}
	for name, exemption := range map[string]func(*v1.WorkloadPolicySpec){"a condition": unless, "a selector": selected} {
		policy := policyOn("sizes", "", "ConfigMap", body, exemption)
		gate, entry := judging(t, nil, policy), policies.EntryOf(&policy.Spec)
		mods := []mod{as("", "v1", "ConfigMap"), of("", "configmaps", "")}
		for old, want := range map[string]bool{"": true, "exempt: 'yes'": false} {
			request := create(t, object("other: 'yes'"), append(slices.Clone(mods), from(t, object(old)))...)
			if response := gate.Judge(t.Context(), request, entry); response.Allowed != want {
				t.Errorf("%s, of an object with labels %q: allowed is %t: %v", name, old, response.Allowed, causesOf(response))
			}
		}
	}
}

// A scale of an upstream job is judged on the job, where its operator scales it.
func TestJudgeScaledUpstreamKinds(t *testing.T) {
	const body = `some i, role in input.object.spec.roles
	role.name == "Worker"
	role.replicas > 1
	msg := "too many"
	field := sprintf("spec.roles[%d].replicas", [i])`
	for kind, specs := range map[string]string{"PyTorchJob": "pytorchReplicaSpecs", "JAXJob": "jaxReplicaSpecs", "PaddleJob": "paddleReplicaSpecs"} {
		stored := strings.NewReplacer("PyTorchJob", kind, "pytorchReplicaSpecs", specs, "replicas: 2", "replicas: 1").Replace(upstreamJob)
		gate := judging(t, world{"a": toJSON(t, stored)}, policyOn("both", v1.GroupName, v1.TrainingJobKind, body, subresources("scale"),
			func(spec *v1.WorkloadPolicySpec) { spec.UpstreamKinds = v1.UpstreamKindsJudge }))
		scale := create(t, "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: a, namespace: "+fixtures.Namespace+"}, spec: {replicas: 5}}",
			as("autoscaling", "v1", "Scale"), of("kubeflow.org", strings.ToLower(kind)+"s", "scale"), from(t, "{spec: {replicas: 1}}"))
		want := []string{"spec." + specs + ".Worker.replicas: too many (policy both)"}
		if diff := cmp.Diff(want, causesOf(gate.Judge(t.Context(), scale, policies.EntryFail))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// The deletion of a collection comes without names, one request for each object.
func TestDeletionsOfCollectionsAreNamed(t *testing.T) {
	request := func(name string) *admissionv1.AdmissionRequest {
		return &admissionv1.AdmissionRequest{
			UID: "1", Operation: admissionv1.Delete, Namespace: "team", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			OldObject: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"team"}}`)},
		}
	}
	gate := judging(t, nil, policyOn("kept", "", "ConfigMap", `input.object.metadata.name; msg := "is kept"; field := "metadata.name"`,
		operations(v1.OperationDelete), func(spec *v1.WorkloadPolicySpec) {
			spec.Exceptions = []v1.PolicyException{{Namespaces: []string{"team"}, Names: []string{"old"}, Until: metav1.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), Reason: "r"}}
		}))
	response := gate.Judge(t.Context(), request("a"), policies.EntryFail)
	if response.Allowed || !strings.HasPrefix(response.Result.Message, `ConfigMap "a" is invalid: `) || response.Result.Details.Name != "a" {
		t.Errorf("the answer does not name the object: %+v", response.Result)
	}
	if response := gate.Judge(t.Context(), request("old"), policies.EntryFail); !response.Allowed {
		t.Errorf("the exception of the name does not count: %+v", response.Result)
	}
}

// TestWarningsAreInOneLine: what a rule quotes from an object must not keep its
// warning from being shown.
func TestWarningsAreInOneLine(t *testing.T) {
	gate := judging(t, nil, policyOn("p", "", "ConfigMap", `msg := sprintf("says %s", [input.object.data.a]); field := "data.a"`, warns))
	request := create(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: `+fixtures.Namespace+`}, data: {a: "x\ny\tz"}}`,
		as("", "v1", "ConfigMap"), of("", "configmaps", ""))
	response := gate.Judge(t.Context(), request, policies.EntryFail)
	want := []string{`data.a: says x y z (policy p)`}
	if diff := cmp.Diff(want, response.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
