package gang_consistency_test

import data.gang_consistency

fields(gang, pods) := found if {
	found := {v.field | some v in gang_consistency.violation} with input as {"object": {
		"apiVersion": "penstock.dev/v1",
		"kind": "TrainingJob",
		"spec": {"gang": gang, "roles": [{"name": "Worker", "template": {"spec": pod}} | some pod in pods]},
	}}
}

test_the_same_everywhere if {
	fields({}, [{"schedulerName": "a", "priorityClassName": "high"}, {"schedulerName": "a", "priorityClassName": "high"}]) == set()
	fields({"scheduler": "a"}, [{"schedulerName": "a"}, {}]) == set()
}

test_no_gang if {
	count(gang_consistency.violation) == 0 with input as {"object": {"apiVersion": "penstock.dev/v1", "spec": {"roles": [
		{"template": {"spec": {"schedulerName": "a"}}},
		{"template": {"spec": {"schedulerName": "b"}}},
	]}}}
}

test_another if {
	fields({}, [{"schedulerName": "a"}, {"schedulerName": "b"}]) == {"spec.roles[1].template.spec.schedulerName"}
	fields({"scheduler": "a"}, [{"schedulerName": "b"}]) == {"spec.roles[0].template.spec.schedulerName"}
	fields({"priorityClassName": "high"}, [{"priorityClassName": "low"}]) == {"spec.roles[0].template.spec.priorityClassName"}
}
