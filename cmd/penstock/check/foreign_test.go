package check_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/penstock-dev/penstock/cmd/penstock/check"
)

const foreignPolicies = `
apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: pinned}
spec:
  match: {resources: [{kinds: [Pod, Namespace, Node]}, {group: example.com, kinds: [Widget]}]}
  rego: |
    package pinned
    violation contains {"msg": sprintf("%s in %s", [input.operation, input.namespace.name]), "field": "spec.nodeName"} if {
      input.object.spec.nodeName
    }
---
apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: owned}
spec:
  match: {resources: [{kinds: [Namespace]}]}
  rego: |
    package owned
    violation contains "is nobody's" if input.object.metadata.labels.owner == "nobody"
---
apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: selected}
spec:
  match:
    resources: [{kinds: [Namespace]}, {group: example.com, kinds: [Gadget]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: chosen}}
  rego: |
    package selected
    violation contains {"msg": "is chosen", "field": "metadata.name"} if input.object.metadata.name
---
apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: conditional}
spec:
  match: {resources: [{group: batch, kinds: [Job]}]}
  matchConditions: [{name: not-by-the-queue, expression: "request.userInfo.username != 'queue'"}, {name: large, expression: "object.spec.completions > 10"}]
  rego: |
    package conditional
    violation contains {"msg": "too large", "field": "spec.completions"}
`

// said is the verdict of a check and what it says, in one list.
func said(result check.Result) []string {
	lines := []string{"not judged"}
	if result.Judged {
		lines = []string{"refused"}
		if result.Allowed {
			lines = []string{"admitted"}
		}
	}
	for _, fault := range result.Faults {
		lines = append(lines, fault.String())
	}
	for _, policy := range result.NotEvaluated {
		lines = append(lines, "not evaluated: "+policy.Policy)
	}
	return lines
}

func TestCheckForeignKinds(t *testing.T) {
	documents, unreadable := check.Read("policies.yaml", []byte(foreignPolicies))
	if len(unreadable) > 0 {
		t.Fatal(unreadable)
	}
	policies, _, err := check.Policies(t.Context(), documents, []string{"cni"})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		old, object, user string
		want              []string
	}{
		"a pod":                       {object: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: here}}", want: []string{"refused", "spec.nodeName: CREATE in team (policy pinned)"}},
		"a pod with a namespace":      {object: "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {nodeName: here}}", want: []string{"refused", "spec.nodeName: CREATE in b (policy pinned)"}},
		"a good pod":                  {object: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}}", want: []string{"admitted"}},
		"a kind that no policy names": {object: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {nodeName: here}}", want: []string{"not judged"}},
		"what kubectl would not send": {object: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodename: here, containers: [{nam: a}]}}", want: []string{"refused",
			`spec.containers[0].nam: unknown field "spec.containers[0].nam"`, `spec.nodename: unknown field "spec.nodename"`}},
		"a wrong type":                                   {object: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {priority: high}}", want: []string{"refused", "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32"}},
		"a kind of others":                               {object: "{apiVersion: example.com/v2, kind: Widget, metadata: {name: a}, spec: {nodeName: here, turns: 3}}", want: []string{"refused", "spec.nodeName: CREATE in team (policy pinned)"}},
		"what the cluster starts by":                     {object: "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: cni}, spec: {nodeName: here}}", want: []string{"not judged"}},
		"what it always starts by":                       {object: "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: kube-system}, spec: {nodeName: here}}", want: []string{"not judged"}},
		"a kind that it starts by":                       {object: "{apiVersion: v1, kind: Node, metadata: {name: a}, spec: {}}", want: []string{"not judged"}},
		"a namespace, which the API server gives a spec": {object: "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {owner: nobody}}}", want: []string{"refused", "spec: is nobody's (policy owned)"}},
		"a namespace by its name":                        {object: "{apiVersion: v1, kind: Namespace, metadata: {name: chosen}}", want: []string{"refused", "metadata.name: is chosen (policy selected)"}},
		"a namespace whose labels are not known":         {object: "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a, namespace: chosen}}", want: []string{"refused", "metadata.name: is chosen (policy selected)"}},
		"another whose labels are not known":             {object: "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a, namespace: other}}", want: []string{"admitted"}},
		"an update of a namespace without a spec":        {old: "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {owner: nobody}}}", object: "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {owner: nobody, a: b}}}", want: []string{"admitted"}},
		"a namespace that it needs":                      {object: "{apiVersion: v1, kind: Namespace, metadata: {name: penstock-system}, spec: {}}", want: []string{"not judged"}},
		"cluster-scoped":                                 {object: "{apiVersion: v1, kind: Namespace, metadata: {name: a}, spec: {}}", want: []string{"admitted"}},
		"an update that makes it worse":                  {old: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}}", object: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: here}}", want: []string{"refused", "spec.nodeName: UPDATE in team (policy pinned)"}},
		"an update that leaves it":                       {old: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: here}}", object: "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {a: b}}, spec: {nodeName: here}}", want: []string{"admitted"}},
		"conditions that hold":                           {user: "jo", object: "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {completions: 11}}", want: []string{"refused", "spec.completions: too large (policy conditional)"}},
		"conditions that do not":                         {user: "queue", object: "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {completions: 11}}", want: []string{"admitted"}},
		"one that cannot be told":                        {object: "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {completions: 11}}", want: []string{"admitted", "not evaluated: conditional"}},
		"one that need not be told":                      {object: "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {completions: 1}}", want: []string{"admitted"}},
		"one that fails on absent fields": {user: "jo", object: "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {}}", want: []string{
			"refused",
			"spec: policy conditional could not be evaluated: match condition large fails (no such key: completions), and the API server refuses every write of it: guard it by has(object.spec.completions) && …",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			checker, err := check.New(check.Options{
				Policies: policies, Namespace: "team", User: authenticationv1.UserInfo{Username: tc.user}, Now: time.Now(),
				Namespaces: map[string]map[string]string{"team": {}, "b": {}}, SystemNamespaces: []string{"cni"},
			})
			if err != nil {
				t.Fatal(err)
			}
			read := func(text string) check.Object {
				objects, unreadable := check.Read("a.yaml", []byte(text))
				if len(objects) != 1 || len(unreadable) != 0 {
					t.Fatalf("got %v %v", objects, unreadable)
				}
				return objects[0]
			}
			if tc.old != "" {
				if err := checker.Store(t.Context(), read(tc.old)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, said(checker.Check(t.Context(), read(tc.object)))); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}
