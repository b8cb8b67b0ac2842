package ray_gpu_params_test

import data.ray_gpu_params

found(ray, limits) := result if {
	role := {"name": "a", "ray": ray, "template": {"spec": {"containers": [{"resources": {"limits": limits}}]}}}
	result := [count(ray_gpu_params.violation), count(ray_gpu_params.warn)] with input as {
		"object": {"apiVersion": "penstock.dev/v1", "kind": "RayCluster", "spec": {"roles": [role]}},
		"parameters": {"noGpus": ["rdma/*"], "resources": ["nvidia.com/gpu", "nvidia.com/mig-*"]},
	}
}

nothing := [0, 0]

refused := [1, 0]

warned := [0, 1]

gpus(text) := {"startParams": {"num-gpus": text}}

test_gpus_and_limits if {
	found(gpus("2"), {"nvidia.com/gpu": "2"}) == nothing
	found(gpus("2"), {"nvidia.com/mig-1g.10gb": 2, "rdma/hca": 1}) == nothing
	found(gpus("3"), {"nvidia.com/gpu": 2}) == refused
	found(gpus("1"), {"cpu": 1}) == refused
	found(gpus("1"), {"nvidia.com/gpu": 2}) == warned
	found({"resources": {"GPU": "3"}}, {"nvidia.com/gpu": 2}) == refused
}

test_what_is_no_number if {
	found(gpus("0.5"), {"nvidia.com/gpu": 1}) == refused
	found(gpus("two"), {"nvidia.com/gpu": 2}) == refused
	found(gpus("$N"), {}) == nothing
	found(gpus(2), {}) == nothing
}

test_what_is_not_known if {
	found(gpus("2"), {"example.com/card": 1}) == nothing
	found({"startParams": {"resources": "{"}}, {}) == nothing
	found({"startParams": {"resources": "\"5\""}}, {}) == nothing
}

test_resources_as_json if {
	every text in [`{"GPU": 1}`, `'{"CPU": 1}'`, `"{\"memory\": 1}"`] {
		found({"startParams": {"resources": text}}, {}) == refused
	}
	found({"startParams": {"resources": `"{\"special\": 1}"`}}, {}) == nothing
	found({"startParams": {"resources": `{"TPU": 8}`}}, {"google.com/tpu": 8}) == nothing
	found({"startParams": {"resources": `{"TPU": 8}`}}, {"google.com/tpu": 4}) == refused
}
