package gang_minimum_test

import data.gang_minimum

messages(spec) := found if {
	found := {v.msg | some v in gang_minimum.violation} with input as {"object": {
		"apiVersion": "penstock.dev/v1",
		"kind": "TrainingJob",
		"spec": object.union(spec, {"roles": [{"name": "Master"}, {"name": "Worker", "replicas": 7}]}),
	}}
}

test_all_or_the_least if {
	messages({"gang": {"minAvailable": 8}}) == set()
	messages({"gang": {}}) == set()
	messages({}) == set()
	messages({"gang": {"minAvailable": 3}, "elastic": {"minReplicas": 2}}) == set()
}

test_too_few if {
	messages({"gang": {"minAvailable": 7}}) == {"may start with 7 pods and computes with 8 or more"}
	messages({"gang": {"minAvailable": 2}, "elastic": {"minReplicas": 2}}) == {"may start with 2 pods and computes with 3 or more"}
}
