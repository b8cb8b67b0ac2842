package webhooks_test

import (
	stdcmp "cmp"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A condition that reads oldObject keeps everything from being made, and nothing
// that is stored tells of it.
func TestConditionsThatFailOnCreation(t *testing.T) {
	const (
		fails   = "spec.matchConditions[0].expression: match condition a fails on CREATE, where oldObject is null (no such key: "
		refused = "), and the API server refuses the creation of every object for which it does: "
		unasked = "), and the API server does not ask the policy about a creation for which it does: "
		fix     = "write oldObject == null || (…), or operations: [UPDATE] if the policy is for updates alone"
	)
	one := func(expressions ...string) string {
		var conditions []string
		for i, expression := range expressions {
			quoted, err := json.Marshal(expression)
			if err != nil {
				t.Fatal(err)
			}
			conditions = append(conditions, `{name: `+string(rune('a'+i))+`, expression: `+string(quoted)+`}`)
		}
		return strings.Join(conditions, ", ")
	}
	tests := map[string]struct {
		match, conditions, more string
		want                    []string
	}{
		"a change of a field":              {conditions: one("oldObject.spec.replicas != object.spec.replicas"), want: []string{fails + "spec" + refused + fix}},
		"the name":                         {conditions: one("oldObject.metadata.name != 'x'"), want: []string{fails + "metadata" + refused + fix}},
		"a label":                          {conditions: one("object.metadata.labels['a'] != oldObject.metadata.labels['a']"), want: []string{fails + "metadata" + refused + fix}},
		"where a count is high":            {conditions: one("object.spec.replicas > 3 && oldObject.spec.replicas <= 3"), want: []string{fails + "spec" + refused + fix}},
		"where a field is not there":       {conditions: one("has(object.spec.paused) || has(oldObject.spec.paused)"), want: []string{fails + "spec" + refused + fix}},
		"failing open":                     {conditions: one("oldObject.metadata.name != 'x'"), more: "failurePolicy: Ignore,", want: []string{fails + "metadata" + unasked + fix}},
		"a custom kind":                    {match: `resources: [{group: example.com, kinds: [Widget]}]`, conditions: one("oldObject.size != object.size"), want: []string{fails + "size" + refused + fix}},
		"pods":                             {match: `resources: [{kinds: [Pod]}]`, conditions: one("oldObject.metadata.name != 'x'"), want: []string{fails + "metadata" + refused + fix}},
		"guarded":                          {conditions: one("oldObject == null || oldObject.spec.replicas != object.spec.replicas")},
		"guarded by the operation":         {conditions: one("request.operation == 'UPDATE' && oldObject.spec.replicas != object.spec.replicas")},
		"guarded by another condition":     {conditions: one("oldObject.spec.replicas != object.spec.replicas", "request.operation == 'UPDATE'")},
		"guarded by what need not be":      {conditions: one("oldObject.?spec.?replicas != object.?spec.?replicas")},
		"another condition on the object":  {conditions: one("oldObject.spec.replicas != object.spec.replicas", "object.metadata.name != 'y'"), want: []string{fails + "spec" + refused + fix}},
		"updates alone":                    {match: `resources: [{group: apps, kinds: [Deployment]}], operations: [UPDATE]`, conditions: one("oldObject.spec.replicas != object.spec.replicas")},
		"a subresource alone":              {match: `resources: [{group: apps, kinds: [Deployment], subresources: [status]}]`, conditions: one("oldObject.spec.replicas != object.spec.replicas")},
		"the object alone":                 {conditions: one("object.spec.replicas > 3")},
		"what fails of the object as well": {conditions: one("object.spec.replicas.exists(r, r > 'x') && oldObject == null")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			match := stdcmp.Or(tc.match, `resources: [{group: apps, kinds: [Deployment]}]`)
			request := create(t, policy(`{match: {`+match+`}, matchConditions: [`+tc.conditions+`], `+tc.more+` rego: "package a\nviolation contains \"x\" if input.object.metadata.labels.a"}`))
			response := gateOf(t, onlineOptions(t)).Validate(t.Context(), request)
			if diff := cmp.Diff(tc.want, response.Warnings); diff != "" || !response.Allowed {
				t.Errorf("causes %v, warnings (-want +got):\n%s", causesOf(response), diff)
			}
		})
	}
}
