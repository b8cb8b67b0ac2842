package exit_code_backoff_test

import data.exit_code_backoff

denied(spec) := found if {
	found := {v.field | some v in exit_code_backoff.violation} with input as {"object": {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": spec}}
}

warned(spec) := found if {
	found := {v.field | some v in exit_code_backoff.warn} with input as {"object": {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": spec}}
}

test_exit_code_without_devices_is_warned if {
	roles := [{"name": "Worker", "restartPolicy": "ExitCode", "template": {"spec": {"containers": [{"name": "a"}]}}}]
	denied({"roles": roles}) == set()
	warned({"roles": roles}) == {"spec.runPolicy.backoffLimit"}
	warned({"roles": roles, "runPolicy": {"backoffLimit": 0}}) == set()
}

test_exit_code_needs_a_bound if {
	pod := {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
	roles := [{"name": "Worker", "restartPolicy": "ExitCode", "template": {"spec": pod}}]
	warned({"roles": roles}) == set()
	denied({"roles": roles}) == {"spec.runPolicy.backoffLimit"}
	denied({"roles": roles, "runPolicy": {"backoffLimit": null}}) == {"spec.runPolicy.backoffLimit"}
	denied({"roles": roles, "runPolicy": {"backoffLimit": 0}}) == set()
}

test_a_claim_is_a_device if {
	denied({"roles": [{"name": "Worker", "restartPolicy": "ExitCode", "template": {"spec": {"resourceClaims": [{"name": "a"}]}}}]}) == {"spec.runPolicy.backoffLimit"}
}
