package topology_keys

import data.penstock.workload

violation contains fault(concat("", [role.path, ".topology"]), wish, key) if {
	some role in workload.roles
	some wish, key in unknown(role.spec.topology)
	startswith(input.object.apiVersion, "penstock.dev/")
}

violation contains fault("spec.gang.topology", wish, key) if {
	some wish, key in unknown(input.object.spec.gang.topology)
}

unknown(topology) := {wish: key |
	some wish in ["required", "preferred"]
	key := topology[wish]
	is_string(key)
	not key in input.parameters.allowed
}

fault(path, wish, key) := {
	"msg": sprintf("%s is not a topology of this fleet", [key]),
	"field": concat(".", [path, wish]),
	"fix": sprintf("use one of %s", [concat(", ", input.parameters.allowed)]),
}
