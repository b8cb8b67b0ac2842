package gpu_requests_test

import data.gpu_requests

job(resources) := {
	"apiVersion": "penstock.dev/v1",
	"kind": "TrainingJob",
	"spec": {"roles": [{
		"name": "Worker",
		"template": {"spec": {"containers": [{"name": "pytorch", "resources": resources}]}},
	}]},
}

violations(resources) := found if {
	found := gpu_requests.violation with input as {
		"object": job(resources),
		"parameters": {"resources": ["*"]},
	}
}

test_equal_by_value_passes if {
	count(violations({"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": 8}})) == 0
}

test_request_below_limit_is_reported_once if {
	violations({"limits": {"nvidia.com/gpu": 3}, "requests": {"nvidia.com/gpu": 1}}) == {{
		"msg": "requests 1 of nvidia.com/gpu and is limited to 3",
		"field": "spec.roles[0].template.spec.containers[0].resources.requests[nvidia.com/gpu]",
		"fix": "write 3 in both places, or leave the request out",
	}}
}

test_fraction_is_one_fault_not_two if {
	count(violations({"limits": {"nvidia.com/gpu": "0.5"}})) == 1
}

test_nulls_are_not_there if {
	count(violations({"limits": null})) == 0
}

test_null_quantity_is_reported if {
	count(violations({"limits": {"nvidia.com/gpu": null}})) == 1
}
