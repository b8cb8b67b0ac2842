package gpu_mig_mix_test

import data.gpu_mig_mix

fields(containers) := found if {
	found := {v.field | some v in gpu_mig_mix.violation} with input as {
		"object": {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": containers}},
		"parameters": {"slices": ["nvidia.com/mig-*"], "whole": ["nvidia.com/gpu"]},
	}
}

asks(resources) := {"name": "a", "resources": {"limits": resources}}

test_one_of_the_two if {
	fields([asks({"nvidia.com/gpu": 1}), asks({"nvidia.com/gpu": 1})]) == set()
	fields([asks({"nvidia.com/mig-1g.5gb": 1}), asks({"nvidia.com/mig-2g.10gb": 1})]) == set()
	fields([asks({"nvidia.com/mig-1g.5gb": 1, "nvidia.com/gpu": 0})]) == set()
}

test_both if {
	fields([asks({"nvidia.com/gpu": 1}), asks({"nvidia.com/mig-1g.5gb": 1})]) == {"spec.containers[1].resources.limits[nvidia.com/mig-1g.5gb]"}
}
