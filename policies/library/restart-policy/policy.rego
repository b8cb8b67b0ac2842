package restart_policy

import data.penstock.workload

violation contains {"msg": msg, "field": concat("", [role.path, ".restartPolicy"]), "fix": fix} if {
	some role in workload.roles
	role.spec.restartPolicy == "Always"
	role.name in input.parameters.completingRoles
	msg := sprintf("restarts %s even when it has succeeded, so the job never ends", [role.name])
	fix := "write OnFailure or Never instead of Always"
}

violation contains {"msg": msg, "field": "spec.runPolicy.backoffLimit", "fix": fix} if {
	some role in workload.roles
	role.spec.restartPolicy == "ExitCode"
	not bounded
	msg := sprintf("replaces killed pods of %s for ever: restartPolicy ExitCode has no bound", [role.name])
	fix := "set a bound, for example 3"
}

bounded if is_number(input.object.spec.runPolicy.backoffLimit)
