package worker_bounds

import data.penstock.workload

violation contains {"msg": msg, "field": role.replicas_path, "fix": fix} if {
	some role in workload.roles
	role.name == "Worker"
	role.replicas > input.parameters.maxWorkers
	msg := sprintf("asks for %v workers; at most %v are allowed", [role.replicas, input.parameters.maxWorkers])
	fix := sprintf("ask for at most %v workers", [input.parameters.maxWorkers])
}

violation contains {"msg": msg, "field": "spec.elastic.maxReplicas", "fix": fix} if {
	most := input.object.spec.elastic.maxReplicas
	is_number(most)
	most > input.parameters.maxWorkers
	msg := sprintf("may grow to %v workers; at most %v are allowed", [most, input.parameters.maxWorkers])
	fix := sprintf("write at most %v", [input.parameters.maxWorkers])
}

violation contains {"msg": msg, "field": workload.roles[largest].replicas_path, "fix": fix} if {
	total > input.parameters.maxPods
	msg := sprintf("asks for %v pods in total; at most %v are allowed", [total, input.parameters.maxPods])
	fix := sprintf("use fewer pods: %v too many", [total - input.parameters.maxPods])
}

total := sum([role.replicas | some role in workload.roles])

# The role that has most is where the total is reported.
largest := min([i | some i, role in workload.roles; role.replicas == most_pods])

most_pods := max([role.replicas | some role in workload.roles])
