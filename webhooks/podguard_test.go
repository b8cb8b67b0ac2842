package webhooks_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies/library"
)

// A policy that every pod of the cluster's start would wait for is refused,
// unless the operator has said what that start needs.
func TestPoliciesThatBarPods(t *testing.T) {
	const rego = `rego: "package a\nviolation contains {\"msg\": \"a\"} if false"`
	tests := map[string]struct {
		spec string
		want bool
	}{
		"all pods":                 {spec: `{match: {resources: [{kinds: [Pod]}]}, ` + rego + `}`, want: true},
		"all kinds":                {spec: `{match: {resources: [{group: "*", kinds: ["*"]}]}, ` + rego + `}`, want: true},
		"itself among others":      {spec: `{match: {resources: [{kinds: [Pod], subresources: ["", exec]}]}, ` + rego + `}`, want: true},
		"a subresource":            {spec: `{match: {resources: [{kinds: [Pod], subresources: [exec]}]}, ` + rego + `}`},
		"deletions":                {spec: `{match: {resources: [{kinds: [Pod]}], operations: [DELETE]}, ` + rego + `}`},
		"open when it fails":       {spec: `{failurePolicy: Ignore, match: {resources: [{kinds: [Pod]}]}, ` + rego + `}`},
		"where a label is":         {spec: `{match: {namespaceSelector: {matchLabels: {gpus: "yes"}}, resources: [{kinds: [Pod]}]}, ` + rego + `}`},
		"where a label has to be":  {spec: `{match: {namespaceSelector: {matchExpressions: [{key: gpus, operator: Exists}]}, resources: [{kinds: [Pod]}]}, ` + rego + `}`},
		"in namespaces by name":    {spec: `{match: {namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [team]}]}, resources: [{kinds: [Pod]}]}, ` + rego + `}`},
		"all namespaces but some":  {spec: `{match: {namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [cni]}]}, resources: [{kinds: [Pod]}]}, ` + rego + `}`},
		"where no label is":        {spec: `{match: {namespaceSelector: {matchExpressions: [{key: exempt, operator: DoesNotExist}]}, resources: [{kinds: [Pod]}]}, ` + rego + `}`, want: true},
		"where a label is another": {spec: `{match: {namespaceSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [system]}]}, resources: [{kinds: [Pod]}]}, ` + rego + `}`, want: true},
		"wherever":                 {spec: `{match: {namespaceSelector: {}, resources: [{kinds: [Pod]}]}, ` + rego + `}`, want: true},
		"but for excluded ones":    {spec: `{match: {exclude: {namespaces: [cni]}, resources: [{kinds: [Pod]}]}, ` + rego + `}`, want: true},
		"their binding":            {spec: `{match: {resources: [{kinds: [Pod], subresources: [binding]}]}, ` + rego + `}`, want: true},
		"their status":             {spec: `{match: {resources: [{kinds: [Pod], subresources: [status]}]}, ` + rego + `}`, want: true},
		"no change of status":      {spec: `{match: {operations: [CREATE], resources: [{kinds: [Pod], subresources: [status]}]}, ` + rego + `}`},
		"a Pod of somebody else's": {spec: `{match: {resources: [{group: example.com, kinds: [Pod]}]}, ` + rego + `}`},
	}
	unnamed, named := onlineOptions(t), onlineOptions(t)
	named.SystemNamespaces = []string{"cni"}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := create(t, policy(tc.spec))
			got := causesOf(gateOf(t, unnamed).Validate(t.Context(), request))
			if refused := len(got) > 0; refused != tc.want || refused && !strings.HasPrefix(got[0], "spec.matchConditions: Required value") {
				t.Errorf("got %v", got)
			}
			if got := causesOf(gateOf(t, named).Validate(t.Context(), request)); len(got) > 0 {
				t.Errorf("system namespaces are named, got %v", got)
			}
		})
	}
}

// A condition is no guard by being one: it has to leave plain pods alone.
func TestConditionsThatHoldForPlainPods(t *testing.T) {
	const (
		plain  = "for one that asks for nothing special, plugin-x7k2p in namespace cni-system with "
		marked = "spec.matchConditions: they hold for pods like those of the cluster's own start, such as plugin-x7k2p in namespace cni-system with "
		host   = marked + "hostNetwork, privileged, priorityClassName system-node-critical, label k8s-app, which then wait"
		fails  = "and keeps every such pod from being made, whether Penstock answers or not: "
	)
	tests := map[string]struct {
		expression string
		// refused and warned are parts of what is said, empty for nothing.
		refused, warned string
	}{
		"always":                             {expression: "true", refused: plain + "one container:"},
		"what every pod has":                 {expression: "has(object.spec.containers)", refused: plain + "one container:"},
		"an operation":                       {expression: "request.operation == 'CREATE'", refused: plain + "one container:"},
		"a user that nobody is":              {expression: "request.userInfo.username != 'jo'", refused: plain + "one container:"},
		"pods without limits":                {expression: "object.spec.containers.exists(c, !has(c.resources.limits))", refused: plain + "one container:"},
		"pods with limits":                   {expression: "object.spec.containers.all(c, has(c.resources) && has(c.resources.limits))", refused: plain + "one container, and limits of cpu and memory:"},
		"pods with init containers":          {expression: "has(object.spec.initContainers)", refused: plain + "an init container:"},
		"an image":                           {expression: "object.spec.containers.exists(c, !c.image.startsWith('trusted/'))", refused: plain + "one container:"},
		"devices, in the limits":             {expression: "object.spec.containers.exists(c, has(c.resources.limits) && 'nvidia.com/gpu' in c.resources.limits)"},
		"devices, as it was said to write":   {expression: "request.kind.kind != 'Pod' || object.spec.containers.exists(c, has(c.resources.limits) && 'nvidia.com/gpu' in c.resources.limits)"},
		"devices, by optional fields":        {expression: "(object.spec.containers + object.spec.?initContainers.orValue([])).exists(c, 'nvidia.com/gpu' in c.?resources.?limits.orValue({}))"},
		"any extended resource":              {expression: "object.spec.containers.exists(c, has(c.resources.requests) && c.resources.requests.exists(r, r.contains('/')))"},
		"claims":                             {expression: "has(object.spec.resourceClaims) && size(object.spec.resourceClaims) > 0"},
		"a label":                            {expression: "has(object.metadata.labels) && 'team' in object.metadata.labels"},
		"a queue, by optional index":         {expression: "object.metadata.?labels[?'kueue.x-k8s.io/queue-name'].hasValue()"},
		"a scheduler":                        {expression: "object.spec.schedulerName == 'gang'"},
		"namespaces by name":                 {expression: "request.namespace.startsWith('team-')"},
		"all namespaces but one":             {expression: "request.namespace != 'kube-system'"},
		"all namespaces but some":            {expression: "!(object.metadata.namespace in ['kube-system', 'cni-system'])"},
		"all but critical pods":              {expression: "!has(object.spec.priorityClassName) || !object.spec.priorityClassName.startsWith('system-')"},
		"all but pods on the host's network": {expression: "!has(object.spec.hostNetwork) || !object.spec.hostNetwork"},
		"all but those of the system":        {expression: "!request.userInfo.username.startsWith('system:serviceaccount:kube-system:')"},
		"what the user may do":               {expression: "!authorizer.group('').resource('pods').check('bypass').allowed()"},
		"pods on the host's network":         {expression: "has(object.spec.hostNetwork) && object.spec.hostNetwork", warned: host},
		"privileged pods":                    {expression: "object.spec.containers.exists(c, c.?securityContext.?privileged.orValue(false) == true)", warned: host},
		"pods with labels":                   {expression: "has(object.metadata.labels)", warned: host},
		"what pods need not have": {
			expression: "object.spec.containers.exists(c, c.resources.limits.exists(r, r.contains('/')))",
			warned:     "spec.matchConditions: match condition a fails (no such key: limits) for a pod with one container, " + fails + "guard it by has(c.resources.limits) && …",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expression, err := json.Marshal(tc.expression)
			if err != nil {
				t.Fatal(err)
			}
			request := create(t, policy(`{matchConditions: [{name: a, expression: `+string(expression)+`}], match: {resources: [{kinds: [Pod]}]}, rego: "package a\nviolation contains {\"msg\": \"a\"} if false"}`))
			response := gateOf(t, onlineOptions(t)).Validate(t.Context(), request)
			for what, check := range map[string]struct {
				got  []string
				want string
			}{"refused": {causesOf(response), tc.refused}, "warned": {response.Warnings, tc.warned}} {
				if got := strings.Join(check.got, "\n"); (got == "") != (check.want == "") || !strings.Contains(got, check.want) {
					t.Errorf("%s: got %q, want %q", what, got, check.want)
				}
			}
		})
	}
}

// A refusal says a condition that would do.
func TestRefusalOfAGuardSaysOne(t *testing.T) {
	request := create(t, policy(`{matchConditions: [{name: a, expression: "true"}], match: {resources: [{kinds: [Pod]}, {group: apps, kinds: [Deployment]}]}, rego: "package a\nviolation contains {\"msg\": \"a\"} if false"}`))
	want := []string{"spec.matchConditions: Required value: a policy on pods that fails closed needs a condition that leaves the pods of the cluster's own start alone, such as one on the resources they ask for, " +
		"and these hold for one that asks for nothing special, plugin-x7k2p in namespace cni-system with one container: " +
		"add request.kind.kind != 'Pod' || object.spec.containers.exists(c, has(c.resources.limits) && 'nvidia.com/gpu' in c.resources.limits), " +
		"select the namespaces of workloads by a label they have (match.namespaceSelector), set failurePolicy to Ignore, or have the operator name the system namespaces (--system-namespaces)"}
	if diff := cmp.Diff(want, causesOf(gateOf(t, onlineOptions(t)).Validate(t.Context(), request))); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

// Namespaces that are left out by name may be those of the cluster, or not.
func TestNamespacesLeftOutByName(t *testing.T) {
	for names, want := range map[string]string{
		"[foo, bar]":        "spec.match.namespaceSelector: leaves out foo, bar alone: while no Penstock answers, the pods of all other namespaces wait",
		"[foo, csi-system]": "",
	} {
		request := create(t, policy(`{match: {namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: `+names+`}]}, resources: [{kinds: [Pod]}]}, rego: "package a\nviolation contains {\"msg\": \"a\"} if false"}`))
		response := gateOf(t, onlineOptions(t)).Validate(t.Context(), request)
		got := strings.Join(response.Warnings, "\n")
		if !response.Allowed || (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: allowed %t, got %q", names, response.Allowed, got)
		}
	}
}

// The library's own guard leaves plain pods alone, and fails for none.
func TestGuardsOfTheLibrary(t *testing.T) {
	all, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	guarded := 0
	for _, one := range all {
		if len(one.Spec.MatchConditions) == 0 {
			continue
		}
		guarded++
		one.TypeMeta.APIVersion, one.Kind = v1.GroupVersion.String(), v1.WorkloadPolicyKind
		raw, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		response := gateOf(t, onlineOptions(t)).Validate(t.Context(), create(t, string(raw)))
		if !response.Allowed || len(response.Warnings) > 0 {
			t.Errorf("%s: %v %v", one.Name, causesOf(response), response.Warnings)
		}
	}
	if guarded == 0 {
		t.Error("no policy of the library has a guard")
	}
}
