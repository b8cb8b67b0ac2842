package elastic_bounds

import data.penstock.workload

violation contains {"msg": msg, "field": "spec.elastic.maxReplicas", "fix": fix} if {
	input.object.spec.elastic.maxReplicas > input.parameters.maxWorkers
	most := input.object.spec.elastic.maxReplicas
	is_number(most)
	msg := sprintf("may grow to %v workers; at most %v are allowed", [most, input.parameters.maxWorkers])
	fix := sprintf("write at most %v", [input.parameters.maxWorkers])
}

violation contains {"msg": msg, "field": "spec.elastic.maxReplicas", "fix": fix} if {
	input.object.spec.elastic.maxReplicas
	(workload.most_per_pod(input.parameters.resources) * input.object.spec.elastic.maxReplicas) + workload.total_of(input.parameters.resources) > input.parameters.maxGpus
	some worker in workload.pods
	worker.role == "Worker"
	each := workload.demand_for(worker, input.parameters.resources)
	each > 0
	others := workload.total_of(input.parameters.resources) - (each * worker.replicas)
	grown := others + (each * input.object.spec.elastic.maxReplicas)
	grown > input.parameters.maxGpus
	msg := sprintf("may grow to %v GPUs; at most %v are allowed", [grown, input.parameters.maxGpus])
	fix := sprintf("write at most %v", [floor((input.parameters.maxGpus - others) / each)])
}

warn contains {"msg": msg, "field": "spec.elastic.minReplicas", "fix": fix} if {
	least := input.object.spec.elastic.minReplicas
	least < input.parameters.minWorkers
	is_number(least)
	msg := sprintf("may shrink to %v workers", [least])
	fix := sprintf("write at least %v; to free all pods suspend the job", [input.parameters.minWorkers])
}
