package ray_host_counts

import data.penstock.workload

violation contains {"msg": msg, "field": concat("", [role.path, ".hosts"]), "fix": fix} if {
	some role in workload.roles_having(["pod", "nodeSelector"])
	is_object(role.spec.scaling)
	topology := role.pod.nodeSelector[input.parameters.topology]
	regex.match(`^[0-9]{1,4}(x[0-9]{1,4}){1,2}$`, topology)
	some pod in workload.pods
	pod.pod_path == role.pod_path
	each := pod.demand[input.parameters.resource]
	each > 0
	chips := product([to_number(side) | some side in split(topology, "x")])
	chips % each == 0
	hosts := chips / each
	has := workload.number_or(object.get(role.spec, "hosts", 1), 1)
	has != hosts
	msg := sprintf("has %v hosts with %v TPUs each in a replica, and a slice of topology %s is %v hosts", [has, each, topology, hosts])
	fix := sprintf("write %v, or select the topology of as many TPUs", [hosts])
}
