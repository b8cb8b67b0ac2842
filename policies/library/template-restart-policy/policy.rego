package template_restart_policy

import data.penstock.workload

violation contains {"msg": msg, "field": concat("", [role.pod_path, ".restartPolicy"]), "fix": fix} if {
	some role in workload.roles_having(["pod", "restartPolicy"])
	effective := in_pods(role.spec.restartPolicy)
	role.pod.restartPolicy != effective
	msg := sprintf("%v is overwritten by restartPolicy %s of role %s", [role.pod.restartPolicy, role.spec.restartPolicy, role.name])
	fix := "take it out of the template and write what is meant as restartPolicy of the role"
}

# Pods of ExitCode are not restarted in place.
in_pods("ExitCode") := "Never"

in_pods(policy) := policy if policy != "ExitCode"
