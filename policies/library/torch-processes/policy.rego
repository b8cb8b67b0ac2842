package torch_processes

import data.penstock.workload

# Where the largest pods have another number of GPUs than there are processes,
# or, that being right, smaller ones have.
violation contains fault(pod, processes) if {
	processes := to_number(input.object.spec.pytorch.processesPerNode)
	workload.most_per_pod(input.parameters.resources) != processes
	input.object.spec.framework == "PyTorch"
	some pod in unlike(processes)
}

violation contains fault(pod, processes) if {
	processes := to_number(input.object.spec.pytorch.processesPerNode)
	workload.total_of(input.parameters.resources) != processes * workload.pods_total
	input.object.spec.framework == "PyTorch"
	some pod in unlike(processes)
}

violation contains {"msg": msg, "field": "spec.pytorch.processesPerNode", "fix": fix} if {
	input.object.spec.pytorch.processesPerNode == "gpu"
	some pod in workload.pods
	count([name | some name, n in pod.demand; n > 0]) + pod.claims == 0
	msg := sprintf("starts a process for each GPU in pods of %s, which have none", [pod.role])
	fix := "write auto or cpu, or ask for GPUs"
}

unlike(processes) := [pod |
	some pod in workload.pods
	not workload.demand_for(pod, input.parameters.resources) in {0, processes}
]

fault(pod, processes) := {
	"msg": sprintf("starts %v processes in pods of %s that have %v GPUs each", [processes, pod.role, gpus]),
	"field": "spec.pytorch.processesPerNode",
	"fix": sprintf("write auto or %v, or ask for %v GPUs per pod", [gpus, processes]),
} if {
	gpus := workload.demand_for(pod, input.parameters.resources)
}
