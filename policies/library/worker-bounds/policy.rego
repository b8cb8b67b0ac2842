package worker_bounds

import data.penstock.workload

violation contains {"msg": msg, "field": role.replicas_path, "fix": fix} if {
	workload.most_replicas > input.parameters.maxWorkers
	some role in workload.roles
	works(role)
	role.replicas > input.parameters.maxWorkers
	msg := sprintf("asks for %v workers; at most %v are allowed", [role.replicas, input.parameters.maxWorkers])
	fix := sprintf("ask for at most %v workers", [input.parameters.maxWorkers])
}

violation contains {"msg": msg, "field": workload.roles[largest].replicas_path, "fix": fix} if {
	workload.pods_total > input.parameters.maxPods
	msg := sprintf("asks for %v pods in total; at most %v are allowed", [workload.pods_total, input.parameters.maxPods])
	fix := sprintf("use fewer pods: %v too many", [workload.pods_total - input.parameters.maxPods])
}

works(role) if role.name == "Worker"

# Of a service every group that scales works.
works(role) if is_object(role.spec.scaling)

# The role that has most is where the total is reported.
largest := min([i | some i, role in workload.roles; role.replicas == workload.most_replicas])
