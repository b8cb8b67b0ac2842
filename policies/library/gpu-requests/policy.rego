package gpu_requests

import data.penstock.workload

# The names are patterns; by default all extended resources are held to the
# rule, since Kubernetes holds all of them to it.
asks := [ask |
	some ask in workload.asks
	workload.matches_any(ask.name, input.parameters.resources)
]

violation contains {"msg": msg, "field": workload.ask_field(ask), "fix": fix} if {
	some ask in asks
	not whole(ask.value)
	msg := sprintf("asks for %v of %s, which comes in whole devices only", [ask.value, ask.name])
	fix := whole_fix(ask)
}

violation contains {"msg": msg, "field": workload.ask_field(ask), "fix": fix} if {
	some ask in asks
	ask.list == "requests"
	whole(ask.value)
	not ask.resources.limits[ask.name]
	msg := sprintf("requests %v of %s without a limit", [ask.value, ask.name])
	fix := sprintf("set limits to %v as well", [ask.value])
}

violation contains {"msg": msg, "field": workload.ask_field(ask), "fix": fix} if {
	some ask in asks
	ask.list == "requests"
	whole(ask.value)
	limit := ask.resources.limits[ask.name]
	whole(limit)
	workload.quantity(limit) != workload.quantity(ask.value)
	msg := sprintf("requests %v of %s and is limited to %v", [ask.value, ask.name, limit])
	fix := sprintf("write the same number in both places, or leave the request out: %v", [limit])
}

# Zero is whole: it is how a template's ask is taken back.
whole(value) if {
	n := workload.quantity(value)
	n >= 0
	floor(n) == n
}

whole_fix(ask) := "ask for a whole number; to share a device use a MIG profile or a shared resource" if {
	n := workload.quantity(ask.value)
	n > 0
} else := "write a whole number of devices"
