package template_restart_policy_test

import data.template_restart_policy

fields(role, template) := found if {
	found := {v.field | some v in template_restart_policy.violation} with input as {"object": {
		"apiVersion": "penstock.dev/v1",
		"kind": "TrainingJob",
		"spec": {"roles": [{"name": "Worker", "restartPolicy": role, "template": {"spec": {"restartPolicy": template}}}]},
	}}
}

test_the_same if {
	fields("OnFailure", "OnFailure") == set()
	fields("ExitCode", "Never") == set()
	fields("OnFailure", null) == set()
}

test_overwritten if {
	fields("OnFailure", "Never") == {"spec.roles[0].template.spec.restartPolicy"}
	fields("ExitCode", "OnFailure") == {"spec.roles[0].template.spec.restartPolicy"}
}
