package gpu_fits_node

import data.penstock.workload

violation contains {"msg": msg, "field": field, "fix": fix} if {
	workload.most_per_pod(input.parameters.resources) > 0
	some i, pod in workload.pods
	some name, needs in pod.demand
	needs > 0
	workload.matches_any(name, input.parameters.resources)
	spec := workload.roles[i].pod
	not fits(spec, name, needs)
	[msg, field, fix] := verdict(pod, spec, name, needs)
}

fits(spec, name, needs) if {
	some node in data.inventory.cluster.v1.Node
	workload.quantity(node.status.allocatable[name]) >= needs
	selected(node, spec)
}

selected(node, spec) if {
	every key, value in object.get(workload.object_or_empty(spec), "nodeSelector", {}) {
		node.metadata.labels[key] == value
	}
}

# Without the selector there may be a node.
verdict(pod, spec, name, needs) := [msg, concat("", [pod.pod_path, ".nodeSelector"]), fix] if {
	fits({}, name, needs)
	msg := sprintf("selects nodes of which none offers %v of %s", [needs, name])
	fix := sprintf("ask for less, or select other nodes; those of the fleet with as many are %s", [concat(", ", with_as_many(name, needs))])
} else := [msg, workload.device_field(device), fix] if {
	device := [found |
		some found in workload.devices
		found.name == name
		startswith(found.path, concat("", [pod.pod_path, "."]))
	][0]
	msg := sprintf("needs %v of %s in one pod; %s", [needs, name, most(name)])
	fix := "ask for what a node has, or use more pods"
}

most(name) := sprintf("the largest node offers %v", [max(offered(name))]) if {
	count(offered(name)) > 0
} else := "no node offers it"

offered(name) := {n |
	some node in data.inventory.cluster.v1.Node
	n := workload.quantity(node.status.allocatable[name])
	n > 0
}

# with_as_many names five nodes at most.
with_as_many(name, needs) := array.slice(
	[key |
		some key, node in data.inventory.cluster.v1.Node
		workload.quantity(node.status.allocatable[name]) >= needs
	],
	0, 5,
)
