package ttl_after_finished

import data.penstock.workload

violation contains {"msg": msg, "field": concat(".", [run.path, "ttlSecondsAfterFinished"]), "fix": fix} if {
	some run in workload.runs_beyond("ttlSecondsAfterFinished", input.parameters.most)
	msg := sprintf("ttlSecondsAfterFinished is %v; at most %v seconds are allowed", [run.policy.ttlSecondsAfterFinished, input.parameters.most])
	fix := sprintf("write at most %v", [input.parameters.most])
}

violation contains missing(run) if {
	some run in workload.runs_without("ttlSecondsAfterFinished")
	workload.total_of(input.parameters.resources) + workload.claims_total > input.parameters.mandatoryAbove
	not settled
}

warn contains missing(run) if {
	some run in workload.runs_without("ttlSecondsAfterFinished")
	held > 0
	held <= input.parameters.mandatoryAbove
	not settled
}

held := workload.total_of(input.parameters.resources) + workload.claims_total

missing(run) := {
	"msg": sprintf("asks for %v GPUs and is kept for ever once it has finished", [held]),
	"field": concat(".", [run.path, "ttlSecondsAfterFinished"]),
	"fix": "set a time in seconds, for example 3600 for an hour",
}

# A cron job keeps a number of its jobs.
settled if input.object.kind == "CronJob"

# Whoever made the job sees to it.
settled if {
	some owner in input.object.metadata.ownerReferences
	owner.controller == true
}
