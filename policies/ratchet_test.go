package policies_test

import "testing"

func TestRatchet(t *testing.T) {
	const (
		// perRole reports the role at fault.
		perRole = `package p
violation contains {"msg": sprintf("%v is too many", [r.replicas]), "field": sprintf("spec.roles[%d].replicas", [i])} if {
  some i, r in input.object.spec.roles
  r.replicas > 4
}`
		// total reports a sum at the first role.
		total = `package p
violation contains {"msg": sprintf("%v in total", [n]), "field": "spec.roles[0].replicas"} if {
  n := sum([r.replicas | some r in input.object.spec.roles])
  n > 4
}`
		// nowhere names no field.
		nowhere = `package p
violation contains "too many" if { some r in input.object.spec.roles; r.replicas > 4 }`
		labels = `package p
violation contains {"msg": sprintf("labels are missing: %v", [missing]), "field": "metadata.labels"} if {
  missing := {"team", "owner"} - object.keys(object.get(input.object.metadata, "labels", {}))
  count(missing) > 0
}`
		labelsNowhere = `package p
violation contains sprintf("labels are missing: %v", [missing]) if {
  missing := {"team", "owner"} - object.keys(object.get(input.object.metadata, "labels", {}))
  count(missing) > 0
}`
		immutable = `package p
violation contains {"msg": "framework cannot change", "field": "spec.framework"} if input.object.spec.framework != input.oldObject.spec.framework`
		age = `package p
violation contains {"msg": sprintf("older than allowed by %v", [input.object.metadata.annotations.age]), "field": "spec.roles"} if true`
		absent = `package p
violation contains {"msg": "no backoff limit", "field": "spec.runPolicy.backoffLimit"} if not input.object.spec.runPolicy.backoffLimit`
	)
	tests := map[string]struct {
		rego     string
		old, new string
		denied   bool
	}{
		"the fault is untouched": {perRole, `{"spec":{"roles":[{"replicas":9}]}}`, `{"spec":{"roles":[{"replicas":9}],"runPolicy":{}}}`, false},
		"the fault is new":       {perRole, `{"spec":{"roles":[{"replicas":1}]}}`, `{"spec":{"roles":[{"replicas":9}]}}`, true},
		"the fault has grown":    {perRole, `{"spec":{"roles":[{"replicas":9}]}}`, `{"spec":{"roles":[{"replicas":10}]}}`, true},
		"the fault has shrunk and is still one": {
			perRole, `{"spec":{"roles":[{"replicas":9}]}}`, `{"spec":{"roles":[{"replicas":8}]}}`, true,
		},
		"another fault beside an old one": {
			perRole, `{"spec":{"roles":[{"replicas":9},{"replicas":1}]}}`, `{"spec":{"roles":[{"replicas":9},{"replicas":9}]}}`, true,
		},
		"an equal number in another spelling is unchanged": {
			perRole, `{"spec":{"roles":[{"replicas":9}]}}`, `{"spec":{"roles":[{"replicas":9.0}]}}`, false,
		},
		"a total grows at another role": {
			total, `{"spec":{"roles":[{"replicas":3},{"replicas":3}]}}`, `{"spec":{"roles":[{"replicas":3},{"replicas":4}]}}`, true,
		},
		"a total grows at the role that is reported": {
			total, `{"spec":{"roles":[{"replicas":3},{"replicas":3}]}}`, `{"spec":{"roles":[{"replicas":4},{"replicas":3}]}}`, true,
		},
		"a total grows by a role that is added": {
			total, `{"spec":{"roles":[{"replicas":6}]}}`, `{"spec":{"roles":[{"replicas":6},{"replicas":1}]}}`, true,
		},
		"a total shrinks at another role and is still too much": {
			total, `{"spec":{"roles":[{"replicas":5},{"replicas":5}]}}`, `{"spec":{"roles":[{"replicas":5},{"replicas":4}]}}`, true,
		},
		"a total stays while another role is edited": {
			total, `{"spec":{"roles":[{"replicas":3},{"replicas":3,"image":"a"}]}}`, `{"spec":{"roles":[{"replicas":3},{"replicas":3,"image":"b"}]}}`, false,
		},
		"a total stays, moved between roles other than the reported": {
			total, `{"spec":{"roles":[{"replicas":3},{"replicas":3},{"replicas":1}]}}`, `{"spec":{"roles":[{"replicas":3},{"replicas":1},{"replicas":3}]}}`, false,
		},
		"a total stays, moved from the reported role": {
			total, `{"spec":{"roles":[{"replicas":3},{"replicas":3}]}}`, `{"spec":{"roles":[{"replicas":2},{"replicas":4}]}}`, true,
		},
		"a total stays": {
			total, `{"spec":{"roles":[{"replicas":3},{"replicas":3}]}}`, `{"spec":{"roles":[{"replicas":3},{"replicas":3}]},"metadata":{"labels":{"a":"b"}}}`, false,
		},
		"no field, and the spec is unchanged": {
			nowhere, `{"spec":{"roles":[{"replicas":9}]}}`, `{"spec":{"roles":[{"replicas":9}]},"metadata":{"finalizers":["a"]},"status":{"phase":"Running"}}`, false,
		},
		"no field, and anything in the spec has changed": {
			nowhere, `{"spec":{"roles":[{"replicas":9}]}}`, `{"spec":{"roles":[{"replicas":9}],"framework":"JAX"}}`, true,
		},
		"the rule is about metadata, which is unchanged": {
			labels, `{"metadata":{"labels":{"team":"a"}},"spec":{"a":1}}`, `{"metadata":{"labels":{"team":"a"}},"spec":{"a":2}}`, false,
		},
		"a label more is missing while the spec is unchanged": {
			labels, `{"metadata":{"labels":{"team":"a"}},"spec":{}}`, `{"metadata":{"labels":{}},"spec":{}}`, true,
		},
		"a label more is missing and the rule names no field": {
			labelsNowhere, `{"metadata":{"labels":{"team":"a"}},"spec":{}}`, `{"metadata":{},"spec":{}}`, true,
		},
		"a rule on the change itself": {
			immutable, `{"spec":{"framework":"JAX"}}`, `{"spec":{"framework":"MPI"}}`, true,
		},
		"the message changes with something else, and the spec is unchanged": {
			age, `{"metadata":{"annotations":{"age":"1"}},"spec":{"roles":[]}}`, `{"metadata":{"annotations":{"age":"2"}},"spec":{"roles":[]}}`, false,
		},
		"the field is absent in both": {
			absent, `{"spec":{"a":1}}`, `{"spec":{"a":2}}`, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			verdict := judge(t, policy("p", tc.rego), updateRequest([]byte(tc.old), []byte(tc.new)))
			if len(verdict.Errors) > 0 {
				t.Fatal(verdict.Errors)
			}
			if got := !verdict.Allowed(); got != tc.denied {
				t.Errorf("denied is %t, want %t: violations %v, tolerated %v", got, tc.denied, verdict.Violations, verdict.Tolerated)
			}
			if !tc.denied && len(verdict.Tolerated) == 0 {
				t.Error("the fault is not told among the tolerated ones")
			}
			if tc.denied {
				return
			}
			// What an update may leave, a creation may not bring.
			created := judge(t, policy("p", tc.rego), createRequest([]byte(tc.new)))
			if created.Allowed() {
				t.Error("a creation is tolerated too")
			}
		})
	}
}

func TestRatchetUsesTheParametersOfToday(t *testing.T) {
	p := policy("p", `package p
violation contains {"msg": sprintf("at most %v", [input.parameters.max]), "field": "spec.n"} if input.object.spec.n > input.parameters.max`,
		parameters(`{"max": 2}`))
	verdict := judge(t, p, updateRequest([]byte(`{"spec":{"n":3}}`), []byte(`{"spec":{"n":3,"m":1}}`)))
	if !verdict.Allowed() {
		t.Errorf("a stricter parameter refuses what is stored: %v", verdict.Violations)
	}
}
