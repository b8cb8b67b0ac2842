package gang_domain

import data.penstock.workload

violation contains fault(concat("", [role.path, ".topology.required"]), key, needs) if {
	some role in workload.roles_having(["spec", "topology", "required"])
	key := role.spec.topology.required
	some pod in workload.pods
	pod.pod_path == role.pod_path
	each := workload.demand_for(pod, input.parameters.resources)
	each > 0
	needs := each * role.replicas
	not held(key, each, needs)
}

violation contains fault("spec.gang.topology.required", key, needs) if {
	key := input.object.spec.gang.topology.required
	needs := workload.total_of(input.parameters.resources)
	needs > 0
	not held(key, 1, needs)
}

# held says that one domain can give as many to pods that need so many each. The
# first that can ends the search.
held(key, each, needs) if {
	some domain in domains(key)
	given(key, domain, each) >= needs
}

domains(key) := {domain |
	some node in data.inventory.cluster.v1.Node
	domain := node.metadata.labels[key]
}

# What is left over on a node helps nobody.
given(key, domain, each) := sum([n |
	some node in data.inventory.cluster.v1.Node
	node.metadata.labels[key] == domain
	n := floor(offered(node) / each) * each
])

largest(key) := max({n | some domain in domains(key); n := given(key, domain, 1)} | {0})

offered(node) := sum([n |
	some name, amount in node.status.allocatable
	workload.matches_any(name, input.parameters.resources)
	n := workload.quantity(amount)
])

fault(field, key, needs) := {
	"msg": sprintf("needs %v GPUs within one %s; the largest has %v", [needs, key, largest(key)]),
	"field": field,
	"fix": "use fewer pods or fewer GPUs, a wider domain, or preferred instead of required",
}
