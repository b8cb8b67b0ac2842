package gang_consistency

import data.penstock.workload

violation contains unplaced(role, scheduler) if {
	scheduler := input.object.spec.gang.scheduler
	is_string(scheduler)
	some role in workload.roles_having(["pod", "schedulerName"])
	role.pod.schedulerName != scheduler
}

# What the gang does not say, the first role that says anything does.
violation contains unplaced(role, scheduler) if {
	input.object.spec.gang
	not input.object.spec.gang.scheduler
	scheduler := workload.roles_having(["pod", "schedulerName"])[0].pod.schedulerName
	some role in workload.roles_having(["pod", "schedulerName"])
	role.pod.schedulerName != scheduler
}

violation contains unequal(role, priority) if {
	priority := input.object.spec.gang.priorityClassName
	is_string(priority)
	some role in workload.roles_having(["pod", "priorityClassName"])
	role.pod.priorityClassName != priority
}

violation contains unequal(role, priority) if {
	input.object.spec.gang
	not input.object.spec.gang.priorityClassName
	priority := workload.roles_having(["pod", "priorityClassName"])[0].pod.priorityClassName
	some role in workload.roles_having(["pod", "priorityClassName"])
	role.pod.priorityClassName != priority
}

unplaced(role, scheduler) := {
	"msg": sprintf("is placed by %s and the rest of the gang by %s", [role.pod.schedulerName, scheduler]),
	"field": concat("", [role.pod_path, ".schedulerName"]),
	"fix": "write the same scheduler everywhere, or once in gang.scheduler",
}

unequal(role, priority) := {
	"msg": sprintf("has priority %s and the rest of the gang %s", [role.pod.priorityClassName, priority]),
	"field": concat("", [role.pod_path, ".priorityClassName"]),
	"fix": "write the same priority everywhere, or once in gang.priorityClassName",
}
