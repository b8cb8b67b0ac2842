package worker_bounds_test

import data.worker_bounds

messages(spec) := found if {
	found := {v.msg | some v in worker_bounds.violation} with input as {
		"object": {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": spec},
		"parameters": {"maxWorkers": 4, "maxPods": 6},
	}
}

test_within_bounds if {
	messages({"roles": [{"name": "Worker", "replicas": 4}], "elastic": {"maxReplicas": 4}}) == set()
}

test_workers if {
	messages({"roles": [{"name": "Worker", "replicas": 5}]}) == {"asks for 5 workers; at most 4 are allowed"}
}

test_elastic_replicas_count_instead_of_the_role if {
	messages({"roles": [{"name": "Worker", "replicas": 1}], "elastic": {"replicas": 5}}) == {"asks for 5 workers; at most 4 are allowed"}
}

test_total if {
	messages({"roles": [{"name": "PS", "replicas": 4}, {"name": "Worker", "replicas": 3}]}) == {"asks for 7 pods in total; at most 6 are allowed"}
}
