package webhooks_test

import (
	stdcmp "cmp"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-dev/penstock/policies"
)

// A policy that is asked about less than it seems says so when it is applied.
func TestWhatAPolicyIsNeverAskedAbout(t *testing.T) {
	const (
		onPods    = `resources: [{kinds: [Pod]}]`
		byName    = `namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: `
		start     = "what the cluster needs to start runs there, and no policy is asked there"
		never     = "spec.match: the policy is never asked about anything: "
		deletions = "spec.match.operations: a namespace is deleted by deleting what is in it, and stays Terminating as long as the policy refuses that: unless it is to, " +
			`leave out who does it: match.exclude.users: ["system:serviceaccount:kube-system:namespace-controller"]`
	)
	tests := map[string]struct {
		match, more, body string
		want              []string
	}{
		"nodes": {match: `resources: [{kinds: [Node]}]`, want: []string{
			"spec.match.resources[0].kinds[0]: Node is never judged, by no policy: nodes must be able to join while Penstock is down: leave it out",
		}},
		"leases, beside others": {match: `resources: [{kinds: [Pod]}, {group: coordination.k8s.io, kinds: [Lease]}]`, want: []string{
			"spec.match.resources[1].kinds[0]: Lease is never judged, by no policy: nodes and controllers renew them all the time: leave it out",
		}},
		"tokens of service accounts": {match: `resources: [{kinds: [ServiceAccount], subresources: ["", token]}]`, want: []string{
			"spec.match.resources[0].subresources[1]: subresource token of ServiceAccount is never judged, by no policy: nodes ask for the tokens of pods by it, without which none starts: leave it out",
		}},
		"kube-system": {match: onPods + `, ` + byName + `[kube-system]}]}`, want: []string{
			never + "in all namespaces that match.namespaceSelector and match.exclude.namespaces leave, " + start + ": select others",
		}},
		"kube-system, and another":              {match: onPods + `, ` + byName + `[kube-system, team]}]}`},
		"kube-system, for our kinds":            {match: `resources: [{group: penstock.dev, kinds: [TrainingJob]}], ` + byName + `[kube-system]}]}`},
		"all namespaces left out":               {match: onPods + `, exclude: {namespaces: ["*"]}`, want: []string{never + "match.namespaceSelector and match.exclude.namespaces leave no namespace: select others"}},
		"what may be cluster-scoped":            {match: `resources: [{group: example.com, kinds: [Widget]}], exclude: {namespaces: ["*"]}`},
		"the one that it selects":               {match: onPods + `, exclude: {namespaces: ["team-*"]}, ` + byName + `[team-a]}]}`, want: []string{never + "match.namespaceSelector and match.exclude.namespaces leave no namespace: select others"}},
		"deletions":                             {match: `resources: [{kinds: [ConfigMap]}], operations: [DELETE]`, want: []string{deletions}},
		"deletions of Namespaces":               {match: `resources: [{kinds: [Namespace]}], operations: [DELETE]`},
		"deletions, warned about":               {match: `resources: [{kinds: [ConfigMap]}], operations: [DELETE]`, more: "action: Warn,"},
		"deletions, refused somewhere":          {match: `resources: [{kinds: [ConfigMap]}], operations: [DELETE]`, more: "action: Warn, overrides: [{namespaceSelector: {matchLabels: {a: b}}, action: Deny}],", want: []string{deletions}},
		"deletions but by controllers":          {match: `resources: [{kinds: [ConfigMap]}], operations: [DELETE], exclude: {users: ["system:serviceaccount:kube-system:*"]}`},
		"deletions by some":                     {match: `resources: [{kinds: [ConfigMap]}], operations: [DELETE]`, body: "input.user.username"},
		"deletions of our kinds, by conditions": {match: `resources: [{group: penstock.dev, kinds: [TrainingJob]}], operations: [CREATE, UPDATE, DELETE], exclude: {groups: [a]}`, more: `matchConditions: [{name: a, expression: "request.operation == 'DELETE' || object.metadata.name != 'a'"}],`},
		"deletions of our kinds, without":       {match: `resources: [{group: penstock.dev, kinds: [TrainingJob]}], operations: [DELETE], exclude: {groups: [a]}`},
		"deletions of others, by conditions":    {match: `resources: [{kinds: [ConfigMap]}], operations: [DELETE]`, more: `matchConditions: [{name: a, expression: "request.name != 'a'"}],`},
		"creations of our kinds by conditions":  {match: `resources: [{group: penstock.dev, kinds: [TrainingJob]}]`, more: `matchConditions: [{name: a, expression: "object.metadata.name != 'a'"}],`},
		"an exception that is over": {match: onPods, more: `exceptions: [{namespaces: [a], until: "2020-01-01T00:00:00Z", reason: r}, {namespaces: [b], until: "2200-01-01T00:00:00Z", reason: r}],`, want: []string{
			"spec.exceptions[0].until: is over since 2020-01-01T00:00:00Z, so that the exception lets nothing pass: write a later time, or remove it",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := create(t, policy(`{failurePolicy: Ignore, match: {`+tc.match+`}, `+tc.more+` rego: "package a\nviolation contains \"x\" if `+stdcmp.Or(tc.body, "input.object.metadata.labels.a")+`"}`))
			options := onlineOptions(t)
			options.Reach = &policies.Reach{Unasked: []string{"kube-system", "penstock-system"}}
			response := gateOf(t, options).Validate(t.Context(), request)
			if diff := cmp.Diff(tc.want, response.Warnings); diff != "" || !response.Allowed {
				t.Errorf("causes %v, warnings (-want +got):\n%s", causesOf(response), diff)
			}
		})
	}
}

// Who scales, debugs or resizes walks past a policy that does not name the
// subresource.
func TestSubresourcesThatChangeWhatARuleReads(t *testing.T) {
	const (
		scale     = "kubectl scale and autoscalers change spec.replicas by the subresource scale, about which the policy is not asked: write subresources: "
		resize    = "spec.match.resources[0].subresources: the resources of a pod's containers change by the subresource resize, about which the policy is not asked: write subresources: "
		ephemeral = "spec.match.resources[0].subresources: kubectl debug adds containers, in spec.ephemeralContainers, by the subresource ephemeralcontainers, about which the policy is not asked: write subresources: "
		few       = "input.object.spec.replicas > 3"
	)
	tests := map[string]struct {
		resources, more, body string
		want                  []string
	}{
		"replicas":                       {resources: `[{group: apps, kinds: [Deployment, StatefulSet]}]`, body: few, want: []string{"spec.match.resources[0].subresources: " + scale + `["", scale]`}},
		"replicas, through a variable":   {resources: `[{kinds: [Pod]}, {group: apps, kinds: [ReplicaSet]}]`, body: "spec := input.review.object.spec; spec.replicas > 3", want: []string{"spec.match.resources[1].subresources: " + scale + `["", scale]`}},
		"replicas, with scale":           {resources: `[{group: apps, kinds: [Deployment], subresources: ["", scale]}]`, body: few},
		"replicas, with scale elsewhere": {resources: `[{group: apps, kinds: [Deployment]}, {group: apps, kinds: [Deployment], subresources: [scale]}]`, body: few},
		"replicas, with all":             {resources: `[{group: apps, kinds: [Deployment], subresources: ["*", ""]}]`, body: few},
		"replicas of creations":          {resources: `[{group: apps, kinds: [Deployment]}]`, more: ", operations: [CREATE]", body: few},
		"replicas of what has no scale":  {resources: `[{group: example.com, kinds: [Widget]}]`, body: few},
		"workers":                        {resources: `[{group: penstock.dev, kinds: [TrainingJob]}]`, body: "some role in input.object.spec.roles; role.replicas > 3", want: []string{"spec.match.resources[0].subresources: kubectl scale and autoscalers change the replicas of a role by the subresource scale, about which the policy is not asked: write subresources: [\"\", scale]"}},
		"images":                         {resources: `[{kinds: [Pod]}]`, body: "some c in input.object.spec.containers; c.image == \"a\"", want: []string{ephemeral + `["", ephemeralcontainers]`}},
		"images, beside resize":          {resources: `[{kinds: [Pod], subresources: ["", resize]}]`, body: "some c in input.object.spec.initContainers; c.image == \"a\"", want: []string{ephemeral + `["", resize, ephemeralcontainers]`}},
		"limits":                         {resources: `[{kinds: [Pod]}]`, body: "input.object.spec.containers[_].resources.limits.cpu", want: []string{resize + `["", resize]`}},
		"ports":                          {resources: `[{kinds: [Pod]}]`, body: "input.object.spec.containers[_].ports[_].hostPort"},
		"images of templates":            {resources: `[{group: apps, kinds: [Deployment]}]`, body: "input.object.spec.template.spec.containers[_].image == \"a\""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rego, err := json.Marshal("package a\nviolation contains \"x\" if { " + tc.body + " }")
			if err != nil {
				t.Fatal(err)
			}
			request := create(t, policy(`{failurePolicy: Ignore, match: {resources: `+tc.resources+tc.more+`}, rego: `+string(rego)+`}`))
			response := gateOf(t, onlineOptions(t)).Validate(t.Context(), request)
			if diff := cmp.Diff(tc.want, response.Warnings); diff != "" || !response.Allowed {
				t.Errorf("causes %v, warnings (-want +got):\n%s", causesOf(response), diff)
			}
		})
	}
}
