package webhooks_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A typo in what a rule reads would turn the rule off without a word.
func TestWhatRulesReadAndIsNotThere(t *testing.T) {
	const (
		pods   = `{kinds: [Pod]}`
		custom = `{group: example.com, kinds: [Widget]}`
	)
	tests := map[string]struct {
		on, body, more string
		// refused and warned are what is said.
		refused, warned []string
	}{
		"what is there":                  {on: pods, body: "input.object.spec.a == input.parameters.b; input.user.username; input.review.object; input.spec"},
		"a parameter's parent":           {on: pods, body: "input.paramters.x", refused: []string{"2:29: rego_type_error: input.paramters is never there: write input.parameters"}},
		"the user":                       {on: pods, body: "not input.usr.username", refused: []string{"2:33: rego_type_error: input.usr is never there: write input.user"}},
		"a member of the user":           {on: custom, body: "input.user.name", refused: []string{"2:29: rego_type_error: input.user.name is never there: there are extra, groups, uid, username"}},
		"a member of the review":         {on: custom, body: "input.review.objct", refused: []string{"2:29: rego_type_error: input.review.objct is never there: write input.review.object"}},
		"as other engines call it":       {on: pods, body: "input.request.object", refused: []string{"2:29: rego_type_error: input.request is never there: write input.review"}},
		"a member of the object at top":  {on: pods, body: "input.sepc.containers", refused: []string{"2:29: rego_type_error: input.sepc is never there: write input.spec"}},
		"a member that other kinds have": {on: pods, body: "input.webhooks", refused: []string{"2:29: rego_type_error: input.webhooks is never there: there are namespace, object, oldObject, operation, parameters, review, user, and at the top the members of the object"}},
		"a member of the kind": {
			on: `{group: admissionregistration.k8s.io, kinds: [ValidatingWebhookConfiguration]}`, body: "input.webhooks",
			warned: []string{"spec.match.resources[0].kinds[0]: ValidatingWebhookConfiguration is never judged, by no policy: they are the way out when a webhook is wrong: leave it out"},
		},
		"a member of one of the kinds":    {on: `{kinds: [Pod, ConfigMap]}`, body: "input.binaryData"},
		"a member of who knows what":      {on: custom, body: "input.webhooks"},
		"a member of who knows what, too": {on: `{group: "*", kinds: ["*"]}`, body: "input.webhooks"},
		"most likely a typo": {
			on: custom, body: "input.users",
			warned: []string{"spec.rego: 2:29: rego_type_error: input.users is there only if the object has a member users: otherwise write input.user"},
		},
		"a name below data":          {on: pods, body: "data.inventry.cluster", refused: []string{"2:29: rego_type_error: data.inventry is never there: write data.inventory"}},
		"the inventory in no layout": {on: pods, body: "data.inventory.Node.a", more: "inventory: [{apiVersion: v1, kind: Node}],", refused: []string{"2:29: rego_type_error: data.inventory.Node is never there: write data.inventory.cluster[apiVersion][kind][name], or data.inventory.namespace[namespace][apiVersion][kind][name]"}},
		"parameters below data":      {on: pods, body: "data.paramters.x", refused: []string{"2:29: rego_type_error: data.paramters is never there: write input.parameters"}},
		"the review below data":      {on: pods, body: "data.review.x", refused: []string{"2:29: rego_type_error: data.review is never there: write input.review"}},
		"a lib that is not given":    {on: pods, body: "data.lib.foo.x", refused: []string{"2:29: rego_type_error: data.lib is never there: give the text of its package in spec.libs"}},
		"a package of the library":   {on: pods, body: "data.penstock.wrkload.pods", refused: []string{"2:29: rego_type_error: data.penstock.wrkload is never there: write data.penstock.workload"}},
		"a value of the library":     {on: pods, body: "data.penstock.workload.contaners[_]", refused: []string{"2:29: rego_type_error: data.penstock.workload.contaners is never there: write data.penstock.workload.containers"}},
		"a member that the library gives": {
			on: pods, body: `input.object } bad(d) if { d.nam } violation contains "y" if { bad(data.penstock.workload.devices[_])`,
			refused: []string{"2:56: rego_type_error: workload.devices[_].nam is never there: write workload.devices[_].name"},
		},
		"another rule of the policy": {on: pods, body: "data.a.halper", more: "", refused: []string{"2:29: rego_type_error: data.a.halper is never there: there are violation"}},
		"the input, by object.get":   {on: pods, body: `object.get(input, "parmeters", {}) == {}`, refused: []string{"2:29: rego_type_error: input.parmeters is never there: write input.parameters"}},
		"the metadata": {
			on: pods, body: "input.object.metdata.labels.a",
			warned: []string{"spec.rego: 2:29: rego_type_error: objects of the kinds that the policy matches have no input.object.metdata: write input.object.metadata"},
		},
		"the metadata of who knows what": {
			on: custom, body: "input.review.object.metdata.labels.a",
			warned: []string{"spec.rego: 2:29: rego_type_error: objects of the kinds that the policy matches have no input.review.object.metdata: write input.review.object.metadata"},
		},
		"a field deep in the object": {
			on: pods, body: "some c in input.object.spec.containers; c.resorces.limits.cpu",
			warned: []string{"spec.rego: 2:69: rego_type_error: objects of the kinds that the policy matches have no input.object.spec.containers[_].resorces: write input.object.spec.containers[_].resources"},
		},
		"a field, with scale": {
			on: `{group: apps, kinds: [Deployment], subresources: ["", scale]}`, body: "input.object.spec.replica > 3",
			warned: []string{"spec.rego: 2:29: rego_type_error: objects of the kinds that the policy matches have no input.object.spec.replica: write input.object.spec.replicas"},
		},
		"a field of ours, with scale": {
			on: `{group: penstock.dev, kinds: [TrainingJob], subresources: ["", scale]}`, body: "input.object.spec.runPolicy.backofLimit > 1",
			warned: []string{"spec.rego: 2:29: rego_type_error: objects of the kinds that the policy matches have no input.object.spec.runPolicy.backofLimit: write input.object.spec.runPolicy.backoffLimit"},
		},
		"a field of Scales, with scale":    {on: `{group: apps, kinds: [DaemonSet], subresources: ["", scale]}`, body: "input.object.spec.replicas > 3"},
		"a field of another kind":          {on: pods, body: "input.object.spec.template.spec.containers"},
		"a field of one of the kinds":      {on: `{group: apps, kinds: [Deployment, DaemonSet]}`, body: "input.object.spec.updateStrategy; input.object.spec.strategy"},
		"a field of who knows what":        {on: custom, body: "input.object.spec.contaners"},
		"a field that is near to none":     {on: pods, body: "input.object.spec.runPolicy.a"},
		"a label":                          {on: pods, body: "input.object.metadata.labels.containrs"},
		"a field of ours":                  {on: `{group: penstock.dev, kinds: [TrainingJob]}`, body: "input.object.spec.runPolicy.backofLimit > 1", warned: []string{"spec.rego: 2:29: rego_type_error: objects of the kinds that the policy matches have no input.object.spec.runPolicy.backofLimit: write input.object.spec.runPolicy.backoffLimit"}},
		"the plural of the rule":           {on: pods, body: `input.object } violations contains "y" if { input.object`, warned: []string{"spec.rego: 2:44: rego_type_error: rule violations is a set that nothing reads and that is not asked for: call it violation"}},
		"the rule, misspelt beside itself": {on: pods, body: `input.object } violaton contains "y" if { input.object`, warned: []string{"spec.rego: 2:44: rego_type_error: rule violaton is a set that nothing reads and that is not asked for: call it violation"}},
		"exceptions of conftest":           {on: pods, body: `input.object } exception contains ["a"] if { input.object`, warned: []string{"spec.rego: 2:44: rego_type_error: rule exception is conftest's, and excuses nothing here: have the rules ask what it asks, or write spec.exceptions"}},
		"exceptions that the rule reads":   {on: pods, body: `count(exception) == 0 } exception contains ["a"] if { input.object`},
		"a set that the rule reads":        {on: pods, body: `count(violations) > 0 } violations contains "y" if { input.object`},
		"a set of another name":            {on: pods, body: `input.object } exempt contains "y" if { input.object`},
		"a member of a violation":          {on: pods, body: `input.object } violation contains {"msg": "a", "feild": "spec"} if { input.object`, warned: []string{"spec.rego: 2:63: rego_type_error: nothing reads the member feild of a violation: write field"}},
		"a member of another name":         {on: pods, body: `input.object } violation contains {"message": "a", "field": "spec"} if { input.object`, warned: []string{"spec.rego: 2:63: rego_type_error: nothing reads the member message of a violation: write msg"}},
		"details, as Gatekeeper has them":  {on: pods, body: `input.object } violation contains {"msg": "a", "details": {"feild": 1}} if { input.object`},
		"members that are nobody's typing": {on: pods, body: `input.object } violation contains {"msg": "a", "container": "b"} if { input.object`},
		"a parameter that is read":         {on: pods, body: "input.parameters.maxGPUs", more: "parameters: {maxGPUs: 8},"},
		"a parameter that may be read":     {on: pods, body: "some k; input.parameters[k]", more: "parameters: {maxGpu: 8},"},
		"a parameter that is not read":     {on: pods, body: "input.parameters.maxGPUs", more: "parameters: {maxGpu: 8},", warned: []string{"spec.parameters.maxGpu: is read by no rule (rules read: maxGPUs)"}},
		"a parameter, and none are read":   {on: pods, body: "input.object", more: "parameters: {maxGpu: 8},", warned: []string{"spec.parameters.maxGpu: is read by no rule (the rules read no parameters)"}},
		"a parameter of an override": {
			on: pods, body: "input.parameters.maxGPUs", more: "parameters: {maxGPUs: 8}, overrides: [{namespaceSelector: {matchLabels: {a: b}}, parameters: {maxGpus: 4}}],",
			warned: []string{"spec.overrides[0].parameters.maxGpus: is read by no rule (rules read: maxGPUs)"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rego, err := json.Marshal("package a\nviolation contains \"x\" if { " + tc.body + " }")
			if err != nil {
				t.Fatal(err)
			}
			request := create(t, policy(`{failurePolicy: Ignore, match: {resources: [`+tc.on+`]}, `+tc.more+` rego: `+string(rego)+`}`))
			response := gateOf(t, onlineOptions(t)).Validate(t.Context(), request)
			var want []string
			for _, one := range tc.refused {
				want = append(want, "spec.rego: Invalid value: "+one)
			}
			if diff := cmp.Diff(want, causesOf(response)); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.warned, response.Warnings); diff != "" {
				t.Errorf("warned (-want +got):\n%s", diff)
			}
		})
	}
}
