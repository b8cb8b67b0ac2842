package ray_head_gpus_test

import data.ray_head_gpus

fields(head, group) := found if {
	cluster := {"apiVersion": "penstock.dev/v1", "kind": "RayCluster", "spec": {"roles": [role("Head", head), role("a", group)]}}
	found := {v.field | some v in ray_head_gpus.violation} with input as {
		"object": cluster,
		"parameters": {"most": 1, "resources": ["nvidia.com/gpu"]},
	}
}

role(name, gpus) := {"name": name, "template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]}}}

test_heads if {
	fields(2, 8) == {"spec.roles[0].template.spec.containers[0].resources.limits[nvidia.com/gpu]"}
	fields(1, 8) == set()
	fields(2, 0) == set()
}
