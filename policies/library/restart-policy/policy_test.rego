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
	fields({"roles": [{"name": "Worker", "restartPolicy": "Always"}]}) == set()
}

warned(spec) := found if {
	found := {v.field | some v in restart_policy.warn} with input as {
		"object": {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": spec},
		"parameters": {"completingRoles": ["Master"]},
	}
}

test_exit_code_without_devices_is_warned if {
	roles := [{"name": "Worker", "restartPolicy": "ExitCode", "template": {"spec": {"containers": [{"name": "a"}]}}}]
	fields({"roles": roles}) == set()
	warned({"roles": roles}) == {"spec.runPolicy.backoffLimit"}
	warned({"roles": roles, "runPolicy": {"backoffLimit": 0}}) == set()
}

test_exit_code_needs_a_bound if {
	pod := {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
	roles := [{"name": "Worker", "restartPolicy": "ExitCode", "template": {"spec": pod}}]
	warned({"roles": roles}) == set()
	fields({"roles": roles}) == {"spec.runPolicy.backoffLimit"}
	fields({"roles": roles, "runPolicy": {"backoffLimit": null}}) == {"spec.runPolicy.backoffLimit"}
	fields({"roles": roles, "runPolicy": {"backoffLimit": 0}}) == set()
}
