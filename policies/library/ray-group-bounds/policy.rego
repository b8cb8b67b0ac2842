package ray_group_bounds

import data.penstock.workload

violation contains endless(role) if {
	input.object.spec.autoscaler.mode == "Enabled"
	some i, role in workload.roles
	unbounded(role)
	each(i) > 0
}

warn contains endless(role) if {
	input.object.spec.autoscaler.mode == "Enabled"
	some i, role in workload.roles
	unbounded(role)
	each(i) == 0
}

violation contains {"msg": msg, "field": field(role), "fix": fix} if {
	input.object.spec.autoscaler.mode == "Enabled"
	some i, role in workload.roles
	is_object(role.spec.scaling)
	not unbounded(role)
	pods[i] > input.parameters.maxWorkers
	msg := sprintf("may grow to %v workers; at most %v are allowed", [pods[i], input.parameters.maxWorkers])
	fix := sprintf("write at most %v", [floor(input.parameters.maxWorkers / hosts(role))])
}

violation contains {"msg": msg, "field": field(workload.roles[widest]), "fix": fix} if {
	input.object.spec.autoscaler.mode == "Enabled"
	total := sum(pods)
	total > input.parameters.maxPods
	every n in pods { n <= input.parameters.maxWorkers }
	msg := sprintf("may grow to %v pods in total; at most %v are allowed", [total, input.parameters.maxPods])
	fix := sprintf("lower the bounds of the groups: %v too many", [total - input.parameters.maxPods])
	widest := min([i | some i, n in pods; n == max(pods)])
}

violation contains {"msg": msg, "field": field(workload.roles[hungriest]), "fix": fix} if {
	input.object.spec.autoscaler.mode == "Enabled"
	total := sum(gpus)
	total > input.parameters.maxGpus
	msg := sprintf("may grow to %v GPUs in total; at most %v are allowed", [total, input.parameters.maxGpus])
	fix := sprintf("lower the bounds of the groups: %v too many", [total - input.parameters.maxGpus])
	hungriest := min([i | some i, n in gpus; n == max(gpus)])
}

# pods and gpus are those of each role at full size, in the order of
# workload.roles. Of a role without a bound it is what it has.
pods := [n | some role in workload.roles; n := largest(role)]

gpus := [n | some i, _ in workload.roles; n := pods[i] * each(i)]

each(i) := workload.demand_for(workload.pods[i], input.parameters.resources)

largest(role) := max([role.replicas, role.spec.scaling.maxReplicas * hosts(role)]) if {
	is_number(role.spec.scaling.maxReplicas)
	not unbounded(role)
} else := role.replicas

hosts(role) := workload.number_or(object.get(role.spec, "hosts", 1), 1)

# KubeRay writes the largest number that there is where its author wrote none.
unbounded(role) if {
	is_object(role.spec.scaling)
	workload.number_or(object.get(role.spec.scaling, "maxReplicas", 2147483647), 2147483647) >= 2147483647
}

field(role) := concat("", [role.path, ".scaling.maxReplicas"]) if {
	is_object(role.spec.scaling)
} else := role.replicas_path

endless(role) := {
	"msg": sprintf("lets the autoscaler add workers to %s without a bound", [role.name]),
	"field": field(role),
	"fix": "write how many there may be at most",
}
