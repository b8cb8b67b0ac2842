package gang_minimum

import data.penstock.workload

violation contains {"msg": msg, "field": "spec.gang.minAvailable", "fix": fix} if {
	input.object.spec.gang.minAvailable < workload.pods_total
	least := input.object.spec.gang.minAvailable
	is_number(least)
	least < needed
	msg := sprintf("may start with %v pods and computes with %v or more", [least, needed])
	fix := sprintf("write %v", [needed])
}

# An elastic job needs its least workers and everybody else.
needed := (workload.pods_total - sum(workers)) + min(array.concat(workers, [input.object.spec.elastic.minReplicas])) if {
	is_number(input.object.spec.elastic.minReplicas)
} else := workload.pods_total

workers := [role.replicas | some role in workload.roles_where(["name"], ["Worker"])]
