package leader_role

import data.penstock.workload

violation contains {"msg": msg, "field": "spec.roles", "fix": fix} if {
	not input.object.spec.elastic
	leaders := input.parameters.leaders[input.object.spec.framework]
	count(workload.roles_where(["name"], leaders)) == 0
	workload.most_replicas > 1
	msg := sprintf("has %v pods and no %s that they could meet at", [workload.pods_total, concat(" or ", leaders)])
	fix := sprintf("make one of the workers a %s with one replica, or add elastic bounds: then they meet by rendezvous", [leaders[0]])
}
