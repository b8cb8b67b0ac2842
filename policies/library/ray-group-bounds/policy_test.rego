package ray_group_bounds_test

import data.ray_group_bounds

parameters := {"maxWorkers": 10, "maxPods": 15, "maxGpus": 16, "resources": ["nvidia.com/gpu"]}

found(mode, groups) := result if {
	cluster := {"apiVersion": "penstock.dev/v1", "kind": "RayCluster", "spec": {
		"autoscaler": {"mode": mode},
		"roles": array.concat([{"name": "Head"}], groups),
	}}
	result := {
		"deny": [v.msg | some v in ray_group_bounds.violation],
		"warn": [v.msg | some v in ray_group_bounds.warn],
	} with input as {"object": cluster, "parameters": parameters}
}

group(scaling, gpus) := {"name": "a", "replicas": 1, "scaling": scaling, "template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]}}}

nothing := {"deny": [], "warn": []}

test_worst_case if {
	found("Enabled", [group({"maxReplicas": 8}, 2)]) == nothing
	found("Enabled", [group({"maxReplicas": 9}, 2)]).deny == ["may grow to 18 GPUs in total; at most 16 are allowed"]
	found("Enabled", [object.union(group({"maxReplicas": 6}, 0), {"hosts": 2})]).deny == ["may grow to 12 workers; at most 10 are allowed"]
	found("Enabled", [group({"maxReplicas": 8}, 0), group({"maxReplicas": 8}, 0)]).deny == ["may grow to 17 pods in total; at most 15 are allowed"]
}

test_no_bound if {
	found("Enabled", [group({}, 1)]) == {"deny": ["lets the autoscaler add workers to a without a bound"], "warn": []}
	found("Enabled", [group({"maxReplicas": 2147483647}, 0)]) == {"deny": [], "warn": ["lets the autoscaler add workers to a without a bound"]}
}

test_nobody_scales if {
	found("Disabled", [group({}, 1), group({"maxReplicas": 99}, 1)]) == nothing
}
