package torch_processes

import data.penstock.workload

violation contains {"msg": msg, "field": "spec.pytorch.processesPerNode", "fix": fix} if {
	input.object.spec.framework == "PyTorch"
	not input.object.spec.pytorch.processesPerNode in ["auto", "cpu", "gpu"]
	workload.most_per_pod(input.parameters.resources) > 0
	written := input.object.spec.pytorch.processesPerNode
	processes := to_number(written)
	some pod in workload.pods
	gpus := workload.demand_for(pod, input.parameters.resources)
	gpus > 0
	gpus != processes
	msg := sprintf("starts %v processes in pods of %s that have %v GPUs each", [processes, pod.role, gpus])
	fix := sprintf("write auto or %v, or ask for %v GPUs per pod", [gpus, processes])
}

violation contains {"msg": msg, "field": "spec.pytorch.processesPerNode", "fix": fix} if {
	input.object.spec.pytorch.processesPerNode == "gpu"
	some pod in workload.pods
	count([name | some name, n in pod.demand; n > 0]) + pod.claims == 0
	msg := sprintf("starts a process for each GPU in pods of %s, which have none", [pod.role])
	fix := "write auto or cpu, or ask for GPUs"
}
