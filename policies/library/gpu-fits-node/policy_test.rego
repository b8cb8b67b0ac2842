package gpu_fits_node_test

import data.gpu_fits_node

node(labels, gpus) := {"metadata": {"labels": labels}, "status": {"allocatable": {"nvidia.com/gpu": gpus}}}

nodes := {"Node": {
	"a": node({"nvidia.com/gpu.product": "L4"}, "4"),
	"b": node({"nvidia.com/gpu.product": "H100"}, "8"),
	"c": {"metadata": {}, "status": {"allocatable": {"cpu": "8"}}},
}}

found(selector, gpus) := violations if {
	violations := {[v.field, v.msg] | some v in gpu_fits_node.violation} with data.inventory as {"cluster": {"v1": nodes}}
		with input as {
			"object": {"apiVersion": "v1", "kind": "Pod", "spec": {
				"nodeSelector": selector,
				"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}],
			}},
			"parameters": {"resources": ["nvidia.com/gpu"]},
		}
}

test_a_node_that_fits if {
	found({}, 8) == set()
	found({"nvidia.com/gpu.product": "L4"}, 4) == set()
	found({"nvidia.com/gpu.product": "A100"}, 0) == set()
}

test_no_node_is_large_enough if {
	found({}, 9) == {["spec.containers[0].resources.limits[nvidia.com/gpu]", "needs 9 of nvidia.com/gpu in one pod; the largest node offers 8"]}
}

test_no_node_of_the_product if {
	found({"nvidia.com/gpu.product": "L4"}, 8) == {["spec.nodeSelector", "selects nodes of which none offers 8 of nvidia.com/gpu"]}
}

test_no_node_at_all if {
	some v in gpu_fits_node.violation with data.inventory as {"cluster": {"v1": {}}}
		with input as {
			"object": {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}},
			"parameters": {"resources": ["nvidia.com/gpu"]},
		}
	v.msg == "needs 1 of nvidia.com/gpu in one pod; no node offers it"
}
