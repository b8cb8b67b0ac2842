package torch_processes_test

import data.torch_processes

messages(processes, gpus) := found if {
	found := {v.msg | some v in torch_processes.violation} with input as {
		"object": {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": {
			"framework": "PyTorch",
			"pytorch": {"processesPerNode": processes},
			"roles": [{"name": "Worker", "template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]}}}],
		}},
		"parameters": {"resources": ["nvidia.com/gpu"]},
	}
}

test_a_process_for_each_gpu if {
	messages("8", 8) == set()
	messages("auto", 8) == set()
	messages("gpu", 8) == set()
	messages("4", 0) == set()
}

test_too_few_and_too_many if {
	messages("2", 8) == {"starts 2 processes in pods of Worker that have 8 GPUs each"}
	messages("8", 2) == {"starts 8 processes in pods of Worker that have 2 GPUs each"}
}

test_no_gpu if {
	messages("gpu", 0) == {"starts a process for each GPU in pods of Worker, which have none"}
}
