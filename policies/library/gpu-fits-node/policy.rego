package gpu_fits_node

import data.penstock.workload

violation contains {"msg": msg, "field": field, "fix": fix} if {
	some wish in workload.wishes(input.parameters.resources)
	not workload.met(wish, nodes)
	some i, pod in workload.pods
	pod.demand[wish.name] == wish.needs
	workload.node_selector(workload.roles[i].pod) == wish.selector
	[msg, field, fix] := verdict(pod, wish)
}

default nodes := {}

nodes := data.inventory.cluster.v1.Node

# Without the selector there may be a node.
verdict(pod, wish) := [msg, concat("", [pod.pod_path, ".nodeSelector"]), fix] if {
	workload.met({"name": wish.name, "needs": wish.needs, "selector": {}}, nodes)
	msg := sprintf("selects nodes of which none offers %v of %s", [wish.needs, wish.name])
	fix := sprintf("ask for less, or select other nodes; those of the fleet with as many are %s", [concat(", ", with_as_many(wish.name, wish.needs))])
} else := [msg, workload.device_field(device), fix] if {
	device := [found |
		some found in workload.devices
		found.name == wish.name
		startswith(found.path, concat("", [pod.pod_path, "."]))
	][0]
	msg := sprintf("needs %v of %s in one pod; %s", [wish.needs, wish.name, most(wish.name)])
	fix := "ask for what a node has, or use more pods"
}

most(name) := sprintf("the largest node offers %v", [max(offered(name))]) if {
	count(offered(name)) > 0
} else := "no node offers it"

offered(name) := {n |
	some node in nodes
	n := workload.quantity(node.status.allocatable[name])
	n > 0
}

# with_as_many names five nodes at most.
with_as_many(name, needs) := array.slice(
	[key |
		some key, node in nodes
		workload.quantity(node.status.allocatable[name]) >= needs
	],
	0, 5,
)
