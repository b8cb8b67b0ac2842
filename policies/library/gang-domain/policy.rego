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
	not workload.held(key, each, needs, input.parameters.resources, nodes)
}

violation contains fault("spec.gang.topology.required", key, needs) if {
	key := input.object.spec.gang.topology.required
	needs := workload.total_of(input.parameters.resources)
	needs > 0
	not workload.held(key, 1, needs, input.parameters.resources, nodes)
}

default nodes := {}

nodes := data.inventory.cluster.v1.Node

largest(key) := max({n |
	some domain in workload.domains(key, nodes)
	n := workload.given(domain, key, input.parameters.resources, 1, nodes)
} | {0})

fault(field, key, needs) := {
	"msg": sprintf("needs %v GPUs within one %s; the largest has %v", [needs, key, largest(key)]),
	"field": field,
	"fix": "use fewer pods or fewer GPUs, a wider domain, or preferred instead of required",
}
