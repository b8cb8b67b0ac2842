package ray_host_counts

import data.penstock.workload

violation contains {"msg": msg, "field": concat("", [role.path, ".hosts"]), "fix": fix} if {
	some i, role in workload.roles
	is_object(role.spec.scaling)
	topology := role.pod.nodeSelector[input.parameters.topology]
	regex.match(`^[0-9]{1,4}(x[0-9]{1,4}){1,2}$`, topology)
	each := workload.pods[i].demand[input.parameters.resource]
	each > 0
	chips := product([to_number(side) | some side in split(topology, "x")])
	chips % each == 0
	hosts := chips / each
	has := workload.number_or(object.get(role.spec, "hosts", 1), 1)
	has != hosts
	msg := sprintf("has %v hosts of %v TPUs in a replica, and topology %s is %v hosts", [has, each, topology, hosts])
	fix := sprintf("write %v, or select the topology of as many TPUs", [hosts])
}
