package elastic_bounds_test

import data.elastic_bounds

parameters := {"maxWorkers": 10, "minWorkers": 1, "maxGpus": 16, "resources": ["nvidia.com/gpu"]}

object(elastic, gpus) := {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": {"elastic": elastic, "roles": [
	{"name": "Master", "template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]}}},
	{"name": "Worker", "replicas": 2, "template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]}}},
]}}

messages(elastic, gpus) := found if {
	found := {v.msg | some v in elastic_bounds.violation} with input as {"object": object(elastic, gpus), "parameters": parameters}
}

test_within_bounds if {
	messages({"minReplicas": 1, "maxReplicas": 10}, 1) == set()
	messages({"minReplicas": 1, "maxReplicas": 7}, 2) == set()
	messages(null, 100) == set()
}

test_workers if {
	messages({"maxReplicas": 11}, 0) == {"may grow to 11 workers; at most 10 are allowed"}
}

test_gpus if {
	messages({"maxReplicas": 8}, 2) == {"may grow to 18 GPUs; at most 16 are allowed"}
}

test_nothing_left if {
	count(elastic_bounds.warn) == 1 with input as {"object": object({"minReplicas": 0}, 1), "parameters": parameters}
	count(elastic_bounds.warn) == 0 with input as {"object": object({"minReplicas": 1}, 1), "parameters": parameters}
}
