package restart_policy

import data.penstock.workload

violation contains {"msg": msg, "field": concat("", [role.path, ".restartPolicy"]), "fix": fix} if {
	some role in workload.roles
	role.spec.restartPolicy == "Always"
	role.name in input.parameters.completingRoles
	msg := sprintf("restarts %s even when it has succeeded, so the job never ends", [role.name])
	fix := "write OnFailure or Never instead of Always"
}

violation contains endless(pod) if {
	some pod in pods_without_bound
	holds_devices(pod)
}

# Without devices the loop costs its owner more than the fleet.
warn contains endless(pod) if {
	some pod in pods_without_bound
	not holds_devices(pod)
}

endless(pod) := {
	"msg": sprintf("replaces killed pods of %s for ever: restartPolicy ExitCode has no bound", [pod.role]),
	"field": "spec.runPolicy.backoffLimit",
	"fix": "set a bound, for example 3",
}

pods_without_bound contains workload.pods[i] if {
	not bounded
	some i, role in workload.roles
	role.spec.restartPolicy == "ExitCode"
}

holds_devices(pod) if {
	some n in pod.demand
	n > 0
}

bounded if is_number(input.object.spec.runPolicy.backoffLimit)
