package mpi_slots

import data.penstock.workload

violation contains {"msg": msg, "field": "spec.mpi.slotsPerWorker", "fix": fix} if {
	input.object.spec.framework == "MPI"
	slots := input.object.spec.mpi.slotsPerWorker
	is_number(slots)
	some pod in workload.pods
	pod.role == "Worker"
	gpus := workload.demand_for(pod, input.parameters.resources)
	gpus > 0
	slots != gpus
	msg := sprintf("starts %v processes in workers that have %v GPUs each: %s", [slots, gpus, consequence(slots, gpus)])
	fix := sprintf("write %v, or ask for %v GPUs per worker", [gpus, slots])
}

consequence(slots, gpus) := "the others are held idle" if slots < gpus

consequence(slots, gpus) := "some share one" if slots > gpus
