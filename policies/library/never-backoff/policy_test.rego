package never_backoff_test

import data.never_backoff

fields(limit, policies) := found if {
	found := {v.field | some v in never_backoff.violation} with input as {"object": {
		"apiVersion": "penstock.dev/v1",
		"kind": "TrainingJob",
		"spec": {"runPolicy": {"backoffLimit": limit}, "roles": [{"name": "Worker", "restartPolicy": policy} | some policy in policies]},
	}}
}

test_a_limit_with_an_effect if {
	fields(3, ["Never", "OnFailure"]) == set()
	fields(0, ["Never"]) == set()
	fields(3, []) == set()
}

test_a_limit_without if {
	fields(3, ["Never", "Never"]) == {"spec.runPolicy.backoffLimit"}
}
