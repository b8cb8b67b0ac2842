package restart_policy

import data.penstock.workload

violation contains {"msg": msg, "field": concat("", [role.path, ".restartPolicy"]), "fix": fix} if {
	some role in workload.roles_where(["spec", "restartPolicy"], ["Always"])
	completes(role.name)
	msg := sprintf("restarts %s even when it has succeeded, so the job never ends", [role.name])
	fix := "write OnFailure or Never instead of Always"
}

completes(name) if name in input.parameters.completingRoles

completes("Worker") if count(workload.roles_where(["name"], input.parameters.completingRoles)) == 0
