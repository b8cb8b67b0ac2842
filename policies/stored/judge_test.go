package stored

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/test/fixtures"
)

func TestStoredObjectsAreJudgedAsRequestsWouldBe(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"team"}}`
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	tests := map[string]struct {
		rego     string
		mods     []func(*v1.WorkloadPolicySpec)
		object   string
		resource schema.GroupVersionResource
		// want are fields of violations, or what is missing.
		want    []string
		missing policies.Missing
	}{
		"a pod":                     {mods: []func(*v1.WorkloadPolicySpec){on("", "Pod")}, want: []string{"spec.a"}},
		"that the policy is not of": {mods: []func(*v1.WorkloadPolicySpec){on("apps", "Deployment")}},
		"of an excluded namespace": {
			mods:   []func(*v1.WorkloadPolicySpec){on("", "Pod")},
			object: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"kube-system"}}`,
		},
		"that is being deleted": {
			mods:   []func(*v1.WorkloadPolicySpec){on("", "Pod")},
			object: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"team","deletionTimestamp":"2026-01-01T00:00:00Z"}}`,
		},
		"a namespace, in itself": {
			mods: []func(*v1.WorkloadPolicySpec){on("", "Namespace"), in("team")}, object: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n","labels":{"gpus":"team"}}}`,
			resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, want: []string{"spec.a"},
		},
		"a namespace that is not selected": {
			mods: []func(*v1.WorkloadPolicySpec){on("", "Namespace"), in("team")}, object: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`,
			resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
		},
		"a namespace that is excluded": {
			mods: []func(*v1.WorkloadPolicySpec){on("", "Namespace")}, object: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system"}}`,
			resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
		},
		"a node, which is never asked about": {
			mods: []func(*v1.WorkloadPolicySpec){on("", "Node")}, object: `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`,
			resource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"},
		},
		"conditions that hold":    {mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), with("object.metadata.name == 'p'")}, want: []string{"spec.a"}},
		"conditions that do not":  {mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), with("object.metadata.name == 'q'")}},
		"conditions of a user":    {mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), with("request.userInfo.username == 'a'")}, missing: policies.MissingConditions},
		"conditions on updates":   {mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), with("request.operation == 'UPDATE'")}, want: []string{"spec.a"}},
		"conditions on creations": {mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), with("request.operation == 'CREATE'")}, want: []string{"spec.a"}},
		"conditions on a change":  {mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), with("request.operation == 'UPDATE' && object != oldObject")}},
		"conditions on deletions": {mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), with("request.operation == 'DELETE'")}},
		"a rule that spares updates": {
			rego: "package a\nviolation[{\"msg\": \"no\", \"field\": \"spec.a\"}] { not is_update(input.review) }\nis_update(review) { review.operation == \"UPDATE\" }\n",
			mods: []func(*v1.WorkloadPolicySpec){on("", "Pod")}, want: []string{"spec.a"},
		},
		"a rule on updates, of which nothing else is judged": {
			rego: "package a\nviolation contains {\"msg\": \"no\", \"field\": \"spec.a\"} if input.object == input.oldObject\n",
			mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), updating}, want: []string{"spec.a"},
		},
		"conditions that exclude what is never stored": {
			mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), with("request.operation != 'DELETE'")}, want: []string{"spec.a"},
		},
		"an upstream kind, by its own paths": {
			rego:   "package a\nviolation contains {\"msg\": \"no\", \"field\": sprintf(\"spec.roles[%d].replicas\", [i])} if input.object.spec.roles[i].name == \"Worker\"\n",
			mods:   []func(*v1.WorkloadPolicySpec){on(v1.GroupName, v1.TrainingJobKind), upstream},
			object: `{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"j","namespace":"team"},"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":2,"template":{"spec":{"containers":[]}}}}}}`,
			want:   []string{"spec.pytorchReplicaSpecs.Worker.replicas"},
		},
		"an upstream kind that is not to be judged": {
			mods:   []func(*v1.WorkloadPolicySpec){on(v1.GroupName, v1.TrainingJobKind)},
			object: `{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"j","namespace":"team"},"spec":{"pytorchReplicaSpecs":{}}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			policy := matching(tc.mods...)
			if tc.rego != "" {
				policy.Spec.Rego = tc.rego
			}
			if tc.object == "" {
				tc.object = pod
			}
			if tc.resource.Empty() {
				tc.resource = pods
			}
			engine := policies.NewEngine(policies.Options{})
			if err := engine.Set(policy); err != nil {
				t.Fatal(err)
			}
			got := findingOf(judgeHere().Judge(t.Context(), engine.Snapshot(), nil, tc.resource, fixtures.Object(t, tc.object)))
			if diff := cmp.Diff(tc.want, got.fields); diff != "" || len(got.errors) > 0 {
				t.Errorf("violations (-want +got):\n%s%v", diff, got.errors)
			}
			if tc.missing == "" != (len(got.missing) == 0) || (tc.missing != "" && got.missing[0].Missing != tc.missing) {
				t.Errorf("missing %v, want %q", got.missing, tc.missing)
			}
		})
	}
}

// Most objects of a cluster are none of a policy's business.
func TestStoredObjectsAreReadOnlyIfAPolicyIsAsked(t *testing.T) {
	job := `{"apiVersion":"penstock.dev/v1","kind":"TrainingJob","metadata":{"name":"j","namespace":"team"}}`
	jobs := schema.GroupVersionResource{Group: v1.GroupName, Version: "v1", Resource: "trainingjobs"}
	for tier, want := range map[string]int{"research": 1, "production": 0} {
		read := 0
		judge := judgeHere()
		judge.Normal = func(schema.GroupVersionKind, []byte) ([]byte, error) {
			read++
			return nil, errors.New("cannot be read")
		}
		engine := policies.NewEngine(policies.Options{})
		err := engine.Set(matching(on(v1.GroupName, v1.TrainingJobKind), func(spec *v1.WorkloadPolicySpec) {
			spec.Match.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}}
		}))
		if err != nil {
			t.Fatal(err)
		}
		got := findingOf(judge.Judge(t.Context(), engine.Snapshot(), nil, jobs, fixtures.Object(t, job)))
		if read != want || len(got.errors) != want {
			t.Errorf("policy on %s: read %d times, errors %v; want %d", tier, read, got.errors, want)
		}
	}
}
