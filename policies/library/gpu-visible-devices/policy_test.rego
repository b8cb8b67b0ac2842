package gpu_visible_devices_test

import data.gpu_visible_devices

fields(env) := found if {
	found := {v.field | some v in gpu_visible_devices.violation} with input as {
		"object": {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "env": env}]}},
		"parameters": {"variables": ["NVIDIA_VISIBLE_DEVICES"], "harmless": ["", "void"]},
	}
}

test_set_by_hand if {
	fields([{"name": "A", "value": "b"}, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]) == {"spec.containers[0].env[1].value"}
	fields([{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]) == set()
	fields([{"name": "NVIDIA_VISIBLE_DEVICES"}]) == set()
	fields(null) == set()
}
