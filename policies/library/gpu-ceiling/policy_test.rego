package gpu_ceiling_test

import data.gpu_ceiling

pod(gpus) := {"spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}}}]}}

violations(roles) := found if {
	found := gpu_ceiling.violation with input as {
		"object": {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": {"roles": roles}},
		"parameters": {"maxPerPod": 8, "maxPerJob": 16, "resources": ["nvidia.com/gpu"]},
	}
}

test_within_both_ceilings if {
	count(violations([{"name": "Worker", "replicas": 2, "template": pod("8")}])) == 0
}

test_per_pod if {
	messages := {v.msg | some v in violations([{"name": "Worker", "template": pod(9)}])}
	messages == {"asks for 9 GPUs per pod; at most 8 are allowed"}
}

test_total_is_reported_at_the_role_that_takes_most if {
	violations([
		{"name": "Master", "replicas": 1, "template": pod(8)},
		{"name": "Worker", "replicas": 2, "template": pod(8)},
	]) == {{
		"msg": "asks for 24 GPUs in total; at most 16 are allowed",
		"field": "spec.roles[1].replicas",
		"fix": "use fewer pods or fewer GPUs per pod: 8 too many",
	}}
}

test_nothing_asked_nothing_said if {
	count(violations([])) == 0
	count(violations(null)) == 0
	count(violations([null, {"name": "Worker", "template": null}])) == 0
}
