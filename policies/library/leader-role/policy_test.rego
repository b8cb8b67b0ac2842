package leader_role_test

import data.leader_role

fields(spec) := found if {
	found := {v.field | some v in leader_role.violation} with input as {
		"object": {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": spec},
		"parameters": {"leaders": {"PyTorch": ["Master"]}},
	}
}

workers(n) := {"name": "Worker", "replicas": n}

test_several_workers_alone if {
	fields({"framework": "PyTorch", "roles": [workers(2)]}) == {"spec.roles"}
}

test_what_needs_no_leader if {
	fields({"framework": "PyTorch", "roles": [workers(1)]}) == set()
	fields({"framework": "PyTorch", "roles": [workers(2), {"name": "Master"}]}) == set()
	fields({"framework": "PyTorch", "elastic": {"minReplicas": 1}, "roles": [workers(2)]}) == set()
	fields({"framework": "JAX", "roles": [workers(2)]}) == set()
}
