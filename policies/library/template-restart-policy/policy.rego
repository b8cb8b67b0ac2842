package template_restart_policy

import data.penstock.workload

violation contains fault(role) if {
	some role in workload.roles_having(["pod", "restartPolicy"])
	role.spec.restartPolicy != "ExitCode"
	role.pod.restartPolicy != role.spec.restartPolicy
}

# Pods of ExitCode are not restarted in place.
violation contains fault(role) if {
	some role in workload.roles_having(["pod", "restartPolicy"])
	role.spec.restartPolicy == "ExitCode"
	role.pod.restartPolicy != "Never"
}

fault(role) := {
	"msg": sprintf("%v is overwritten by restartPolicy %s of role %s", [role.pod.restartPolicy, role.spec.restartPolicy, role.name]),
	"field": concat("", [role.pod_path, ".restartPolicy"]),
	"fix": "take it out of the template and write what is meant as restartPolicy of the role",
}
