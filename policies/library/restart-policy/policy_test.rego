package restart_policy_test

import data.restart_policy

fields(spec) := found if {
	found := {v.field | some v in restart_policy.violation} with input as {
		"object": {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": spec},
		"parameters": {"completingRoles": ["Master"]},
	}
}

test_always_on_a_completing_role if {
	fields({"roles": [{"name": "Master", "restartPolicy": "Always"}]}) == {"spec.roles[0].restartPolicy"}
	fields({"roles": [{"name": "Worker", "restartPolicy": "Always"}]}) == {"spec.roles[0].restartPolicy"}
}

test_always_beside_a_completing_role if {
	fields({"roles": [{"name": "Master"}, {"name": "Worker", "restartPolicy": "Always"}]}) == set()
	fields({"roles": [{"name": "Worker"}, {"name": "PS", "restartPolicy": "Always"}]}) == set()
}
