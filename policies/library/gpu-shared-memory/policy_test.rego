package gpu_shared_memory_test

import data.gpu_shared_memory

fields(pod) := found if {
	found := {v.field | some v in gpu_shared_memory.violation} with input as {
		"object": {"apiVersion": "v1", "kind": "Pod", "spec": pod},
		"parameters": {"from": 2, "resources": ["nvidia.com/gpu"]},
	}
}

container(gpus) := {"name": "a", "resources": {"limits": {"nvidia.com/gpu": gpus}}}

mounting := object.union(container(8), {"volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]})

memory := [{"name": "shm", "emptyDir": {"medium": "Memory"}}]

test_one_gpu_needs_nothing if {
	fields({"containers": [container(1), container(1)]}) == set()
}

test_shared_memory_is_there if {
	fields({"containers": [mounting], "volumes": memory}) == set()
	fields({"containers": [container(8)], "hostIPC": true}) == set()
	fields({"containers": [mounting], "volumes": [{"name": "shm", "hostPath": {"path": "/dev/shm"}}]}) == set()
}

test_what_is_missing if {
	fields({"containers": [container(8)]}) == {"spec.volumes"}
	fields({"containers": [container(8)], "volumes": memory}) == {"spec.containers[0].volumeMounts"}
	fields({"containers": [mounting], "volumes": [{"name": "shm", "emptyDir": {}}]}) == {"spec.volumes[0].emptyDir.medium"}
}
