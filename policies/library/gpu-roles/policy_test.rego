package gpu_roles_test

import data.gpu_roles

fields(spec) := found if {
	found := {v.field | some v in gpu_roles.violation} with input as {
		"object": {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": spec},
		"parameters": {"roles": ["Launcher", "Evaluator"], "resources": ["nvidia.com/gpu"]},
	}
}

role(name, gpus) := {"name": name, "template": {"spec": {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": gpus}}}]}}}

test_who_may_not if {
	fields({"roles": [role("Worker", 1), role("Launcher", 1)]}) == {"spec.roles[1].template.spec.containers[0].resources.limits[nvidia.com/gpu]"}
	fields({"roles": [role("Evaluator", 1)]}) == {"spec.roles[0].template.spec.containers[0].resources.limits[nvidia.com/gpu]"}
}

test_who_may if {
	fields({"roles": [role("Worker", 1), role("Master", 1)]}) == set()
	fields({"roles": [role("Launcher", 0)]}) == set()
	fields({"mpi": {"launcher": "LauncherAsWorker"}, "roles": [role("Launcher", 1)]}) == set()
}
