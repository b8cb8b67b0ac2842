package ray_autoscaler_restarts

import data.penstock.workload

violation contains second(role, concat("", [role.path, ".restartPolicy"]), role.spec.restartPolicy) if {
	input.object.spec.autoscaler.mode == "Enabled"
	input.object.spec.autoscaler.version == "v2"
	some role in workload.roles_where(["spec", "restartPolicy"], ["Always", "OnFailure"])
}

violation contains second(role, concat("", [role.pod_path, ".restartPolicy"]), role.pod.restartPolicy) if {
	input.object.spec.autoscaler.mode == "Enabled"
	input.object.spec.autoscaler.version == "v2"
	some role in workload.roles_where(["pod", "restartPolicy"], ["Always", "OnFailure"])
}

# The first autoscaler works, but holds on to what it should let go.
warn contains first(role, concat("", [role.path, ".restartPolicy"]), role.spec.restartPolicy) if {
	input.object.spec.autoscaler.mode == "Enabled"
	input.object.spec.autoscaler.version != "v2"
	some role in workload.roles_where(["spec", "restartPolicy"], ["Always", "OnFailure"])
	role.name != "Head"
}

warn contains first(role, concat("", [role.pod_path, ".restartPolicy"]), role.pod.restartPolicy) if {
	input.object.spec.autoscaler.mode == "Enabled"
	input.object.spec.autoscaler.version != "v2"
	some role in workload.roles_where(["pod", "restartPolicy"], ["Always", "OnFailure"])
	role.name != "Head"
}

# What is left out is Always: only the second version changes that.
warn contains first(role, concat("", [role.pod_path, ".restartPolicy"]), "Always, as nothing is written") if {
	input.object.spec.autoscaler.mode == "Enabled"
	input.object.spec.autoscaler.version != "v2"
	some role in workload.roles_where(["pod", "restartPolicy"], [null])
	object.get(role.spec, "restartPolicy", null) == null
	role.name != "Head"
}

second(role, field, policy) := {
	"msg": sprintf("restarts %s in place (%s), and the autoscaler's version v2 takes a pod for one Ray node", [role.name, policy]),
	"field": field,
	"fix": "write Never, or leave it out: pods that end are replaced",
}

first(role, field, policy) := {
	"msg": sprintf("restarts workers of %s in place (%s): each comes back as a new Ray node, and the autoscaler no longer removes its pod when it is idle", [role.name, policy]),
	"field": field,
	"fix": "write Never: pods that end are replaced",
}
