package topology_keys

import data.penstock.workload

violation contains fault(concat(".", [role.path, "topology", wish]), key) if {
	some role in workload.roles_having(["spec", "topology"])
	startswith(input.object.apiVersion, "penstock.dev/")
	some wish in ["required", "preferred"]
	key := role.spec.topology[wish]
	not key in input.parameters.allowed
	is_string(key)
}

violation contains fault("spec.gang.topology.required", key) if {
	key := input.object.spec.gang.topology.required
	not key in input.parameters.allowed
	is_string(key)
}

violation contains fault("spec.gang.topology.preferred", key) if {
	key := input.object.spec.gang.topology.preferred
	not key in input.parameters.allowed
	is_string(key)
}

warn contains fault(sprintf("%s.affinity.%s.%s[%d].topologyKey", [role.pod_path, list, required, i]), term.topologyKey) if {
	some role in workload.roles_having(["pod", "affinity"])
	required := "requiredDuringSchedulingIgnoredDuringExecution"
	some list in ["podAffinity", "podAntiAffinity"]
	some i, term in role.pod.affinity[list][required]
	strange(term.topologyKey)
}

warn contains fault(sprintf("%s.topologySpreadConstraints[%d].topologyKey", [role.pod_path, i]), constraint.topologyKey) if {
	some role in workload.roles_having(["pod", "topologySpreadConstraints"])
	some i, constraint in role.pod.topologySpreadConstraints
	constraint.whenUnsatisfiable != "ScheduleAnyway"
	strange(constraint.topologyKey)
}

warn contains fault(sprintf("%s.template.metadata.annotations[kueue.x-k8s.io/podset-required-topology]", [role.path]), key) if {
	some role in workload.roles_having(["spec", "template", "metadata", "annotations", "kueue.x-k8s.io/podset-required-topology"])
	key := role.spec.template.metadata.annotations["kueue.x-k8s.io/podset-required-topology"]
	strange(key)
}

warn contains fault(sprintf("%s.template.metadata.annotations[kueue.x-k8s.io/podset-preferred-topology]", [role.path]), key) if {
	some role in workload.roles_having(["spec", "template", "metadata", "annotations", "kueue.x-k8s.io/podset-preferred-topology"])
	key := role.spec.template.metadata.annotations["kueue.x-k8s.io/podset-preferred-topology"]
	strange(key)
}

strange(key) if {
	is_string(key)
	not key in input.parameters.allowed
}

fault(path, key) := {
	"msg": sprintf("%s is not a topology of this fleet", [key]),
	"field": path,
	"fix": sprintf("use one of %s", [concat(", ", near(key))]),
}

# near are the allowed keys with the same word in them, all where there is none.
near(key) := alike if {
	parts := split(key, "/")
	word := parts[count(parts) - 1]
	word != ""
	alike := [known | some known in input.parameters.allowed; contains(known, word)]
	count(alike) > 0
} else := input.parameters.allowed
