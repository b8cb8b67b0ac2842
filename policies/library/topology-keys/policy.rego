package topology_keys

import data.penstock.workload

violation contains {"msg": msg, "field": concat(".", [place.path, wish]), "fix": fix} if {
	some place in places
	some wish in ["required", "preferred"]
	key := place.topology[wish]
	is_string(key)
	not key in input.parameters.allowed
	msg := sprintf("%s is not a topology of this fleet", [key])
	fix := sprintf("use one of %s", [concat(", ", input.parameters.allowed)])
}

places contains {"path": concat("", [role.path, ".topology"]), "topology": role.spec.topology} if {
	some role in workload.roles
	startswith(input.object.apiVersion, "penstock.dev/")
}

places contains {"path": "spec.gang.topology", "topology": input.object.spec.gang.topology}
