package gpu_node_selectors_test

import data.gpu_node_selectors

parameters := {"absent": [
	{"resources": ["nvidia.com/gpu"], "labels": ["nvidia.com/gpu.present"], "values": ["false"]},
	{"resources": ["nvidia.com/gpu"], "labels": ["amd.com/*"]},
]}

fields(pod) := found if {
	found := {v.field | some v in gpu_node_selectors.violation} with input as {
		"object": {"apiVersion": "v1", "kind": "Pod", "spec": object.union(pod, {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 4}}}]})},
		"parameters": parameters,
	}
}

affinity(terms) := {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}

term(expression) := {"matchExpressions": [expression]}

test_what_can_match if {
	fields({"nodeSelector": {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "8", "zone": "a"}}) == set()
	fields(affinity([term({"key": "amd.com/gpu", "operator": "Exists"}), term({"key": "b", "operator": "Exists"})])) == set()
	fields(affinity([term({"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true", "false"]})])) == set()
}

test_what_cannot_match if {
	fields({"nodeSelector": {"nvidia.com/gpu.present": "false"}}) == {"spec.nodeSelector[nvidia.com/gpu.present]"}
	fields({"nodeSelector": {"amd.com/gpu.vram": "64G"}}) == {"spec.nodeSelector[amd.com/gpu.vram]"}
	fields({"nodeSelector": {"nvidia.com/gpu.count": "2"}}) == {"spec.nodeSelector[nvidia.com/gpu.count]"}
	fields(affinity([term({"key": "nvidia.com/gpu.present", "operator": "DoesNotExist"})])) == {"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"}
}
