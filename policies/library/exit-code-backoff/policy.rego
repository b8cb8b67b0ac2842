package exit_code_backoff

import data.penstock.workload

violation contains endless(pod) if {
	some _ in workload.runs_without("backoffLimit")
	some role in workload.roles_where(["spec", "restartPolicy"], ["ExitCode"])
	pod := pod_of(role)
	holds_devices(pod)
}

# Without devices the loop costs its owner more than the fleet.
warn contains endless(pod) if {
	some _ in workload.runs_without("backoffLimit")
	some role in workload.roles_where(["spec", "restartPolicy"], ["ExitCode"])
	pod := pod_of(role)
	not holds_devices(pod)
}

endless(pod) := {
	"msg": sprintf("replaces killed pods of %s for ever: restartPolicy ExitCode has no bound", [pod.role]),
	"field": "spec.runPolicy.backoffLimit",
	"fix": "set a bound, for example 3",
}

pod_of(role) := [pod | some pod in workload.pods; pod.pod_path == role.pod_path][0]

holds_devices(pod) if {
	some n in pod.demand
	n > 0
}

holds_devices(pod) if pod.claims > 0
