package gpu_tolerations_test

import data.gpu_tolerations

fields(tolerations) := found if {
	found := {v.field | some v in gpu_tolerations.violation} with input as {
		"object": {"apiVersion": "v1", "kind": "Pod", "spec": {
			"tolerations": tolerations,
			"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
		}},
		"parameters": {"taints": [{"resources": ["nvidia.com/gpu"], "key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
	}
}

test_tolerated if {
	every toleration in [
		{"operator": "Exists"},
		{"key": "nvidia.com/gpu", "operator": "Exists"},
		{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
		{"key": "nvidia.com/gpu", "value": "present"},
		{"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"},
	] {
		fields([toleration]) == set()
	}
}

test_not_tolerated if {
	fields(null) == {"spec.tolerations"}
	fields([{"key": "example.com/spot", "operator": "Exists"}]) == {"spec.tolerations"}
	fields([{"key": "nvidia.com/gpus", "operator": "Exists"}]) == {"spec.tolerations[0].key"}
	fields([{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}]) == {"spec.tolerations[0].effect"}
	fields([{"key": "nvidia.com/gpu", "value": "true"}]) == {"spec.tolerations[0].value"}
}

test_a_queue_adds_it if {
	count(gpu_tolerations.violation) == 0 with input as {
		"object": {"apiVersion": "batch/v1", "kind": "Job", "spec": {"suspend": true, "template": {"spec": {"containers": [{
			"name": "a",
			"resources": {"limits": {"nvidia.com/gpu": 1}},
		}]}}}},
		"parameters": {"taints": [{"resources": ["nvidia.com/gpu"], "key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
	}
}
