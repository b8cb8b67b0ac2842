package gang_consistency

import data.penstock.workload

violation contains {"msg": msg, "field": concat("", [role.pod_path, ".schedulerName"]), "fix": fix} if {
	input.object.spec.gang
	some role in workload.roles_having(["pod", "schedulerName"])
	role.pod.schedulerName != scheduler
	msg := sprintf("is placed by %s and the rest of the gang by %s", [role.pod.schedulerName, scheduler])
	fix := "write the same scheduler everywhere, or once in gang.scheduler"
}

violation contains {"msg": msg, "field": concat("", [role.pod_path, ".priorityClassName"]), "fix": fix} if {
	input.object.spec.gang
	some role in workload.roles_having(["pod", "priorityClassName"])
	role.pod.priorityClassName != priority
	msg := sprintf("has priority %s and the rest of the gang %s", [role.pod.priorityClassName, priority])
	fix := "write the same priority everywhere, or once in gang.priorityClassName"
}

# What the gang says, or else what the first role that says anything does.
scheduler := input.object.spec.gang.scheduler if {
	is_string(input.object.spec.gang.scheduler)
} else := workload.roles_having(["pod", "schedulerName"])[0].pod.schedulerName

priority := input.object.spec.gang.priorityClassName if {
	is_string(input.object.spec.gang.priorityClassName)
} else := workload.roles_having(["pod", "priorityClassName"])[0].pod.priorityClassName
