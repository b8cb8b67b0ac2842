package active_deadline

import data.penstock.workload

violation contains {"msg": msg, "field": concat(".", [run.path, "activeDeadlineSeconds"]), "fix": fix} if {
	some run in workload.runs_beyond("activeDeadlineSeconds", input.parameters.most)
	msg := sprintf("activeDeadlineSeconds is %v; at most %v seconds are allowed", [run.policy.activeDeadlineSeconds, input.parameters.most])
	fix := sprintf("write at most %v", [input.parameters.most])
}

violation contains missing(run) if {
	some run in workload.runs_without("activeDeadlineSeconds")
	workload.total_of(input.parameters.resources) + workload.claims_total > input.parameters.mandatoryAbove
	not settled
}

warn contains missing(run) if {
	some run in workload.runs_without("activeDeadlineSeconds")
	held > 0
	held <= input.parameters.mandatoryAbove
	not settled
}

held := workload.total_of(input.parameters.resources) + workload.claims_total

missing(run) := {
	"msg": sprintf("asks for %v GPUs and may hold them for ever", [held]),
	"field": concat(".", [run.path, "activeDeadlineSeconds"]),
	"fix": "set a deadline in seconds, for example 86400 for a day",
}

# A deadline of its pods will do for a job of Kubernetes.
settled if {
	some role in workload.roles
	is_number(role.pod.activeDeadlineSeconds)
}

# Whoever made the job sees to it.
settled if {
	some owner in input.object.metadata.ownerReferences
	owner.controller == true
}
