package gpu_resource_names_test

import data.gpu_resource_names

parameters := {
	"allowed": ["nvidia.com/gpu", "nvidia.com/mig-*", "nvidia.com/gpu.shared", "amd.com/gpu"],
	"looksLikeAccelerator": "gpu|(^|[^a-z])(mig|nvidia)([^a-z]|$)",
	"looksLikeNetwork": "rdma",
}

fixes(name) := found if {
	found := {v.fix | some v in gpu_resource_names.violation} with input as {
		"object": {
			"apiVersion": "v1",
			"kind": "Pod",
			"spec": {"containers": [{"name": "main", "resources": {"limits": {name: 1}}}]},
		},
		"parameters": parameters,
	}
}

test_known_names_pass if {
	every name in ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "rdma/gpu", "cpu", "example.com/licence"] {
		count(fixes(name)) == 0
	}
}

test_nearest_name_is_suggested if {
	fixes("nvidia/gpu") == {"did you mean nvidia.com/gpu?"}
	fixes("gpu") == {"did you mean nvidia.com/gpu?"}
	fixes("nvidia.com/gpus") == {"did you mean nvidia.com/gpu?"}
	fixes("nvidia.com/gpu-shared") == {"did you mean nvidia.com/gpu.shared?"}
	fixes("amd/gpu") == {"did you mean amd.com/gpu?"}
	fixes("nvidia.com/mig1g.10gb") == {"did you mean nvidia.com/mig-<profile>?"}
	fixes("nvidia.com/gup") == {"did you mean nvidia.com/gpu?"}
}
