package mpi_slots_test

import data.mpi_slots

messages(framework, slots, gpus) := found if {
	found := {v.msg | some v in mpi_slots.violation} with input as {
		"object": {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": {
			"framework": framework,
			"mpi": {"slotsPerWorker": slots},
			"roles": [{"name": "Launcher"}, {"name": "Worker", "template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]}}}],
		}},
		"parameters": {"resources": ["nvidia.com/gpu"]},
	}
}

test_a_slot_for_each_gpu if {
	messages("MPI", 2, 2) == set()
	messages("MPI", 4, 0) == set()
	messages("PyTorch", 1, 2) == set()
}

test_too_few_and_too_many if {
	messages("MPI", 1, 2) == {"starts 1 processes in workers that have 2 GPUs each: the others are held idle"}
	messages("MPI", 4, 2) == {"starts 4 processes in workers that have 2 GPUs each: some share one"}
}
