package ray_autoscaler_restarts

import data.penstock.workload

violation contains {"msg": msg, "field": field, "fix": fix} if {
	input.object.spec.autoscaler.mode == "Enabled"
	input.object.spec.autoscaler.version == "v2"
	some role in workload.roles
	[field, policy] := in_place(role)
	msg := sprintf("restarts %s in place (%s), and the autoscaler's version v2 takes a pod for one Ray node", [role.name, policy])
	fix := "write Never, or leave it out: pods that end are replaced"
}

# The first autoscaler works, but holds on to what it should let go.
warn contains {"msg": msg, "field": field, "fix": fix} if {
	input.object.spec.autoscaler.mode == "Enabled"
	input.object.spec.autoscaler.version != "v2"
	some role in workload.roles
	role.name != "Head"
	[field, policy] := in_place(role)
	msg := sprintf("restarts workers of %s in place (%s): each comes back as a new Ray node, and the autoscaler no longer removes its pod when it is idle", [role.name, policy])
	fix := "write Never: pods that end are replaced"
}

in_place(role) := [concat("", [role.path, ".restartPolicy"]), role.spec.restartPolicy] if {
	role.spec.restartPolicy in restarting
} else := [concat("", [role.pod_path, ".restartPolicy"]), role.pod.restartPolicy] if {
	role.pod.restartPolicy in restarting
}

restarting := {"Always", "OnFailure"}
