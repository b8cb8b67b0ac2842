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
	largest(key, each) < needs
}

violation contains fault("spec.gang.topology.required", key, needs) if {
	key := input.object.spec.gang.topology.required
	needs := workload.total_of(input.parameters.resources)
	needs > 0
	largest(key, 1) < needs
}

# largest is how many GPUs the largest domain can give to pods that need so many
# each: what is left over on a node helps nobody.
largest(key, each) := max({n |
	some domain in {label |
		some node in data.inventory.cluster.v1.Node
		label := node.metadata.labels[key]
	}
	n := sum([given |
		some node in data.inventory.cluster.v1.Node
		node.metadata.labels[key] == domain
		given := floor(offered(node) / each) * each
	])
} | {0})

offered(node) := sum([n |
	some name, amount in node.status.allocatable
	workload.matches_any(name, input.parameters.resources)
	n := workload.quantity(amount)
])

fault(field, key, needs) := {
	"msg": sprintf("needs %v GPUs within one %s; the largest has %v", [needs, key, largest(key, 1)]),
	"field": field,
	"fix": "use fewer pods or fewer GPUs, a wider domain, or preferred instead of required",
}
